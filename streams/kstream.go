package streams

import (
	"github.com/odradek-go/odradek/serde"
)

// KStream is a stream of records, each of them a fact of its own.
//
// Operators that change a type are functions, such as [FlatMapValues]; those
// that don't are methods. A null key or value reaches a function that takes keys
// and values as its type's zero value.
type KStream[K, V any] struct {
	b       *Builder
	node    *planNode // that sends its records
	sources []string  // that they come from, by name
	keys    serde.Serde[K]
	values  serde.Serde[V]

	// rekeyed says that keys may have changed since the records were
	// partitioned by them: what depends on keys has to repartition first.
	rekeyed bool

	// repartitioned is the repartition that the stream's joins share.
	repartitioned *planNode
}

// Named names an operator; empty: generated.
type Named string

// operator plans a node below the stream, made by make for each task.
func operator[KIn, VIn, KOut, VOut any](s *KStream[KIn, VIn], name string, make func(*taskContext) (running, error)) *planNode {
	return s.b.add(name, func(n *planNode, t *Topology) {
		addNode[KIn, VIn, KOut, VOut](t, name, n.parentNames(), make)
	}, s.node)
}

// transform plans a node below the stream that turns a record into another one,
// or drops it.
func transform[KIn, VIn, KOut, VOut any](s *KStream[KIn, VIn], name string, f func(Record[KIn, VIn]) (Record[KOut, VOut], bool)) *planNode {
	return operator[KIn, VIn, KOut, VOut](s, name, func(*taskContext) (running, error) {
		return &transformNode[KIn, VIn, KOut, VOut]{f: f}, nil
	})
}

type transformNode[KIn, VIn, KOut, VOut any] struct {
	emitter[KOut, VOut]
	f func(Record[KIn, VIn]) (Record[KOut, VOut], bool)
}

func (n *transformNode[KIn, VIn, KOut, VOut]) receive(r Record[KIn, VIn]) error {
	if out, ok := n.f(r); ok {
		return n.forward(out)
	}
	return nil
}

// at is the stream behind a node that changes neither types nor keys.
func (s *KStream[K, V]) at(n *planNode) *KStream[K, V] {
	return &KStream[K, V]{b: s.b, node: n, sources: s.sources, keys: s.keys, values: s.values, rekeyed: s.rekeyed}
}

// valuesAt is the stream behind a node that changes values.
func valuesAt[K, V, VOut any](s *KStream[K, V], n *planNode) *KStream[K, VOut] {
	n.valueChanging = true
	return &KStream[K, VOut]{b: s.b, node: n, sources: s.sources, keys: s.keys, rekeyed: s.rekeyed}
}

// keysAt is the stream behind a node that changes keys.
func keysAt[K, V, KOut, VOut any](s *KStream[K, V], n *planNode) *KStream[KOut, VOut] {
	n.keyChanging = true
	return &KStream[KOut, VOut]{b: s.b, node: n, sources: s.sources, rekeyed: true}
}

// To writes the stream to a topic, which must exist.
func (s *KStream[K, V]) To(topic string, options ...Produced[K, V]) {
	p := s.produced("To", options)
	s.b.add(p.Name, func(n *planNode, t *Topology) { AddSink(t, p.Name, topic, p, n.parentNames()...) }, s.node)
}

// ToDynamic writes each record of the stream to the topic that is chosen for it.
func (s *KStream[K, V]) ToDynamic(topic TopicNameExtractor[K, V], options ...Produced[K, V]) {
	p := s.produced("ToDynamic", options)
	s.b.add(p.Name, func(n *planNode, t *Topology) { AddDynamicSink(t, p.Name, topic, p, n.parentNames()...) }, s.node)
}

func (s *KStream[K, V]) produced(operator string, options []Produced[K, V]) Produced[K, V] {
	p := only(s.b, operator, options)
	p.Name = s.b.name(p.Name, sinkPrefix)
	p.byBaseKey = true
	if p.Key == nil {
		p.Key = s.keys
	}
	if p.Value == nil {
		p.Value = s.values
	}
	return p
}
