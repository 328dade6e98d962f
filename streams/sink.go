package streams

import (
	"fmt"
	"reflect"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/taskmgr"
)

// Produced says how a topic is written.
type Produced[K, V any] struct {
	// Name is the sink's name; empty: generated.
	Name string

	// Key and Value are the topic's serdes; nil: the stream's, or else
	// [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]

	// Partitioner chooses the records' partitions; nil: the default one,
	// which hashes the key as Java's does.
	Partitioner StreamPartitioner[K, V]

	// Multicast takes the place of Partitioner where a record can go to several
	// partitions, or to none; nil: each goes to one.
	Multicast MulticastPartitioner[K, V]

	// byBaseKey has all windows of a key in one partition, unless a partitioner
	// says otherwise.
	byBaseKey bool
}

// ProducedWith is a Produced with serdes.
func ProducedWith[K, V any](key serde.Serde[K], value serde.Serde[V]) Produced[K, V] {
	return Produced[K, V]{Key: key, Value: value}
}

// As returns a copy with that name.
func (p Produced[K, V]) As(name string) Produced[K, V] { p.Name = name; return p }

// WithPartitioner returns a copy with that partitioner.
func (p Produced[K, V]) WithPartitioner(partitioner StreamPartitioner[K, V]) Produced[K, V] {
	p.Partitioner = partitioner
	return p
}

// StreamPartitioner chooses the partition of a record among those that its topic
// has, counted from 0; [AnyPartition] leaves it to the default partitioner. Stream
// threads call it at the same time.
type StreamPartitioner[K, V any] func(topic string, r Record[K, V], partitions int) int32

// MulticastPartitioner chooses the partitions of a record like a [StreamPartitioner]
// (KIP-837). It is sent to each of them, and to none where to is empty; ok is false
// to leave it to the default partitioner.
type MulticastPartitioner[K, V any] func(topic string, r Record[K, V], partitions int) (to []int32, ok bool)

// AnyPartition leaves the partition of a record to the default partitioner.
const AnyPartition = taskmgr.AnyPartition

// TopicNameExtractor chooses the topic of a record (KIP-303), which must exist.
type TopicNameExtractor[K, V any] func(r Record[K, V], from RecordContext) string

// RecordContext says which record of a source topic is being processed. Where
// none is, the topic is empty, and partition and offset are -1.
type RecordContext struct {
	Topic     string
	Partition int32
	Offset    int64
}

func recordContext(ctx *taskmgr.Context) RecordContext {
	if r := ctx.Record(); r != nil {
		return RecordContext{r.Topic, r.Partition, r.Offset}
	}
	return RecordContext{Partition: -1, Offset: -1}
}

// AddSink adds a sink below parents that writes to topic. The serdes may be left
// out where [serde.For] knows one.
func AddSink[K, V any](t *Topology, name, topic string, p Produced[K, V], parents ...string) {
	if err := checkTopicName(topic); err != nil {
		t.errorf("sink %q: topic %q: %w", name, topic, err)
	}
	addSink(t, &node{name: name, topic: topic}, nil, p, parents)
}

// AddDynamicSink adds a sink like [AddSink] that chooses the topic of each record.
func AddDynamicSink[K, V any](t *Topology, name string, topic TopicNameExtractor[K, V], p Produced[K, V], parents ...string) {
	if topic == nil {
		t.errorf("sink %q: there is no function that chooses its topic", name)
	}
	addSink(t, &node{name: name}, topic, p, parents)
}

func addSink[K, V any](t *Topology, n *node, extract TopicNameExtractor[K, V], p Produced[K, V], parents []string) {
	keys, values := serdeOr(p.Key), serdeOr(p.Value)
	t.needSerdes(n.name, "Produced", keys, values)
	if p.Partitioner != nil && p.Multicast != nil {
		t.errorf("sink %q: Produced has both a Partitioner and a Multicast", n.name)
	}
	n.kind, n.in = sinkKind, reflect.TypeFor[Record[K, V]]()
	n.partition = p.partitionKey(n.topic, keys)
	n.make = func(ctx *taskContext) (running, error) {
		made := &sinkNode[K, V]{
			keys: keys, values: values, topic: ctx.topicName(n.topic), extract: extract,
			partitioner: p.Partitioner, multicast: p.Multicast, task: ctx.Context,
		}
		if base, ok := keys.(serde.BaseKeyer); ok && p.byBaseKey && p.Partitioner == nil && p.Multicast == nil {
			made.windowed = &windowedPartitioner{base: base, hash: kgo.StickyKeyPartitioner(nil).ForTopic("")}
		}
		return made, nil
	}
	t.add(n, parents...)
}

// partitionKey is where the keys of a topic are, by a partitioner that needs no more
// than the key; nil: where the default one says.
func (p Produced[K, V]) partitionKey(topic string, keys serde.Serde[K]) func(key []byte, partitions int) (int32, error) {
	if base, ok := keys.(serde.BaseKeyer); ok && p.byBaseKey && p.Partitioner == nil && p.Multicast == nil {
		return func(key []byte, partitions int) (int32, error) {
			return iq.DefaultPartition(base.BaseKey(key), partitions), nil
		}
	}
	if p.Partitioner == nil && p.Multicast == nil {
		return nil
	}
	return func(key []byte, partitions int) (int32, error) {
		k, err := keys.Decode(key)
		if err != nil {
			return 0, err
		}
		r := Record[K, V]{Key: k, ValueNull: true}
		partition := int32(AnyPartition)
		if p.Partitioner != nil {
			partition = p.Partitioner(topic, r, partitions)
		} else if to, ok := p.Multicast(topic, r, partitions); ok {
			if len(to) != 1 {
				return 0, fmt.Errorf("the partitioner sends the key to %d partitions: ask for one of them", len(to))
			}
			partition = to[0]
		}
		if partition == AnyPartition {
			return iq.DefaultPartition(key, partitions), nil
		}
		return partition, nil
	}
}

// sinkNode writes records to a topic.
type sinkNode[K, V any] struct {
	keys        serde.Serde[K]
	values      serde.Serde[V]
	topic       string // in the cluster
	extract     TopicNameExtractor[K, V]
	partitioner StreamPartitioner[K, V]
	multicast   MulticastPartitioner[K, V]
	windowed    *windowedPartitioner // nil: none
	task        *taskmgr.Context
}

// windowedPartitioner chooses the partition of a windowed key by the key within, as
// Java's WindowedStreamPartitioner does.
type windowedPartitioner struct {
	base  serde.BaseKeyer
	hash  kgo.TopicPartitioner
	probe kgo.Record // reused
}

func (p *windowedPartitioner) partition(key []byte, partitions int) int32 {
	if key == nil {
		return AnyPartition
	}
	p.probe.Key = p.base.BaseKey(key)
	return int32(p.hash.Partition(&p.probe, partitions))
}

func (n *sinkNode[K, V]) receive(r Record[K, V]) error {
	topic := n.topic
	if n.extract != nil {
		if topic = n.extract(r, recordContext(n.task)); topic == "" {
			return fmt.Errorf("the topic name extractor chose no topic")
		}
	}
	out := n.task.Out
	var key, value []byte
	if !r.KeyNull {
		b, err := n.keys.Append(out.Grab(), r.Key)
		if err != nil {
			return &SerializationError{Topic: topic, Part: "key", Err: err}
		}
		if b != nil {
			key = out.Keep(b)
		}
	}
	if !r.ValueNull {
		b, err := n.values.Append(out.Grab(), r.Value)
		if err != nil {
			return &SerializationError{Topic: topic, Part: "value", Err: err}
		}
		if b != nil {
			value = out.Keep(b)
		}
	}
	if n.partitioner == nil && n.multicast == nil && n.windowed == nil {
		return out.Send(topic, AnyPartition, key, value, r.Timestamp, r.Headers)
	}
	return n.sendPartitioned(r, topic, key, value)
}

// sendPartitioned sends a record where the partitioner says.
func (n *sinkNode[K, V]) sendPartitioned(r Record[K, V], topic string, key, value []byte) error {
	out := n.task.Out
	partitions, err := out.Partitions(topic)
	if err != nil {
		return err
	}
	send := func(partition int32) error {
		if partition < AnyPartition || int(partition) >= partitions {
			return fmt.Errorf("the partitioner chose partition %d of topic %q, which has %d", partition, topic, partitions)
		}
		return out.Send(topic, partition, key, value, r.Timestamp, r.Headers)
	}
	switch {
	case n.windowed != nil:
		return send(n.windowed.partition(key, partitions))
	case n.partitioner != nil:
		return send(n.partitioner(topic, r, partitions))
	}
	to, ok := n.multicast(topic, r, partitions)
	if !ok {
		return send(AnyPartition)
	}
	for _, partition := range to {
		if err := send(partition); err != nil {
			return err
		}
	}
	return nil
}

func (n *sinkNode[K, V]) connect(name string, _ running) error {
	return fmt.Errorf("streams: a sink has no children, and so not %q", name)
}
func (n *sinkNode[K, V]) open() error  { return nil }
func (n *sinkNode[K, V]) close() error { return nil }
