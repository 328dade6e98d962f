package streams

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/odradek-go/odradek/serde"
)

// Topology is a graph of sources, processors and sinks. It is made node by node
// with [AddSource], [AddProcessor], [AddSink] and [Topology.AddStateStore], or by
// a [Builder] from the DSL.
//
// What is wrong with a call is reported by [NewApp], all of it together, with the
// names of the nodes.
type Topology struct {
	nodes         []*node // in the order of the calls
	byName        map[string]*node
	stores        []*store
	internal      map[string]internalTopic // repartition topics, by name without the application id
	copartitioned [][]string               // groups of sources, by name
	format        StoreFormat              // of the DSL's stores
	errs          []error
}

type nodeKind int8

const (
	sourceKind nodeKind = iota + 1 // the numbers of KIP-1331's node types
	processorKind
	sinkKind
)

// node is one node of a topology.
type node struct {
	name     string
	kind     nodeKind
	parents  []*node
	children []*node
	topics   []string       // that a source reads
	pattern  *regexp.Regexp // of the topics that a source reads; nil: they are named
	reset    OffsetReset
	topic    string // that a sink writes, empty if it chooses
	// partition is where a sink sends a key that is encoded; nil: where the default
	// partitioner says.
	partition func(key []byte, partitions int) (int32, error)
	stores    []string // that a processor uses
	in, out   reflect.Type
	make      func(*taskContext) (running, error)
	global    bool // it fills a global store
}

// store is one state store of a topology and the processors that use it.
type store struct {
	StateStore
	users  []*node
	global bool
}

// NewTopology returns an empty topology.
func NewTopology() *Topology {
	return &Topology{byName: make(map[string]*node), internal: make(map[string]internalTopic)}
}

// AddSource adds a source that reads topics. The serdes may be left out where
// [serde.For] knows one.
func AddSource[K, V any](t *Topology, name string, c Consumed[K, V], topics ...string) {
	n := newSource(t, name, c)
	n.topics = topics
	if len(topics) == 0 {
		t.errorf("source %q: no topic to read", name)
	}
	for _, topic := range topics {
		if err := checkTopicName(topic); err != nil {
			t.errorf("source %q: topic %q: %w", name, topic, err)
		}
		for _, other := range t.nodes {
			if slices.Contains(other.topics, topic) || other.pattern != nil && wholeNames(other.pattern)(topic) {
				t.errorf("source %q: topic %q is read by source %q already", name, topic, other.name)
			}
		}
	}
	t.add(n)
}

// newSource makes a source whose topics are yet to be told.
func newSource[K, V any](t *Topology, name string, c Consumed[K, V]) *node {
	keys, values := serdeOr(c.Key), serdeOr(c.Value)
	if err := c.OffsetReset.check(); err != nil {
		t.errorf("source %q: %w", name, err)
	}
	t.needSerdes(name, "Consumed", keys, values)
	return &node{
		name: name, kind: sourceKind, reset: c.OffsetReset, out: reflect.TypeFor[Record[K, V]](),
		make: func(*taskContext) (running, error) {
			return &sourceNode[K, V]{keys: keys, values: values, extract: c.TimestampExtractor}, nil
		},
	}
}

// AddProcessor adds a processor below parents. Each task calls newProcessor once.
func AddProcessor[KIn, VIn, KOut, VOut any](t *Topology, name string, newProcessor func() Processor[KIn, VIn, KOut, VOut], parents ...string) {
	n := addNode[KIn, VIn, KOut, VOut](t, name, parents, nil)
	if newProcessor == nil {
		t.errorf("processor %q: there is no function that makes it", name)
	}
	n.make = func(ctx *taskContext) (running, error) {
		p := &processorNode[KIn, VIn, KOut, VOut]{processor: newProcessor()}
		if p.processor == nil {
			return nil, fmt.Errorf("streams: processor %q: the function that makes it returned nil", name)
		}
		p.ctx = &ProcessorContext[KOut, VOut]{ctx.taskContext(name, n.stores), &p.emitter}
		return p, nil
	}
}

// AddStateStore adds a state store and connects it to processors.
func (t *Topology) AddStateStore(s StateStore, processors ...string) {
	for _, other := range t.stores {
		if other.Name == s.Name {
			t.errorf("state store %q: there is one of that name already", s.Name)
			return
		}
	}
	switch {
	case s.err != nil:
		t.errorf("state store %q: %w", s.Name, s.err)
	case s.make == nil:
		t.errorf("state store %q: make it with a function such as NewTimestampedKeyValueStore", s.Name)
	}
	if err := checkTopicName(s.Name); err != nil {
		t.errorf("state store %q, which names a changelog topic: %w", s.Name, err)
	}
	t.stores = append(t.stores, &store{StateStore: s})
	for _, name := range processors {
		t.ConnectProcessorAndStateStores(name, s.Name)
	}
}

// shareStateStore connects a processor to a store that several add, whichever comes
// first.
func (t *Topology) shareStateStore(s StateStore, processor string) {
	if slices.ContainsFunc(t.stores, func(other *store) bool { return other.Name == s.Name }) {
		t.ConnectProcessorAndStateStores(processor, s.Name)
		return
	}
	t.AddStateStore(s, processor)
}

// ConnectProcessorAndStateStores connects a processor to stores that were added.
// Processors that share a store are run by the same tasks.
func (t *Topology) ConnectProcessorAndStateStores(processor string, stores ...string) {
	n := t.byName[processor]
	for _, name := range stores {
		i := slices.IndexFunc(t.stores, func(s *store) bool { return s.Name == name })
		switch {
		case n == nil || n.kind != processorKind:
			t.errorf("state store %q: there is no processor %q to connect it to", name, processor)
		case i < 0:
			t.errorf("processor %q: there is no state store %q to connect it to", processor, name)
		case t.stores[i].global:
			t.errorf("processor %q: state store %q is global, and used without being connected to it", processor, name)
		case !slices.Contains(n.stores, name):
			t.stores[i].users = append(t.stores[i].users, n)
			n.stores = append(n.stores, name)
		}
	}
}

// internalTopics are the repartition topics, by name without the application id.
func (t *Topology) internalTopics() []string { return slices.Sorted(maps.Keys(t.internal)) }

// addNode adds a node that takes Record[KIn, VIn] and sends Record[KOut, VOut].
func addNode[KIn, VIn, KOut, VOut any](t *Topology, name string, parents []string, make func(*taskContext) (running, error)) *node {
	n := &node{
		name: name, kind: processorKind, make: make,
		in: reflect.TypeFor[Record[KIn, VIn]](), out: reflect.TypeFor[Record[KOut, VOut]](),
	}
	t.add(n, parents...)
	return n
}

// add adds a node below parents, which must be there and send what n takes.
func (t *Topology) add(n *node, parents ...string) {
	if n.name == "" {
		t.errorf("a node has no name")
	}
	if t.byName[n.name] != nil {
		t.errorf("node %q: there is one of that name already", n.name)
		return
	}
	if n.kind != sourceKind && len(parents) == 0 {
		t.errorf("node %q: it has no parent", n.name)
	}
	t.nodes = append(t.nodes, n)
	t.byName[n.name] = n
	for _, name := range parents {
		p := t.byName[name]
		switch {
		case p == nil || p == n:
			t.errorf("node %q: there is no node %q to be its parent", n.name, name)
		case p.global:
			t.errorf("node %q: its parent %q fills a global store, and has no other children", n.name, name)
		case p.kind == sinkKind:
			t.errorf("node %q: its parent %q is a sink, which has no children", n.name, name)
		case p.out != n.in:
			t.errorf("node %q takes %v, but its parent %q sends %v", n.name, n.in, name, p.out)
		default:
			p.children = append(p.children, n)
			n.parents = append(n.parents, p)
		}
	}
}

func (t *Topology) errorf(format string, args ...any) {
	t.errs = append(t.errs, fmt.Errorf(format, args...))
}

func (t *Topology) needSerdes(node, option string, keys, values any) {
	if keys == nil {
		t.errorf("%q: no serde for its keys: give one with %s", node, option)
	}
	if values == nil {
		t.errorf("%q: no serde for its values: give one with %s", node, option)
	}
}

// check returns all that is wrong with the topology.
func (t *Topology) check() error {
	errs := slices.Clone(t.errs)
	if len(t.nodes) == 0 {
		errs = append(errs, errors.New("it has no nodes"))
	}
	for _, s := range t.stores {
		if len(s.users) == 0 {
			errs = append(errs, fmt.Errorf("state store %q: no processor is connected to it", s.Name))
		}
		if err := s.StateStore.check(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrTopology, errors.Join(errs...))
}

// serdeOr is s, or the standard serde of T; it is nil where T has none.
func serdeOr[T any](s serde.Serde[T]) serde.Serde[T] {
	if s == nil {
		s, _ = serde.For[T]()
	}
	return s
}
