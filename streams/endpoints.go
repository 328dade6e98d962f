package streams

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/taskmgr"
)

// sourceNode turns the records of topics into typed ones.
type sourceNode[K, V any] struct {
	emitter[K, V]
	keys   serde.Serde[K]
	values serde.Serde[V]
}

// Timestamp is the record's own, and an error where it has none, as with Java's
// FailOnInvalidTimestamp.
func (n *sourceNode[K, V]) Timestamp(rec *kgo.Record, _ int64) (int64, error) {
	ts := rec.Timestamp.UnixMilli()
	if ts < 0 {
		return 0, fmt.Errorf("the record has the invalid timestamp %d: was it produced by a client older than Kafka 0.10?", ts)
	}
	return ts, nil
}

func (n *sourceNode[K, V]) Process(rec *kgo.Record, timestamp int64) error {
	r := Record[K, V]{Timestamp: timestamp, Headers: rec.Headers, KeyNull: rec.Key == nil, ValueNull: rec.Value == nil}
	var err error
	if !r.KeyNull {
		if r.Key, err = n.keys.Decode(rec.Key); err != nil {
			return fmt.Errorf("deserialize the key: %w", err)
		}
	}
	if !r.ValueNull {
		if r.Value, err = n.values.Decode(rec.Value); err != nil {
			return fmt.Errorf("deserialize the value: %w", err)
		}
	}
	return n.forward(r)
}

// sinkNode writes records to a topic.
type sinkNode[K, V any] struct {
	keys   serde.Serde[K]
	values serde.Serde[V]
	topic  string // in the cluster
	out    taskmgr.Collector
}

func (n *sinkNode[K, V]) receive(r Record[K, V]) error {
	var key, value []byte
	if !r.KeyNull {
		b, err := n.keys.Append(n.out.Grab(), r.Key)
		if err != nil {
			return fmt.Errorf("serialize the key for topic %q: %w", n.topic, err)
		}
		if b != nil {
			key = n.out.Keep(b)
		}
	}
	if !r.ValueNull {
		b, err := n.values.Append(n.out.Grab(), r.Value)
		if err != nil {
			return fmt.Errorf("serialize the value for topic %q: %w", n.topic, err)
		}
		if b != nil {
			value = n.out.Keep(b)
		}
	}
	return n.out.Send(n.topic, taskmgr.AnyPartition, key, value, r.Timestamp, r.Headers)
}

func (n *sinkNode[K, V]) connect(name string, _ running) error {
	return fmt.Errorf("streams: a sink has no children, and so not %q", name)
}
func (n *sinkNode[K, V]) open() error  { return nil }
func (n *sinkNode[K, V]) close() error { return nil }
