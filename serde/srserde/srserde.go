package srserde

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/odradek-go/odradek/serde"
)

// Format is how values are written and read under schemas: an *avroserde.Serde, a
// *protoserde.Format, or [JSON].
type Format[T any] interface {
	// SchemaType is what the registry calls the schemas' type, such as "AVRO".
	SchemaType() string

	// Schema is the schema that values are written with.
	Schema() string

	// Append is as in serde.Serde.
	Append(dst []byte, v T) ([]byte, error)

	// Decoder returns what decodes data that was written with a schema.
	// References are the schemas that it refers to, each before those that use it.
	Decoder(written string, references []string) (func(data []byte) (T, error), error)
}

// Options say how a schema is registered.
type Options struct {
	// References are the schemas that the schema refers to, as they are
	// registered.
	References []sr.SchemaReference

	// AutoRegisterDisabled wants the schema to be registered by others
	// (auto.register.schemas of Java's serializers). Otherwise it is when the
	// first value is written.
	AutoRegisterDisabled bool
}

// New returns a serde of values whose schema is registered under a subject.
//
// The serde of a topic has one subject for all that it is used for. Java's serializers
// have one for each topic by default, [KeySubject] and [ValueSubject], also for the
// application's repartition and changelog topics.
func New[T any](r *Registry, subject string, f Format[T], options ...Options) serde.Serde[T] {
	s := &registered[T]{registry: r, subject: subject, format: f}
	switch len(options) {
	case 0:
	case 1:
		s.options = options[0]
	default:
		s.err = fmt.Errorf("srserde: %d options for subject %q where one is taken", len(options), subject)
	}
	if err := s.kind.UnmarshalText([]byte(f.SchemaType())); err != nil {
		s.err = fmt.Errorf("srserde: subject %q: the format's schema type: %w", subject, err)
	}
	return s
}

// ValueSubject is the subject of the values of a topic by Java's TopicNameStrategy.
func ValueSubject(topic string) string { return topic + "-value" }

// KeySubject is the subject of the keys of a topic by Java's TopicNameStrategy.
func KeySubject(topic string) string { return topic + "-key" }

// registered is a serde with a registered schema.
type registered[T any] struct {
	registry *Registry
	subject  string
	format   Format[T]
	kind     sr.SchemaType
	options  Options
	err      error // it was made in a way that can't work

	registering sync.Mutex
	id          atomic.Int64 // of the schema that values are written with; 0: not known yet

	decoders sync.Map // func([]byte) (T, error) by id
}

// headSize is the length of what stands before a value: a zero and the schema's id.
const headSize = 5

func (s *registered[T]) Append(dst []byte, v T) ([]byte, error) {
	start := len(dst)
	b, err := s.format.Append(append(dst, make([]byte, headSize)...), v)
	if err != nil || b == nil {
		return nil, err
	}
	id, err := s.schemaID()
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(b[start+1:], id)
	return b, nil
}

// schemaID is the id of the schema that values are written with.
func (s *registered[T]) schemaID() (uint32, error) {
	if id := s.id.Load(); id != 0 {
		return uint32(id), nil
	}
	s.registering.Lock()
	defer s.registering.Unlock()
	if id := s.id.Load(); id != 0 {
		return uint32(id), nil
	}
	if s.err != nil {
		return 0, s.err
	}
	imports, err := s.registerImports()
	if err != nil {
		return 0, err
	}
	id, err := s.registry.register(s.subject, sr.Schema{
		Schema: s.format.Schema(), Type: s.kind, References: append(imports, s.options.References...),
	}, !s.options.AutoRegisterDisabled)
	if err != nil {
		return 0, err
	}
	if id <= 0 || id > math.MaxUint32 {
		return 0, fmt.Errorf("srserde: the registry has the id %d for the schema under subject %q", id, s.subject)
	}
	s.id.Store(int64(id))
	return uint32(id), nil
}

// filed is a Format whose schema is one of several files.
type filed interface {
	// Files yields the files that the schema imports, each before those that import
	// it, and its own file last, with the names of what they import.
	Files(yield func(name, schema string, imports []string) error) error
}

// registerImports registers what the schema imports, each file under its name, and
// returns how the schema refers to it.
func (s *registered[T]) registerImports() ([]sr.SchemaReference, error) {
	f, ok := s.format.(filed)
	if !ok {
		return nil, nil
	}
	known := make(map[string]sr.SchemaReference)
	var references []sr.SchemaReference // of the last file
	var last func() error               // registers the file before
	err := f.Files(func(name, schema string, imports []string) error {
		if last != nil {
			if err := last(); err != nil {
				return err
			}
		}
		references = nil
		for _, imported := range imports {
			references = append(references, known[imported])
		}
		of := sr.Schema{Schema: schema, Type: s.kind, References: references}
		last = func() error {
			version, err := s.registry.version(name, of, !s.options.AutoRegisterDisabled)
			known[name] = sr.SchemaReference{Name: name, Subject: name, Version: version}
			return err
		}
		return nil
	})
	return references, err
}

func (s *registered[T]) Decode(data []byte) (T, error) {
	var none T
	if len(data) < headSize || data[0] != 0 {
		return none, fmt.Errorf("srserde: subject %q: %d bytes without the id of a schema before them: were they written with a schema registry?", s.subject, len(data))
	}
	id := binary.BigEndian.Uint32(data[1:])
	decode, ok := s.decoders.Load(id)
	if !ok {
		var err error
		if decode, err = s.decoder(id); err != nil {
			return none, err
		}
		s.decoders.Store(id, decode)
	}
	return decode.(func([]byte) (T, error))(data[headSize:])
}

// decoder returns what decodes values that were written with the schema with an id.
func (s *registered[T]) decoder(id uint32) (func([]byte) (T, error), error) {
	if s.err != nil {
		return nil, s.err
	}
	written, err := s.registry.schema(int(id))
	if err != nil {
		return nil, err
	}
	if written.kind != s.kind {
		return nil, fmt.Errorf("srserde: subject %q: the schema with id %d is of type %v, not %v", s.subject, id, written.kind, s.kind)
	}
	decode, err := s.format.Decoder(written.text, written.references)
	if err != nil {
		return nil, fmt.Errorf("srserde: subject %q: the schema with id %d: %w", s.subject, id, err)
	}
	return decode, nil
}
