package streams

import (
	"fmt"

	"github.com/odradek-go/odradek/serde"
)

// CogroupedKStream is several grouped streams that are aggregated into one table
// (KIP-150). Make one with [Cogroup].
type CogroupedKStream[K, VOut any] struct {
	b     *Builder
	keys  serde.Serde[K]
	parts []*cogroupPart[K, VOut]
}

// cogroupPart is one of the grouped streams, whatever its values.
type cogroupPart[K, VOut any] struct {
	group any // the *KGroupedStream

	// stream plans the way from the group to a store of that name and returns
	// the node and the sources that lead there.
	stream func(store string) (*planNode, []string)

	write func(t *Topology, name string, parents []string, store string, old bool, initializer func() VOut)
}

// Cogroup begins an aggregation of several grouped streams, of which g is the
// first: add returns the aggregate with one more of its values.
func Cogroup[K, V, VOut any](g *KGroupedStream[K, V], add func(key K, value V, aggregate VOut) VOut) *CogroupedKStream[K, VOut] {
	return AddCogroup(&CogroupedKStream[K, VOut]{b: g.from.b, keys: g.from.keys}, g, add)
}

// AddCogroup adds one more grouped stream to an aggregation that [Cogroup] has
// begun, and returns it.
func AddCogroup[K, V, VOut any](c *CogroupedKStream[K, VOut], g *KGroupedStream[K, V], add func(key K, value V, aggregate VOut) VOut) *CogroupedKStream[K, VOut] {
	var repartitioned *KStream[K, V]
	part := &cogroupPart[K, VOut]{
		group: g,
		stream: func(store string) (*planNode, []string) {
			if s := g.from; !s.rekeyed {
				return s.node, s.sources
			}
			r, explicit := g.repartitioning(store)
			n := planRepartition(&c.b.plan, r, explicit)
			n.repartition.optimizable = true
			if repartitioned == nil {
				c.b.insert(n, g.from.node)
				repartitioned = g.from.behind(n, r)
			}
			return repartitioned.node, repartitioned.sources
		},
		write: func(t *Topology, name string, parents []string, store string, old bool, initializer func() VOut) {
			addAggregate(t, name, parents, store, old, aggregator(initializer, add))
		},
	}
	for i, other := range c.parts {
		if other.group == any(g) { // as in Java: the last function counts
			c.parts[i] = part
			return c
		}
	}
	c.parts = append(c.parts, part)
	return c
}

// Aggregate is the table of what the records of each key in all streams come to,
// beginning with what initializer returns. Nil deletes the key. Records with a null
// key or value are skipped. An aggregate's time is that of its latest record.
func (c *CogroupedKStream[K, VOut]) Aggregate(initializer func() VOut, options ...Materialized[K, VOut]) *KTable[K, VOut] {
	b := c.b
	m := only(b, "Aggregate", options)
	m.storeName(&b.plan, cogroupAggregatePrefix)
	m.Key, m.Value = firstOf(m.Key, c.keys), serdeOr(m.Value)
	parents := make([]*planNode, len(c.parts))
	sources := make([][]string, len(c.parts))
	for i, part := range c.parts {
		parents[i], sources[i] = part.stream(m.Name)
	}
	b.copartition(sources...)

	kind := &aggregateTable[K, VOut]{store: m.Name}
	nodes := make([]*planNode, len(c.parts))
	for i, part := range c.parts {
		name := b.suffixed(m.Processor, fmt.Sprintf("-cogroup-agg-%d", i), cogroupAggregatePrefix)
		nodes[i] = b.add(name, func(n *planNode, t *Topology) {
			part.write(t, name, n.parentNames(), m.Name, kind.old, initializer)
			if i == 0 {
				t.AddStateStore(m.store(), name)
			} else {
				t.ConnectProcessorAndStateStores(name, m.Name)
			}
		}, parents[i])
	}
	name := b.suffixed(m.Processor, "-cogroup-merge", cogroupMergePrefix)
	merge := b.add(name, func(n *planNode, t *Topology) {
		addNode[K, change[VOut], K, change[VOut]](t, name, n.parentNames(), func(*taskContext) (running, error) {
			return &joinMergeNode[K, VOut]{}, nil
		})
	}, nodes...)
	// As in Java, nothing that is joined with the table is copartitioned with what
	// the table comes from.
	return &KTable[K, VOut]{b: b, node: merge, sources: []string{name}, keys: m.Key, values: m.Value, kind: kind}
}
