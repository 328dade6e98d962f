package streams

import "github.com/odradek-go/odradek/serde"

// Count is the table of how many entries each group has.
func (g *KGroupedTable[K, V]) Count(options ...Materialized[K, int64]) *KTable[K, int64] {
	m := only(g.b, "Count", options)
	return aggregateGroups(g, tableAggregatePrefix, m, initialized(
		func() int64 { return 0 },
		func(_ K, _ V, count int64) int64 { return count + 1 },
		func(_ K, _ V, count int64) int64 { return count - 1 },
	))
}

// Reduce is the table of what the values of each group come to: the first one,
// and then what add returns for the value so far and a new one, and subtract for
// the value so far and one that is no longer in the group. Nil deletes the key.
func (g *KGroupedTable[K, V]) Reduce(add, subtract func(aggregate, value V) V, options ...Materialized[K, V]) *KTable[K, V] {
	m := only(g.b, "Reduce", options)
	g.b.needs("Reduce", g.node, add, subtract)
	m.Value = firstOf(m.Value, g.values)
	known := nullableOf[V]()
	return aggregateGroups(g, tableReducePrefix, m, tableAggregation[K, V, V]{
		add: func(_ K, v V, aggregate nullable[V]) nullable[V] {
			if !aggregate.ok {
				return nullable[V]{v, true}
			}
			return known(add(aggregate.v, v))
		},
		subtract: func(_ K, v, aggregate V) nullable[V] { return known(subtract(aggregate, v)) },
	})
}

// TableAggregate is the table of what the entries of each group come to: what add
// returns for the key, a new value and the aggregate so far, which is
// initializer's at first, and subtract for a value that is no longer in the group.
// Nil deletes the key.
func TableAggregate[K, V, VOut any](g *KGroupedTable[K, V], initializer func() VOut, add, subtract func(key K, value V, aggregate VOut) VOut, options ...Materialized[K, VOut]) *KTable[K, VOut] {
	m := only(g.b, "TableAggregate", options)
	g.b.needs("TableAggregate", g.node, initializer, add, subtract)
	return aggregateGroups(g, tableAggregatePrefix, m, initialized(initializer, add, subtract))
}

// tableAggregation is what an aggregation does with a value that comes into a
// group, and with one that leaves it.
type tableAggregation[K, V, VOut any] struct {
	add      func(key K, value V, aggregate nullable[VOut]) nullable[VOut]
	subtract func(key K, value V, aggregate VOut) nullable[VOut]
}

// initialized is the aggregation of a group that begins with what initializer
// returns.
func initialized[K, V, VOut any](initializer func() VOut, add, subtract func(K, V, VOut) VOut) tableAggregation[K, V, VOut] {
	known := nullableOf[VOut]()
	return tableAggregation[K, V, VOut]{
		add: func(k K, v V, aggregate nullable[VOut]) nullable[VOut] {
			if !aggregate.ok {
				aggregate.v = initializer()
			}
			return known(add(k, v, aggregate.v))
		},
		subtract: func(k K, v V, aggregate VOut) nullable[VOut] { return known(subtract(k, v, aggregate)) },
	}
}

func aggregateGroups[K, V, VOut any](g *KGroupedTable[K, V], prefix string, m Materialized[K, VOut], a tableAggregation[K, V, VOut]) *KTable[K, VOut] {
	b := g.b
	m.storeName(&b.plan, tableAggregatePrefix)
	m.Key, m.Value = firstOf(m.Key, g.keys), serdeOr(m.Value)
	sink, source := b.suffixed(m.Processor, "-sink", sinkPrefix), b.suffixed(m.Processor, "-source", sourcePrefix)
	name := b.name(m.Processor, prefix)
	if g.repartitioned == nil || g.name == "" {
		g.repartitioned = g.repartition(sink, source, m.Name)
	}
	b.insert(g.repartitioned, g.node)
	kind := &aggregateTable[K, VOut]{store: m.Name}
	n := b.add(name, func(n *planNode, t *Topology) {
		old := kind.old
		addNode[K, change[V], K, change[VOut]](t, name, n.parentNames(), func(ctx *taskContext) (running, error) {
			out, err := newTableOut[K, VOut](ctx, m.Name, old)
			return &tableAggregateNode[K, V, VOut]{aggregates[K, VOut]{out}, a}, err
		})
		t.AddStateStore(m.store(), name)
	}, g.repartitioned)
	n.versioning = m.versioning()
	return &KTable[K, VOut]{b: b, node: n, sources: []string{source}, keys: m.Key, values: m.Value, kind: kind}
}

// repartition plans the repartition topic of the group, which has the name of the
// store unless the group has one.
func (g *KGroupedTable[K, V]) repartition(sink, source, store string) *planNode {
	topic := g.name + repartitionSuffix
	if g.name == "" {
		topic = store + repartitionSuffix
		g.b.generated[topic] = g.b.generated[store]
	}
	var values serde.Serde[change[V]]
	if g.values != nil {
		values = changeSerde[V]{g.values}
	}
	return &planNode{
		name:        source,
		repartition: &repartitionPlan{topic: topic},
		write: func(n *planNode, t *Topology) {
			t.internal[topic] = internalTopic{}
			AddSink(t, sink, topic, ProducedWith(g.keys, values), n.parentNames()...)
			AddSource(t, source, ConsumedWith(g.keys, values), topic)
		},
	}
}

type tableAggregateNode[K, V, VOut any] struct {
	aggregates[K, VOut]
	tableAggregation[K, V, VOut]
}

func (n *tableAggregateNode[K, V, VOut]) receive(r Record[K, change[V]]) error {
	before, timestamp, err := n.store.get(r.Key)
	if err != nil {
		return err
	}
	now := before
	if r.Value.old.ok && now.ok {
		now = n.subtract(r.Key, r.Value.old.v, now.v)
	}
	if r.Value.new.ok {
		now = n.add(r.Key, r.Value.new.v, now)
	}
	out := withValue(r, change[VOut]{new: now})
	out.Timestamp = n.latest(before, timestamp, r.Timestamp)
	return n.set(out, before)
}
