package streamstest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
)

// Output says how the records of an output topic are read.
type Output[K, V any] struct {
	// Key and Value are the topic's serdes; nil: serde.For.
	Key   serde.Serde[K]
	Value serde.Serde[V]
}

// OutputTopic reads typed records from a topic that the topology writes to: a sink's, a repartition or a changelog
// topic. It is Java's TestOutputTopic. Each record is read once; all output topics of one topic share what is to be
// read. What goes wrong fails the test.
type OutputTopic[K, V any] struct {
	d     *Driver
	topic string
	keys  serde.Serde[K]
	vals  serde.Serde[V]
}

// NewOutputTopic returns an output topic. The names of repartition and changelog topics begin with the application id.
func NewOutputTopic[K, V any](d *Driver, topic string, options ...Output[K, V]) *OutputTopic[K, V] {
	d.tb.Helper()
	o := only(d, "NewOutputTopic", options)
	if d.sinks != nil && !d.sinks[topic] {
		d.tb.Fatalf("streamstest: the topology does not write to topic %q, only to %q", topic, slices.Sorted(maps.Keys(d.sinks)))
	}
	out := &OutputTopic[K, V]{d: d, topic: topic}
	out.keys, out.vals = topicSerdes(d, topic, o.Key, o.Value)
	return out
}

// IsEmpty says whether there is nothing to be read.
func (out *OutputTopic[K, V]) IsEmpty() bool { return out.Len() == 0 }

// Len is how many records there are to be read.
func (out *OutputTopic[K, V]) Len() int { return len(out.d.outputs[out.topic]) }

// Read reads the next record. It fails the test if there is none. A record that leaves its timestamp to the producer,
// as those in the changelogs of suppressions do, has the timestamp -1.
func (out *OutputTopic[K, V]) Read() streams.Record[K, V] {
	out.d.tb.Helper()
	queue := out.d.outputs[out.topic]
	if len(queue) == 0 {
		out.d.tb.Fatalf("streamstest: topic %q has no record to be read", out.topic)
	}
	out.d.outputs[out.topic] = queue[1:]
	r, err := out.decode(queue[0])
	if err != nil {
		out.d.tb.Fatalf("streamstest: read topic %q: %v", out.topic, err)
	}
	return r
}

// ReadKeyValue reads the next record's key and value, null as their types' zero values.
func (out *OutputTopic[K, V]) ReadKeyValue() streams.KeyValue[K, V] {
	out.d.tb.Helper()
	r := out.Read()
	return streams.KeyValue[K, V]{Key: r.Key, Value: r.Value}
}

// ReadValue reads the next record's value, null as its type's zero value.
func (out *OutputTopic[K, V]) ReadValue() V {
	out.d.tb.Helper()
	return out.Read().Value
}

// ReadAll reads all records that there are.
func (out *OutputTopic[K, V]) ReadAll() []streams.Record[K, V] {
	out.d.tb.Helper()
	return readAll(out, out.Read)
}

// ReadKeyValues reads the keys and values of all records that there are.
func (out *OutputTopic[K, V]) ReadKeyValues() []streams.KeyValue[K, V] {
	out.d.tb.Helper()
	return readAll(out, out.ReadKeyValue)
}

// ReadValues reads the values of all records that there are.
func (out *OutputTopic[K, V]) ReadValues() []V {
	out.d.tb.Helper()
	return readAll(out, out.ReadValue)
}

// ReadMap reads all records that there are as changes of a table, and returns the last value of each key; a key whose
// last value is null is not in the map, and records without a key are left out.
func ReadMap[K comparable, V any](out *OutputTopic[K, V]) map[K]V {
	out.d.tb.Helper()
	table := make(map[K]V)
	for _, r := range out.ReadAll() {
		switch {
		case r.KeyNull:
		case r.ValueNull:
			delete(table, r.Key)
		default:
			table[r.Key] = r.Value
		}
	}
	return table
}

func readAll[K, V, T any](out *OutputTopic[K, V], read func() T) []T {
	out.d.tb.Helper()
	all := make([]T, 0, out.Len())
	for !out.IsEmpty() {
		all = append(all, read())
	}
	return all
}

func (out *OutputTopic[K, V]) decode(rec *kgo.Record) (r streams.Record[K, V], err error) {
	r = streams.Record[K, V]{
		KeyNull: rec.Key == nil, ValueNull: rec.Value == nil,
		Timestamp: state.NoTimestamp, Headers: rec.Headers,
	}
	if !rec.Timestamp.IsZero() {
		r.Timestamp = rec.Timestamp.UnixMilli()
	}
	if !r.KeyNull {
		if r.Key, err = out.keys.Decode(rec.Key); err != nil {
			return r, fmt.Errorf("deserialize the key %q: %w", rec.Key, err)
		}
	}
	if !r.ValueNull {
		if r.Value, err = out.vals.Decode(rec.Value); err != nil {
			return r, fmt.Errorf("deserialize the value %q: %w", rec.Value, err)
		}
	}
	return r, nil
}

// topicSerdes are the serdes of a topic, given or standard.
func topicSerdes[K, V any](d *Driver, topic string, keys serde.Serde[K], vals serde.Serde[V]) (serde.Serde[K], serde.Serde[V]) {
	d.tb.Helper()
	return topicSerde(d, topic, "Key", keys), topicSerde(d, topic, "Value", vals)
}

func topicSerde[T any](d *Driver, topic, field string, s serde.Serde[T]) serde.Serde[T] {
	d.tb.Helper()
	if s != nil {
		return s
	}
	s, ok := serde.For[T]()
	if !ok {
		d.tb.Fatalf("streamstest: topic %q: there is no standard serde of %T: give one as %s", topic, *new(T), field)
	}
	return s
}

// only returns the one element of an optional argument, or its zero value.
func only[T any](d *Driver, function string, options []T) (option T) {
	d.tb.Helper()
	switch len(options) {
	case 0:
	case 1:
		option = options[0]
	default:
		d.tb.Fatalf("streamstest: %s: %d options where one is taken", function, len(options))
	}
	return option
}
