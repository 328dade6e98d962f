package streams

import (
	"regexp"
	"strings"

	"github.com/odradek-go/odradek/serde"
)

// KStream is a stream of records, each of them a fact of its own.
//
// Operators that change a type are functions, such as [FlatMapValues]; those
// that don't are methods.
type KStream[K, V any] struct {
	b      *Builder
	parent string // the node that sends its records
	keys   serde.Serde[K]
	values serde.Serde[V]

	// rekeyed says that keys may have changed since the records were
	// partitioned by them: what depends on keys has to repartition first.
	rekeyed bool
}

// Stream is the stream of a topic's records.
func Stream[K, V any](b *Builder, topic string, options ...Consumed[K, V]) *KStream[K, V] {
	c := only(b, "Stream", options)
	name := b.name(c.Name, sourcePrefix)
	c.Key, c.Value = serdeOr(c.Key), serdeOr(c.Value)
	b.add(func(t *Topology) { AddSource(t, name, c, topic) })
	return &KStream[K, V]{b: b, parent: name, keys: c.Key, values: c.Value}
}

// FlatMapValues turns each record into one for each of the values that f returns
// for its value, in their order. A null value reaches f as V's zero value.
func FlatMapValues[K, V, VOut any](s *KStream[K, V], f func(V) []VOut, name ...Named) *KStream[K, VOut] {
	given := only(s.b, "FlatMapValues", name)
	n := s.b.name(string(given), flatMapValuesPrefix)
	s.b.add(func(t *Topology) {
		addNode[K, V, K, VOut](t, n, []string{s.parent}, func(*taskContext) (running, error) {
			return &flatMapValuesNode[K, V, VOut]{f: f, isNil: nilCheck[VOut]()}, nil
		})
	})
	return &KStream[K, VOut]{b: s.b, parent: n, keys: s.keys, rekeyed: s.rekeyed}
}

type flatMapValuesNode[K, V, VOut any] struct {
	emitter[K, VOut]
	f     func(V) []VOut
	isNil func(VOut) bool
}

func (n *flatMapValuesNode[K, V, VOut]) receive(r Record[K, V]) error {
	for _, v := range n.f(r.Value) {
		out := withValue(r, v)
		out.ValueNull = n.isNil != nil && n.isNil(v)
		if err := n.forward(out); err != nil {
			return err
		}
	}
	return nil
}

// SelectKey gives each record the key that f returns for it. A null key or value
// reaches f as its type's zero value.
func SelectKey[K, V, KOut any](s *KStream[K, V], f func(K, V) KOut, name ...Named) *KStream[KOut, V] {
	given := only(s.b, "SelectKey", name)
	n := s.b.name(string(given), keySelectPrefix)
	addKeySelect(s, n, f)
	return &KStream[KOut, V]{b: s.b, parent: n, values: s.values, rekeyed: true}
}

// GroupBy groups the records by the key that f gives each of them. Because keys
// change, the groups are made behind a repartition topic. A null key or value
// reaches f as its type's zero value.
func GroupBy[K, V, KOut any](s *KStream[K, V], f func(K, V) KOut, options ...Grouped[KOut, V]) *KGroupedStream[KOut, V] {
	g := only(s.b, "GroupBy", options)
	n := s.b.name(g.Name, keySelectPrefix)
	addKeySelect(s, n, f)
	if g.Value == nil {
		g.Value = s.values
	}
	return &KGroupedStream[KOut, V]{
		b: s.b, parent: n, name: g.Name, keys: serdeOr(g.Key), values: serdeOr(g.Value), rekeyed: true,
	}
}

// GroupByKey groups the records by their keys. Where the keys may have changed,
// the groups are made behind a repartition topic.
func (s *KStream[K, V]) GroupByKey(options ...Grouped[K, V]) *KGroupedStream[K, V] {
	g := only(s.b, "GroupByKey", options)
	if g.Key == nil {
		g.Key = s.keys
	}
	if g.Value == nil {
		g.Value = s.values
	}
	return &KGroupedStream[K, V]{
		b: s.b, parent: s.parent, name: g.Name, keys: serdeOr(g.Key), values: serdeOr(g.Value), rekeyed: s.rekeyed,
	}
}

func addKeySelect[K, V, KOut any](s *KStream[K, V], name string, f func(K, V) KOut) {
	s.b.add(func(t *Topology) {
		addNode[K, V, KOut, V](t, name, []string{s.parent}, func(*taskContext) (running, error) {
			return &keySelectNode[K, V, KOut]{f: f, isNil: nilCheck[KOut]()}, nil
		})
	})
}

type keySelectNode[K, V, KOut any] struct {
	emitter[KOut, V]
	f     func(K, V) KOut
	isNil func(KOut) bool
}

func (n *keySelectNode[K, V, KOut]) receive(r Record[K, V]) error {
	key := n.f(r.Key, r.Value)
	return n.forward(Record[KOut, V]{
		Key: key, KeyNull: n.isNil != nil && n.isNil(key),
		Value: r.Value, ValueNull: r.ValueNull,
		Timestamp: r.Timestamp, Headers: r.Headers,
	})
}

// To writes the stream to a topic, which must exist.
func (s *KStream[K, V]) To(topic string, options ...Produced[K, V]) {
	p := only(s.b, "To", options)
	n := s.b.name(p.Name, sinkPrefix)
	if p.Key == nil {
		p.Key = s.keys
	}
	if p.Value == nil {
		p.Value = s.values
	}
	s.b.add(func(t *Topology) { AddSink(t, n, topic, p, s.parent) })
}

// generatedRepartition is the name of a repartition topic that nobody named:
// then its nodes have generated names too.
var generatedRepartition = regexp.MustCompile(`^KSTREAM.*-[0-9]{10}-repartition$`)

// repartition sends a stream through a repartition topic and returns the source
// behind it. Records without a key are dropped: they belong to no partition.
func repartition[K, V any](b *Builder, parent, name string, keys serde.Serde[K], values serde.Serde[V]) (source string) {
	topic := name
	if !strings.HasSuffix(topic, repartitionSuffix) {
		topic += repartitionSuffix
	}
	sink, filter, source := b.generate(sinkPrefix), b.generate(filterPrefix), b.generate(sourcePrefix)
	if !generatedRepartition.MatchString(topic) {
		sink, filter, source = topic+"-sink", topic+"-filter", topic+"-source"
	}
	b.add(func(t *Topology) {
		t.internal[topic] = internalTopic{}
		addNode[K, V, K, V](t, filter, []string{parent}, func(*taskContext) (running, error) {
			return &nullKeyFilterNode[K, V]{}, nil
		})
		AddSink(t, sink, topic, ProducedWith(keys, values), filter)
		AddSource(t, source, ConsumedWith(keys, values), topic)
	})
	return source
}

type nullKeyFilterNode[K, V any] struct{ emitter[K, V] }

func (n *nullKeyFilterNode[K, V]) receive(r Record[K, V]) error {
	if r.KeyNull {
		return nil
	}
	return n.forward(r)
}
