package streams

// Count is the table of how many records there are of each key. Records with a
// null key or value are not counted. A count's time is that of its latest record.
func (g *KGroupedStream[K, V]) Count(options ...Materialized[K, int64]) *KTable[K, int64] {
	m := only(g.from.b, "Count", options)
	if m.given() && m.Name == "" {
		g.from.b.generateStore(aggregatePrefix) // as in Java, which names the store twice
	}
	return aggregateStream(g, aggregatePrefix, m, func(_ K, _ V, count nullable[int64]) (nullable[int64], nullable[int64]) {
		return nullable[int64]{count.v + 1, true}, nullable[int64]{count.v, true}
	})
}

// Reduce is the table of what the values of each key come to: the first one, and
// then what f returns for the value so far and the next one. Nil deletes the key.
// Records with a null key or value are skipped. A value's time is that of its
// latest record.
func (g *KGroupedStream[K, V]) Reduce(f func(aggregate, value V) V, options ...Materialized[K, V]) *KTable[K, V] {
	m := only(g.from.b, "Reduce", options)
	g.from.b.needs("Reduce", g.from.node, f)
	m.Value = firstOf(m.Value, g.from.values)
	known := nullableOf[V]()
	return aggregateStream(g, reducePrefix, m, func(_ K, value V, aggregate nullable[V]) (nullable[V], nullable[V]) {
		if !aggregate.ok {
			return nullable[V]{value, true}, aggregate
		}
		return known(f(aggregate.v, value)), aggregate
	})
}

// Aggregate is the table of what the records of each key come to: what add returns
// for the key, the value and the aggregate so far, which is initializer's at
// first. Nil deletes the key. Records with a null key or value are skipped. An
// aggregate's time is that of its latest record.
func Aggregate[K, V, VOut any](g *KGroupedStream[K, V], initializer func() VOut, add func(key K, value V, aggregate VOut) VOut, options ...Materialized[K, VOut]) *KTable[K, VOut] {
	m := only(g.from.b, "Aggregate", options)
	g.from.b.needs("Aggregate", g.from.node, initializer, add)
	return aggregateStream(g, aggregatePrefix, m, aggregator(initializer, add))
}

// aggregator is the function of an aggregation. What the initializer returns
// counts as the old value, as in Java.
func aggregator[K, V, VOut any](initializer func() VOut, add func(K, V, VOut) VOut) func(K, V, nullable[VOut]) (now, before nullable[VOut]) {
	known := nullableOf[VOut]()
	return func(k K, v V, aggregate nullable[VOut]) (now, before nullable[VOut]) {
		if !aggregate.ok {
			aggregate = known(initializer())
		}
		return known(add(k, v, aggregate.v)), aggregate
	}
}

func aggregateStream[K, V, VOut any](g *KGroupedStream[K, V], prefix string, m Materialized[K, VOut], f func(K, V, nullable[VOut]) (now, before nullable[VOut])) *KTable[K, VOut] {
	b := g.from.b
	m.storeName(&b.plan, prefix)
	m.Key, m.Value = firstOf(m.Key, g.from.keys), serdeOr(m.Value)
	name := b.name(m.Processor, prefix)
	s := g.stream(m.Name)
	kind := &aggregateTable[K, VOut]{store: m.Name}
	n := b.add(name, func(n *planNode, t *Topology) {
		addAggregate(t, name, n.parentNames(), m.Name, kind.old, f)
		t.AddStateStore(m.store(), name)
	}, s.node)
	n.versioning = m.versioning()
	return &KTable[K, VOut]{b: b, node: n, sources: s.sources, keys: m.Key, values: m.Value, kind: kind}
}

// aggregateTable is the tableKind of an aggregation, which always has a store.
type aggregateTable[K, V any] struct {
	store string
	old   bool // changes carry old values
}

func (k *aggregateTable[K, V]) sendOld(bool) bool { k.old = true; return true }
func (k *aggregateTable[K, V]) view() view[K, V]  { return storeView[K, V](k.store) }

func addAggregate[K, V, VOut any](t *Topology, name string, parents []string, store string, old bool, f func(K, V, nullable[VOut]) (now, before nullable[VOut])) {
	addNode[K, V, K, change[VOut]](t, name, parents, func(ctx *taskContext) (running, error) {
		out, err := newTableOut[K, VOut](ctx, store, old)
		return &aggregateNode[K, V, VOut]{aggregates[K, VOut]{out}, f}, err
	})
}

// aggregates is what every node has that keeps an aggregate for each key, and sends
// its changes.
type aggregates[K, V any] struct{ tableOut[K, V] }

// latest is the time of an aggregate that takes in a record, when what it was
// before is of the time at.
func (a *aggregates[K, V]) latest(before nullable[V], at, record int64) int64 {
	if before.ok {
		return max(at, record)
	}
	return record
}

// set stores what r says that the aggregate of its key is now, and sends r on.
func (a *aggregates[K, V]) set(r Record[K, change[V]], before nullable[V]) error {
	if a.old {
		r.Value.old = before
	}
	return a.send(r)
}

type aggregateNode[K, V, VOut any] struct {
	aggregates[K, VOut]
	f func(K, V, nullable[VOut]) (now, before nullable[VOut])
}

func (n *aggregateNode[K, V, VOut]) receive(r Record[K, V]) error {
	if r.KeyNull || r.ValueNull {
		return nil
	}
	aggregate, timestamp, err := n.store.get(r.Key)
	if err != nil {
		return err
	}
	now, before := n.f(r.Key, r.Value, aggregate)
	out := withValue(r, change[VOut]{new: now})
	out.Timestamp = n.latest(aggregate, timestamp, r.Timestamp)
	return n.set(out, before)
}
