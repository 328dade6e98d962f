package streamstest

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// Input says how records get into an input topic.
type Input[K, V any] struct {
	// Key and Value are the topic's serdes; nil: serde.For.
	Key   serde.Serde[K]
	Value serde.Serde[V]

	// Start is the timestamp of the first record, in milliseconds since the Unix epoch; nil: the driver's wall clock
	// when the input topic is made.
	Start *int64

	// Advance is how much later each record is than the one before it; 0: all have one timestamp.
	Advance time.Duration
}

// InputTopic pipes typed records into a topic that the topology reads. It is Java's TestInputTopic. What goes wrong
// fails the test.
type InputTopic[K, V any] struct {
	d     *Driver
	topic string
	keys  serde.Serde[K]
	vals  serde.Serde[V]
	now   int64 // the timestamp of the next record that isn't given one
	step  int64
}

// NewInputTopic returns an input topic. There may be several for one topic.
func NewInputTopic[K, V any](d *Driver, topic string, options ...Input[K, V]) *InputTopic[K, V] {
	d.tb.Helper()
	o := only(d, "NewInputTopic", options)
	if !d.reads(topic) {
		d.tb.Fatalf("streamstest: the topology does not read topic %q, only %q", topic, d.sources())
	}
	in := &InputTopic[K, V]{d: d, topic: topic, now: d.now.UnixMilli(), step: o.Advance.Milliseconds()}
	in.keys, in.vals = topicSerdes(d, topic, o.Key, o.Value)
	if o.Start != nil {
		in.now = *o.Start
	}
	return in
}

// Pipe processes a record with the topic's time, which is advanced. A nil key or value is null.
func (in *InputTopic[K, V]) Pipe(key K, value V) {
	in.d.tb.Helper()
	in.PipeAt(in.tick(), key, value)
}

// PipeAt processes a record with a timestamp in milliseconds. A nil key or value is null.
func (in *InputTopic[K, V]) PipeAt(timestamp int64, key K, value V) {
	in.d.tb.Helper()
	in.PipeRecord(streams.Record[K, V]{Key: key, Value: value, Timestamp: timestamp})
}

// PipeValue processes a record whose key is null, with the topic's time, which is advanced.
func (in *InputTopic[K, V]) PipeValue(value V) {
	in.d.tb.Helper()
	in.PipeRecord(streams.Record[K, V]{KeyNull: true, Value: value, Timestamp: in.tick()})
}

// PipeTombstone processes a record whose value is null, with the topic's time, which is advanced.
func (in *InputTopic[K, V]) PipeTombstone(key K) {
	in.d.tb.Helper()
	in.PipeRecord(streams.Record[K, V]{Key: key, ValueNull: true, Timestamp: in.tick()})
}

// PipeValues is PipeValue for each of the values.
func (in *InputTopic[K, V]) PipeValues(values ...V) {
	in.d.tb.Helper()
	for _, v := range values {
		in.PipeValue(v)
	}
}

// PipeKeyValues is Pipe for each key and value.
func (in *InputTopic[K, V]) PipeKeyValues(kvs ...streams.KeyValue[K, V]) {
	in.d.tb.Helper()
	for _, kv := range kvs {
		in.Pipe(kv.Key, kv.Value)
	}
}

// PipeRecord processes a record as it is, with its timestamp and headers. A nil key or value is null.
func (in *InputTopic[K, V]) PipeRecord(r streams.Record[K, V]) {
	in.d.tb.Helper()
	if err := in.TryPipe(r); err != nil {
		in.d.tb.Fatalf("streamstest: pipe into topic %q: %v", in.topic, err)
	}
}

// TryPipe is PipeRecord that returns the error that a stream thread would have failed with. See Driver.TryPipe.
func (in *InputTopic[K, V]) TryPipe(r streams.Record[K, V]) error {
	rec := &kgo.Record{Topic: in.topic, Timestamp: time.UnixMilli(r.Timestamp), Headers: r.Headers}
	var err error
	if rec.Key, err = encode(in.keys, r.Key, r.KeyNull); err != nil {
		return fmt.Errorf("serialize the key: %w", err)
	}
	if rec.Value, err = encode(in.vals, r.Value, r.ValueNull); err != nil {
		return fmt.Errorf("serialize the value: %w", err)
	}
	return in.d.TryPipe(rec)
}

// AdvanceTime advances the topic's time: the timestamp of the next record.
func (in *InputTopic[K, V]) AdvanceTime(by time.Duration) { in.now += by.Milliseconds() }

// tick returns the topic's time, and advances it.
func (in *InputTopic[K, V]) tick() int64 {
	now := in.now
	in.now += in.step
	return now
}

// encode serializes a key or a value. Serdes write nil as null themselves.
func encode[T any](s serde.Serde[T], v T, null bool) ([]byte, error) {
	if null {
		return nil, nil
	}
	return s.Append([]byte{}, v)
}
