package avroserde

import (
	"fmt"
	"reflect"

	"github.com/hamba/avro/v2"
)

// Serde is a serde.Serde of T under an Avro schema, and a srserde.Format.
type Serde[T any] struct {
	text   string
	schema avro.Schema
	codecs *codecs
	isNil  bool // T has nil, which is null
}

// Config says what a schema alone does not.
type Config struct {
	// References are the schemas of named types that the schema uses and does not
	// define, each before those that use it.
	References []string

	// Types are the Go types of named types in unions, by full name: a value of
	// each. Without it a record in a union is read as a map[string]any.
	Types map[string]any

	// Converters convert between Go types and those of Avro.
	Converters []avro.TypeConverter
}

// New returns the serde of T under a schema in Avro's JSON notation. T is a struct whose
// fields have the schema's names, or others with tags such as `avro:"name"`, or what
// hamba/avro has for the schema's type: string, int64, []byte, map[string]any …
//
// A nil pointer, map, slice or interface is null, a tombstone. A union with null is not
// needed for that. Maps have no order, so that a key should have none.
func New[T any](schema string, options ...Config) (*Serde[T], error) {
	var c Config
	switch len(options) {
	case 0:
	case 1:
		c = options[0]
	default:
		return nil, fmt.Errorf("avroserde: %d configurations where one is taken", len(options))
	}
	parsed, err := parse(schema, c.References)
	if err != nil {
		return nil, fmt.Errorf("avroserde: the schema of %v: %w", reflect.TypeFor[T](), err)
	}
	s := &Serde[T]{text: schema, schema: parsed, codecs: newCodecs(c)}
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		s.isNil = true
	}
	return s, nil
}

// Must is [New] for a schema that is part of the program: it panics where that is none.
func Must[T any](schema string, options ...Config) *Serde[T] {
	s, err := New[T](schema, options...)
	if err != nil {
		panic(err)
	}
	return s
}

// parse parses a schema. Its names are its own: schemas of one name can differ.
func parse(schema string, references []string) (avro.Schema, error) {
	var names avro.SchemaCache
	for i, r := range references {
		if _, err := avro.ParseWithCache(r, "", &names); err != nil {
			return nil, fmt.Errorf("reference %d: %w", i+1, err)
		}
	}
	return avro.ParseWithCache(schema, "", &names)
}

// Append implements serde.Serde.
func (s *Serde[T]) Append(dst []byte, v T) ([]byte, error) {
	if s.isNil && reflect.ValueOf(&v).Elem().IsNil() {
		return nil, nil
	}
	b, err := s.codecs.append(dst, s.schema, v)
	if err != nil {
		return nil, fmt.Errorf("avroserde: %v as %s: %w", reflect.TypeFor[T](), name(s.schema), err)
	}
	return b, nil
}

// Decode implements serde.Serde. It refuses data with anything after the value.
func (s *Serde[T]) Decode(data []byte) (T, error) { return s.decode(s.schema, data) }

func (s *Serde[T]) decode(schema avro.Schema, data []byte) (v T, err error) {
	if err := s.codecs.decode(schema, data, &v); err != nil {
		var none T
		return none, fmt.Errorf("avroserde: %s as %v: %w", name(schema), reflect.TypeFor[T](), err)
	}
	return v, nil
}

// SchemaType is the schema's type, as schema registries call it.
func (s *Serde[T]) SchemaType() string { return "AVRO" }

// Schema is the schema in Avro's JSON notation.
func (s *Serde[T]) Schema() string { return s.text }

// Decoder returns what decodes data that was written with another schema, as values of
// this one: fields that are new have their defaults, and those that are gone are left
// out. References are as in [Config]. Schemas that do not go together are an error.
func (s *Serde[T]) Decoder(written string, references []string) (func(data []byte) (T, error), error) {
	writer, err := parse(written, references)
	if err != nil {
		return nil, fmt.Errorf("avroserde: the schema of the writer: %w", err)
	}
	if writer.Fingerprint() == s.schema.Fingerprint() {
		return s.Decode, nil
	}
	schema, err := avro.NewSchemaCompatibility().Resolve(s.schema, writer)
	if err != nil {
		return nil, fmt.Errorf("avroserde: what was written as %s can't be read as %s: %w", name(writer), name(s.schema), err)
	}
	return func(data []byte) (T, error) { return s.decode(schema, data) }, nil
}

// name is what a schema is called in errors.
func name(s avro.Schema) string {
	if named, ok := s.(avro.NamedSchema); ok {
		return named.FullName()
	}
	return string(s.Type())
}
