package streams

import (
	"reflect"

	"github.com/odradek-go/odradek/serde"
)

// sourcePlan is a planned source of a stream.
type sourcePlan struct {
	topics []string // or the one patternName
	types  reflect.Type
	reset  OffsetReset
}

// Stream is the stream of a topic's records.
func Stream[K, V any](b *Builder, topic string, options ...Consumed[K, V]) *KStream[K, V] {
	return StreamOf(b, []string{topic}, options...)
}

// StreamOf is the stream of the records of several topics. There is no order
// between records of different topics.
func StreamOf[K, V any](b *Builder, topics []string, options ...Consumed[K, V]) *KStream[K, V] {
	c := only(b, "Stream", options)
	name := b.name(c.Name, sourcePrefix)
	c.Key, c.Value = serdeOr(c.Key), serdeOr(c.Value)
	n := b.add(name, func(_ *planNode, t *Topology) { AddSource(t, name, c, topics...) })
	n.source = &sourcePlan{topics: topics, types: reflect.TypeFor[Record[K, V]](), reset: c.OffsetReset}
	return &KStream[K, V]{b: b, node: n, sources: []string{name}, keys: c.Key, values: c.Value}
}

// Consumed says how a topic is read.
type Consumed[K, V any] struct {
	// Name is the source's name; empty: generated. The source of a table has
	// this name and "-source", and the table's node this name.
	Name string

	// Key and Value are the topic's serdes; nil: [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]

	// TimestampExtractor tells the records' event times; nil:
	// [FailOnInvalidTimestamp].
	TimestampExtractor TimestampExtractor[K, V]

	// OffsetReset is where a partition without a committed offset begins; the
	// zero value: as Config.AutoOffsetReset says.
	OffsetReset OffsetReset
}

// ConsumedWith is a Consumed with serdes.
func ConsumedWith[K, V any](key serde.Serde[K], value serde.Serde[V]) Consumed[K, V] {
	return Consumed[K, V]{Key: key, Value: value}
}

// As returns a copy with that name.
func (c Consumed[K, V]) As(name string) Consumed[K, V] { c.Name = name; return c }

// WithTimestampExtractor returns a copy with that timestamp extractor.
func (c Consumed[K, V]) WithTimestampExtractor(e TimestampExtractor[K, V]) Consumed[K, V] {
	c.TimestampExtractor = e
	return c
}

// WithOffsetReset returns a copy with that offset reset.
func (c Consumed[K, V]) WithOffsetReset(r OffsetReset) Consumed[K, V] { c.OffsetReset = r; return c }
