package streams

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
)

// sourceNode turns the records of topics into typed ones.
type sourceNode[K, V any] struct {
	emitter[K, V]
	keys    serde.Serde[K]
	values  serde.Serde[V]
	extract TimestampExtractor[K, V] // nil: FailOnInvalidTimestamp

	// What the extractor has seen is not decoded again.
	seen    *kgo.Record
	decoded Record[K, V]
}

func (n *sourceNode[K, V]) Timestamp(rec *kgo.Record, partitionTime int64) (int64, error) {
	if n.extract == nil {
		return FailOnInvalidTimestamp(Record[K, V]{Timestamp: rec.Timestamp.UnixMilli()}, partitionTime)
	}
	r, err := n.decode(rec)
	if err != nil {
		return 0, err
	}
	n.seen, n.decoded = rec, r
	ts, err := n.extract(r, partitionTime)
	if err != nil {
		return 0, fmt.Errorf("extract the timestamp: %w", err)
	}
	return ts, nil
}

func (n *sourceNode[K, V]) Process(rec *kgo.Record, timestamp int64) error {
	r := n.decoded
	if rec != n.seen {
		var err error
		if r, err = n.decode(rec); err != nil {
			return err
		}
	}
	r.Timestamp = timestamp
	return n.forward(r)
}

func (n *sourceNode[K, V]) decode(rec *kgo.Record) (r Record[K, V], err error) {
	r = Record[K, V]{Timestamp: rec.Timestamp.UnixMilli(), Headers: rec.Headers, KeyNull: rec.Key == nil, ValueNull: rec.Value == nil}
	if !r.KeyNull {
		if r.Key, err = n.keys.Decode(rec.Key); err != nil {
			return r, &DeserializationError{Part: "key", Err: err}
		}
	}
	if !r.ValueNull {
		if r.Value, err = n.values.Decode(rec.Value); err != nil {
			return r, &DeserializationError{Part: "value", Err: err}
		}
	}
	return r, nil
}
