package streams

import "github.com/odradek-go/odradek/serde"

// Filter is the table of the entries for which keep returns true.
func (t *KTable[K, V]) Filter(keep func(K, V) bool, options ...Materialized[K, V]) *KTable[K, V] {
	m := only(t.b, "Filter", options)
	t.b.needs("Filter", t.node, keep)
	kind := &derivedTable[K, V, V]{parent: t, dropNothing: true, compute: func(k K, v V) nullable[V] { return valueIf(v, keep(k, v)) }}
	kind.old = t.kind.sendOld(false)
	return derive(t, tableFilterPrefix, m, t.values, kind)
}

// FilterNot is the table of the entries for which drop returns false.
func (t *KTable[K, V]) FilterNot(drop func(K, V) bool, options ...Materialized[K, V]) *KTable[K, V] {
	t.b.needs("FilterNot", t.node, drop)
	return t.Filter(func(k K, v V) bool { return !drop(k, v) }, options...)
}

// TableMapValues is the table of what f returns for each value. Nil is null: the
// key is not in the table.
func TableMapValues[K, V, VOut any](t *KTable[K, V], f func(V) VOut, options ...Materialized[K, VOut]) *KTable[K, VOut] {
	t.b.needs("TableMapValues", t.node, f)
	return TableMapValuesWithKey(t, func(_ K, v V) VOut { return f(v) }, options...)
}

// TableMapValuesWithKey is [TableMapValues] with a function that sees the key,
// which it must not change.
func TableMapValuesWithKey[K, V, VOut any](t *KTable[K, V], f func(K, V) VOut, options ...Materialized[K, VOut]) *KTable[K, VOut] {
	m := only(t.b, "TableMapValues", options)
	t.b.needs("TableMapValuesWithKey", t.node, f)
	known := nullableOf[VOut]()
	return derive(t, tableMapValuesPrefix, m, nil, &derivedTable[K, V, VOut]{
		parent: t, compute: func(k K, v V) nullable[VOut] { return known(f(k, v)) },
	})
}

func derive[K, V, VOut any](t *KTable[K, V], prefix string, m Materialized[K, VOut], values serde.Serde[VOut], kind *derivedTable[K, V, VOut]) *KTable[K, VOut] {
	b := t.b
	versioning := asParents
	if m.given() {
		versioning = m.versioning()
		if m.Name == "" {
			b.generateStore(prefix) // as in Java, which does not use it
		}
	}
	m.Key, m.Value = firstOf(m.Key, t.keys), firstOf(m.Value, values)
	kind.store = m.Name
	name := b.name(m.Processor, prefix)
	n := tableOperator[K, V, K, change[VOut]](t, name, nil)
	n.versioning = versioning
	n.write = func(n *planNode, topology *Topology) {
		old, dropNothing := kind.old, kind.dropNothing && !n.versionedFrom(t.node.name)
		addNode[K, change[V], K, change[VOut]](topology, name, n.parentNames(), func(ctx *taskContext) (running, error) {
			out, err := newTableOut[K, VOut](ctx, kind.store, old)
			return &derivedNode[K, V, VOut]{out, kind, dropNothing}, err
		})
		if m.Name != "" {
			topology.AddStateStore(m.store(), name)
		}
	}
	return &KTable[K, VOut]{b: b, node: n, sources: t.sources, keys: m.Key, values: m.Value, kind: kind}
}

// derivedTable is the tableKind of a table that is computed from another one, value
// by value. It has a store only if it was named.
type derivedTable[K, V, VOut any] struct {
	parent      *KTable[K, V]
	compute     func(K, V) nullable[VOut]
	store       string // empty: none
	old         bool   // changes carry old values
	dropNothing bool   // changes from nothing to nothing are not sent on, where that is known and matters
}

func (k *derivedTable[K, V, VOut]) sendOld(force bool) bool {
	if k.store != "" || k.parent.kind.sendOld(force) {
		k.old = true
	}
	return k.old
}

func (k *derivedTable[K, V, VOut]) view() view[K, VOut] {
	if k.store != "" {
		return storeView[K, VOut](k.store)
	}
	of := k.parent.kind.view()
	return view[K, VOut]{
		stores: of.stores,
		open: func(ctx *taskContext) (getter[K, VOut], error) {
			get, err := of.open(ctx)
			return func(key K) (out VOut, timestamp int64, ok bool, err error) {
				v, timestamp, ok, err := get(key)
				return k.computeFound(key, v, timestamp, ok, err)
			}, err
		},
		openAsOf: func(ctx *taskContext) (asOfGetter[K, VOut], error) {
			if of.openAsOf == nil {
				return nil, nil
			}
			get, err := of.openAsOf(ctx)
			if get == nil {
				return nil, err
			}
			return func(key K, asOf int64) (out VOut, timestamp int64, ok bool, err error) {
				v, timestamp, ok, err := get(key, asOf)
				return k.computeFound(key, v, timestamp, ok, err)
			}, err
		},
	}
}

// computeFound computes a value from what was looked up.
func (k *derivedTable[K, V, VOut]) computeFound(key K, v V, timestamp int64, ok bool, err error) (out VOut, _ int64, _ bool, _ error) {
	if !ok || err != nil {
		return out, 0, false, err
	}
	computed := k.compute(key, v)
	return computed.v, timestamp, computed.ok, nil
}

func (k *derivedTable[K, V, VOut]) computeNullable(key K, v nullable[V]) (out nullable[VOut]) {
	if v.ok {
		out = k.compute(key, v.v)
	}
	return out
}

type derivedNode[K, V, VOut any] struct {
	tableOut[K, VOut]
	kind        *derivedTable[K, V, VOut]
	dropNothing bool
}

func (n *derivedNode[K, V, VOut]) receive(r Record[K, change[V]]) error {
	c := change[VOut]{new: n.kind.computeNullable(r.Key, r.Value.new), outOfOrder: r.Value.outOfOrder}
	if n.old {
		if !n.keeps {
			c.old = n.kind.computeNullable(r.Key, r.Value.old)
		} else {
			var err error
			if c.old, _, err = n.store.get(r.Key); err != nil {
				return err
			}
		}
		if n.dropNothing && !c.old.ok && !c.new.ok {
			return nil
		}
	}
	return n.send(withValue(r, c))
}
