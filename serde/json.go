package serde

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
)

// JSON returns a serde that writes values as package encoding/json does, but
// leaves <, > and & as they are, as Java's libraries do.
//
// What is null in JSON (a nil pointer, map, slice or interface) is written as
// null, a tombstone, and not as the text null. The text null is read as such a
// nil, or as the zero value of a type that has none. Decode refuses data with
// anything but space after the value.
func JSON[T any]() Serde[T] { return jsonSerde[T]{} }

type jsonSerde[T any] struct{}

func (jsonSerde[T]) Append(dst []byte, v T) ([]byte, error) {
	e := jsonEncoders.Get().(*jsonEncoder)
	defer e.release()
	e.out = dst
	if err := e.json.Encode(v); err != nil {
		return nil, fmt.Errorf("serde: %s as JSON: %w", reflect.TypeFor[T](), err)
	}
	out := e.out[:len(e.out)-1] // without the line's end
	if string(out[len(dst):]) == "null" {
		return nil, nil
	}
	return out, nil
}

func (jsonSerde[T]) Decode(data []byte) (T, error) {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		var zero T
		return zero, fmt.Errorf("serde: JSON of %s: %w", reflect.TypeFor[T](), err)
	}
	return v, nil
}

// jsonEncoder appends what its encoder writes to a buffer, which package
// encoding/json has no function for.
type jsonEncoder struct {
	json *json.Encoder
	out  []byte
}

var jsonEncoders = sync.Pool{New: func() any {
	e := new(jsonEncoder)
	e.json = json.NewEncoder(e)
	e.json.SetEscapeHTML(false)
	return e
}}

func (e *jsonEncoder) Write(p []byte) (int, error) {
	e.out = append(e.out, p...)
	return len(p), nil
}

func (e *jsonEncoder) release() {
	e.out = nil
	jsonEncoders.Put(e)
}
