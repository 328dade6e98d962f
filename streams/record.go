package streams

import (
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Header is a record header, as franz-go has it.
type Header = kgo.RecordHeader

// Record is what flows from processor to processor.
//
// Kafka keys and values can be null, which a Go type need not be able to say:
// KeyNull and ValueNull say it, and Key or Value is then the type's zero value.
// A program whose functions must tell null from zero uses a type that has nil,
// such as *string with [serde.Pointer]: whatever is nil is null.
type Record[K, V any] struct {
	Key       K
	Value     V
	KeyNull   bool
	ValueNull bool

	// Timestamp is the event time in milliseconds since the Unix epoch.
	Timestamp int64

	// Headers go along with the record and are shared by all that it becomes.
	// They must not be changed in place.
	Headers []Header
}

// Time is the record's timestamp.
func (r Record[K, V]) Time() time.Time { return time.UnixMilli(r.Timestamp) }

// nilCheck returns what tells the nil values of T; it is nil where T has none.
func nilCheck[T any]() func(T) bool {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return func(v T) bool { return reflect.ValueOf(&v).Elem().IsNil() }
	}
	return nil
}

// withValue is r with another value, not null.
func withValue[K, V, VOut any](r Record[K, V], v VOut) Record[K, VOut] {
	return Record[K, VOut]{Key: r.Key, KeyNull: r.KeyNull, Value: v, Timestamp: r.Timestamp, Headers: r.Headers}
}

// withNullable is r with another value, null where isNil, if there is one, says so.
func withNullable[K, V, VOut any](r Record[K, V], v VOut, isNil func(VOut) bool) Record[K, VOut] {
	out := withValue(r, v)
	out.ValueNull = isNil != nil && isNil(v)
	return out
}

// nulls tells the nil keys and values.
type nulls[K, V any] struct {
	key   func(K) bool
	value func(V) bool
}

func newNulls[K, V any]() nulls[K, V] { return nulls[K, V]{nilCheck[K](), nilCheck[V]()} }

func (n nulls[K, V]) record(k K, v V, timestamp int64, headers []Header) Record[K, V] {
	return Record[K, V]{
		Key: k, KeyNull: n.key != nil && n.key(k),
		Value: v, ValueNull: n.value != nil && n.value(v),
		Timestamp: timestamp, Headers: headers,
	}
}
