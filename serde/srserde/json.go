package srserde

import "github.com/odradek-go/odradek/serde"

// JSON is the format of JSON values under a JSON schema. What is written and read is
// that of [serde.JSON]; values are not checked against the schema.
func JSON[T any](schema string) Format[T] { return jsonFormat[T]{serde.JSON[T](), schema} }

type jsonFormat[T any] struct {
	serde.Serde[T]
	schema string
}

func (jsonFormat[T]) SchemaType() string { return "JSON" }
func (f jsonFormat[T]) Schema() string   { return f.schema }

func (f jsonFormat[T]) Decoder(string, []string) (func([]byte) (T, error), error) {
	return f.Decode, nil
}
