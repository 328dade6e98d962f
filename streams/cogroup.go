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
	group  any       // the *KGroupedStream
	behind *planNode // its node

	// stream plans the way from the group to a store of that name and returns
	// the node and the sources that lead there.
	stream func(store string) (*planNode, []string)

	// write writes the node that aggregates the group, and writeWindows likewise
	// for windows, where merge is for sessions alone.
	write        func(t *Topology, name string, parents []string, store string, old bool, initializer func() VOut)
	writeWindows func(t *Topology, name string, parents []string, kind *windowedTable[K, VOut], initializer func() VOut, merge func(key K, a, b VOut) VOut)
}

// Cogroup begins an aggregation of several grouped streams, of which g is the
// first: add returns the aggregate with one more of its values.
func Cogroup[K, V, VOut any](g *KGroupedStream[K, V], add func(key K, value V, aggregate VOut) VOut) *CogroupedKStream[K, VOut] {
	return AddCogroup(&CogroupedKStream[K, VOut]{b: g.from.b, keys: g.from.keys}, g, add)
}

// AddCogroup adds one more grouped stream to an aggregation that [Cogroup] has
// begun, and returns it.
func AddCogroup[K, V, VOut any](c *CogroupedKStream[K, VOut], g *KGroupedStream[K, V], add func(key K, value V, aggregate VOut) VOut) *CogroupedKStream[K, VOut] {
	c.b.needs("Cogroup", g.from.node, add)
	var repartitioned *KStream[K, V]
	part := &cogroupPart[K, VOut]{
		group: g, behind: g.from.node,
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
		writeWindows: func(t *Topology, name string, parents []string, kind *windowedTable[K, VOut], initializer func() VOut, merge func(K, VOut, VOut) VOut) {
			addWindowAggregate(t, name, parents, kind, initializedWindows(initializer, add, merge))
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
	m := c.materialized("Aggregate", options)
	c.b.needs("Aggregate", c.parts[0].behind, initializer)
	kind := &aggregateTable[K, VOut]{store: m.Name}
	return aggregateCogroup(c, m, cogroupTable[K, K, VOut]{
		kind: kind, keys: m.Key, store: m.store,
		write: func(part *cogroupPart[K, VOut], t *Topology, name string, parents []string) {
			part.write(t, name, parents, m.Name, kind.old, initializer)
		},
	})
}

// materialized says how the result is kept.
func (c *CogroupedKStream[K, VOut]) materialized(operator string, options []Materialized[K, VOut]) Materialized[K, VOut] {
	m := only(c.b, operator, options)
	m.storeName(&c.b.plan, cogroupAggregatePrefix)
	m.Key, m.Value = firstOf(m.Key, c.keys), serdeOr(m.Value)
	return m
}

// cogroupTable is what an aggregation of several streams makes, by whatever keys.
type cogroupTable[K, KOut, VOut any] struct {
	kind  tableKind[KOut, VOut]
	keys  serde.Serde[KOut]
	store func() StateStore
	write func(part *cogroupPart[K, VOut], t *Topology, name string, parents []string)
	grace *int64 // of windows
}

func aggregateCogroup[K, KOut, VOut any](c *CogroupedKStream[K, VOut], m Materialized[K, VOut], table cogroupTable[K, KOut, VOut]) *KTable[KOut, VOut] {
	b := c.b
	parents := make([]*planNode, len(c.parts))
	sources := make([][]string, len(c.parts))
	for i, part := range c.parts {
		parents[i], sources[i] = part.stream(m.Name)
	}
	b.copartition(sources...)

	nodes := make([]*planNode, len(c.parts))
	for i, part := range c.parts {
		name := b.suffixed(m.Processor, fmt.Sprintf("-cogroup-agg-%d", i), cogroupAggregatePrefix)
		nodes[i] = b.add(name, func(n *planNode, t *Topology) {
			table.write(part, t, name, n.parentNames())
			if i == 0 {
				t.AddStateStore(table.store(), name)
			} else {
				t.ConnectProcessorAndStateStores(name, m.Name)
			}
		}, parents[i])
		nodes[i].grace = table.grace
		nodes[i].versioning = m.versioning()
	}
	name := b.suffixed(m.Processor, "-cogroup-merge", cogroupMergePrefix)
	merge := b.add(name, func(n *planNode, t *Topology) {
		addNode[KOut, change[VOut], KOut, change[VOut]](t, name, n.parentNames(), func(*taskContext) (running, error) {
			return &joinMergeNode[KOut, VOut]{}, nil
		})
	}, nodes...)
	// As in Java, nothing that is joined with the table is copartitioned with what
	// the table comes from.
	return &KTable[KOut, VOut]{b: b, node: merge, sources: []string{name}, keys: table.keys, values: m.Value, kind: table.kind}
}
