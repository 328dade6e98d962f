package streams

// TableJoin is the table of what f returns for the values that a key has in both
// tables, an inner join. Nil is null. The tables' topics must have equal numbers of
// partitions.
func TableJoin[K, V, VOther, VOut any](t *KTable[K, V], other *KTable[K, VOther], f func(V, VOther) VOut, options ...Materialized[K, VOut]) *KTable[K, VOut] {
	return joinTables(t, other, "TableJoin", innerJoin, f, options)
}

// TableLeftJoin is like [TableJoin], and has the keys that only the first table has
// too. f gets the zero value for the other then.
func TableLeftJoin[K, V, VOther, VOut any](t *KTable[K, V], other *KTable[K, VOther], f func(V, VOther) VOut, options ...Materialized[K, VOut]) *KTable[K, VOut] {
	return joinTables(t, other, "TableLeftJoin", leftJoin, f, options)
}

// TableOuterJoin is like [TableJoin], and has the keys that only one of the tables
// has too. f gets the zero value for the other then.
func TableOuterJoin[K, V, VOther, VOut any](t *KTable[K, V], other *KTable[K, VOther], f func(V, VOther) VOut, options ...Materialized[K, VOut]) *KTable[K, VOut] {
	return joinTables(t, other, "TableOuterJoin", outerJoin, f, options)
}

// joinKind says which side of a join may be missing: none, the other, or one of
// both.
type joinKind int8

const (
	innerJoin joinKind = iota
	leftJoin
	outerJoin
)

// has says whether there is a result of values that are there or not.
func (k joinKind) has(this, other bool) bool {
	switch k {
	case innerJoin:
		return this && other
	case leftJoin:
		return this
	}
	return this || other
}

func joinTables[K, V, VOther, VOut any](t *KTable[K, V], other *KTable[K, VOther], operator string, kind joinKind, f func(V, VOther) VOut, options []Materialized[K, VOut]) *KTable[K, VOut] {
	b := t.b
	m := only(b, operator, options)
	b.needs(operator, t.node, f)
	if m.given() {
		m.storeName(&b.plan, tableMergePrefix)
	}
	m.Key, m.Value = firstOf(m.Key, t.keys), serdeOr(m.Value)
	name := b.name(m.Processor, tableMergePrefix)
	sources := b.copartition(t.sources, other.sources)
	if kind != innerJoin {
		t.kind.sendOld(true)
	}
	if kind == outerJoin {
		other.kind.sendOld(true)
	}
	joined := &joinedTable[K, V, VOther, VOut]{
		kind: kind, this: t, other: other, views: joinViews[K, V, VOther]{t.kind.view(), other.kind.view()},
		f: f, known: nullableOf[VOut](), store: m.Name,
	}
	thisName, otherName := b.suffixed(m.Processor, "-join-this", joinThisPrefix), b.suffixed(m.Processor, "-join-other", joinOtherPrefix)
	n := b.add(name, func(n *planNode, topology *Topology) {
		joined.write(topology, n, thisName, otherName)
		if m.Name != "" {
			topology.AddStateStore(m.store(), name)
		}
	}, t.node, other.node)
	n.versioning = m.versioning()
	return &KTable[K, VOut]{b: b, node: n, sources: sources, keys: m.Key, values: m.Value, kind: joined}
}

// joinedTable is the tableKind of a join. It has a store only if it was asked for.
type joinedTable[K, V, VOther, VOut any] struct {
	kind  joinKind
	this  *KTable[K, V]
	other *KTable[K, VOther]
	views joinViews[K, V, VOther]
	f     func(V, VOther) VOut
	known func(VOut) nullable[VOut]
	store string // empty: none
	old   bool   // changes carry old values
}

// joinViews are how the values of both sides are looked up.
type joinViews[K, V, VOther any] struct {
	this  view[K, V]
	other view[K, VOther]
}

func (k *joinedTable[K, V, VOther, VOut]) sendOld(bool) bool {
	k.this.kind.sendOld(true)
	k.other.kind.sendOld(true)
	k.old = true
	return true
}

func (k *joinedTable[K, V, VOther, VOut]) view() view[K, VOut] {
	if k.store != "" {
		return storeView[K, VOut](k.store)
	}
	return view[K, VOut]{stores: union(k.views.this.stores, k.views.other.stores), open: func(ctx *taskContext) (getter[K, VOut], error) {
		getThis, err := k.views.this.open(ctx)
		if err != nil {
			return nil, err
		}
		getOther, err := k.views.other.open(ctx)
		return func(key K) (out VOut, _ int64, ok bool, err error) {
			var this nullable[V]
			var other nullable[VOther]
			timestamp, otherTimestamp := int64(-1), int64(-1)
			if this.v, timestamp, this.ok, err = getThis(key); err != nil {
				return out, 0, false, err
			}
			if other.v, otherTimestamp, other.ok, err = getOther(key); err != nil {
				return out, 0, false, err
			}
			switch {
			case !this.ok:
				timestamp = otherTimestamp
			case other.ok:
				timestamp = max(timestamp, otherTimestamp)
			}
			joined := k.join(this, other)
			return joined.v, timestamp, joined.ok, nil
		}, err
	}}
}

func (k *joinedTable[K, V, VOther, VOut]) join(this nullable[V], other nullable[VOther]) (out nullable[VOut]) {
	if k.kind.has(this.ok, other.ok) {
		out = k.known(k.f(this.v, other.v))
	}
	return out
}

func (k *joinedTable[K, V, VOther, VOut]) reverse(other nullable[VOther], this nullable[V]) nullable[VOut] {
	return k.join(this, other)
}

// write writes the three nodes: one for the changes of each side, and one that
// they lead to.
func (k *joinedTable[K, V, VOther, VOut]) write(t *Topology, n *planNode, thisName, otherName string) {
	old, versionedThis, versionedOther := k.old, n.versionedFrom(k.this.node.name), n.versionedFrom(k.other.node.name)
	addNode[K, change[V], K, change[VOut]](t, thisName, []string{k.this.node.name}, func(ctx *taskContext) (running, error) {
		get, err := k.views.other.open(ctx)
		return &joinSideNode[K, V, VOther, VOut]{get: get, alone: k.kind != innerJoin, join: k.join, old: old, versioned: versionedThis}, err
	})
	addNode[K, change[VOther], K, change[VOut]](t, otherName, []string{k.other.node.name}, func(ctx *taskContext) (running, error) {
		get, err := k.views.this.open(ctx)
		return &joinSideNode[K, VOther, V, VOut]{get: get, alone: k.kind == outerJoin, join: k.reverse, old: old, versioned: versionedOther}, err
	})
	addNode[K, change[VOut], K, change[VOut]](t, n.name, []string{thisName, otherName}, func(ctx *taskContext) (running, error) {
		out, err := newTableOut[K, VOut](ctx, k.store, old)
		return &joinMergeNode[K, VOut]{out}, err
	})
	t.ConnectProcessorAndStateStores(thisName, k.views.other.stores...)
	t.ConnectProcessorAndStateStores(otherName, k.views.this.stores...)
}

// joinSideNode joins the changes of one side with the values of the other.
type joinSideNode[K, V, VOther, VOut any] struct {
	emitter[K, change[VOut]]
	get       getter[K, VOther]
	alone     bool // there are results without the other side
	join      func(nullable[V], nullable[VOther]) nullable[VOut]
	old       bool
	versioned bool // changes out of order don't matter
}

func (n *joinSideNode[K, V, VOther, VOut]) receive(r Record[K, change[V]]) error {
	if r.KeyNull || n.versioned && r.Value.outOfOrder {
		return nil
	}
	var other nullable[VOther]
	var timestamp int64
	var err error
	if other.v, timestamp, other.ok, err = n.get(r.Key); err != nil {
		return err
	}
	if !other.ok {
		if !n.alone || !r.Value.new.ok && !r.Value.old.ok {
			return nil
		}
		timestamp = r.Timestamp
	}
	c := change[VOut]{new: n.join(r.Value.new, other), outOfOrder: r.Value.outOfOrder}
	if n.old {
		c.old = n.join(r.Value.old, other)
	}
	out := withValue(r, c)
	out.Timestamp = max(timestamp, r.Timestamp)
	return n.forward(out)
}

// joinMergeNode takes the results of both sides.
type joinMergeNode[K, V any] struct{ tableOut[K, V] }

func (n *joinMergeNode[K, V]) receive(r Record[K, change[V]]) error { return n.send(r) }
