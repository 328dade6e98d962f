package streams

import (
	"errors"
	"fmt"
)

// TableTransformer computes the values of a table from those of another one, with
// the key and with state stores at hand. There is one instance for each task and
// for each use of the table's values, which one goroutine uses.
type TableTransformer[K, V, VOut any] interface {
	// Init is called once, before the first value; stores are restored.
	Init(ctx *TaskContext) error

	// Transform returns what the key's value becomes; exists is false where the
	// key is not in the table, or no longer. ok is false where it then isn't in
	// the new one. It may be called more than once for a value.
	Transform(key K, value V, exists bool) (out VOut, ok bool, err error)

	// Close is called once, when the task ends or moves to another member.
	Close() error
}

// TableTransformed says how a transformer is put into the DSL.
type TableTransformed[K, V any] struct {
	// Materialized names the operator and says how the new table is kept.
	Materialized Materialized[K, V]

	// Stores are the names of stores that the transformer uses and that
	// [Builder.AddStateStore] has added.
	Stores []string
}

// TableTransformValues is the table of what a transformer makes of each value
// (KIP-292).
func TableTransformValues[K, V, VOut any](t *KTable[K, V], newTransformer func() TableTransformer[K, V, VOut], options ...TableTransformed[K, VOut]) *KTable[K, VOut] {
	o := only(t.b, "TableTransformValues", options)
	t.b.needs("TableTransformValues", t.node, newTransformer)
	m := o.Materialized
	m.Key, m.Value = firstOf(m.Key, t.keys), serdeOr(m.Value)
	name := t.b.name(m.Processor, tableTransformValuesPrefix)
	kind := &transformedTable[K, V, VOut]{parent: t, newTransformer: newTransformer, store: m.Name, name: name, stores: o.Stores}
	n := t.b.add(name, func(n *planNode, topology *Topology) {
		kind.write(topology, name, n.parentNames())
		topology.ConnectProcessorAndStateStores(name, o.Stores...)
		if m.Name != "" {
			topology.AddStateStore(m.store(), name)
		}
	}, t.node)
	if o.Materialized.given() {
		n.versioning = m.versioning()
	}
	return &KTable[K, VOut]{b: t.b, node: n, sources: t.sources, keys: m.Key, values: m.Value, kind: kind}
}

// transformedTable is the tableKind of a table that a transformer computes. It has
// a store only if it was named.
type transformedTable[K, V, VOut any] struct {
	parent         *KTable[K, V]
	newTransformer func() TableTransformer[K, V, VOut]
	store          string // empty: none
	old            bool   // changes carry old values
	name           string
	stores         []string // that the transformer uses
}

func (k *transformedTable[K, V, VOut]) sendOld(force bool) bool {
	if k.store != "" || k.parent.kind.sendOld(force) {
		k.old = true
	}
	return k.old
}

func (k *transformedTable[K, V, VOut]) view() view[K, VOut] {
	if k.store != "" {
		return storeView[K, VOut](k.store)
	}
	of := k.parent.kind.view()
	return view[K, VOut]{
		stores: of.stores,
		open: func(ctx *taskContext) (getter[K, VOut], error) {
			get, err := of.open(ctx)
			if err != nil {
				return nil, err
			}
			transform, err := k.openTransform(ctx)
			return func(key K) (out VOut, timestamp int64, ok bool, err error) {
				v, timestamp, exists, err := get(key)
				return transform(key, v, timestamp, exists, err)
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
			transform, err := k.openTransform(ctx)
			return func(key K, asOf int64) (out VOut, timestamp int64, ok bool, err error) {
				v, timestamp, exists, err := get(key, asOf)
				return transform(key, v, timestamp, exists, err)
			}, err
		},
	}
}

// openTransform opens a transformer for values that are looked up.
func (k *transformedTable[K, V, VOut]) openTransform(ctx *taskContext) (func(key K, v V, timestamp int64, exists bool, err error) (VOut, int64, bool, error), error) {
	transformer := k.newTransformer()
	if err := transformer.Init(new(ctx.taskContext(k.name, k.stores))); err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	ctx.onClose = append(ctx.onClose, transformer.Close)
	return func(key K, v V, timestamp int64, exists bool, err error) (out VOut, _ int64, _ bool, _ error) {
		if err != nil {
			return out, 0, false, err
		}
		if !exists {
			timestamp = -1
		}
		transformed, ok, err := transformer.Transform(key, v, exists)
		n := valueIf(transformed, ok)
		return n.v, timestamp, n.ok, err
	}, nil
}

func (k *transformedTable[K, V, VOut]) write(t *Topology, name string, parents []string) {
	old := k.old
	node := addNode[K, change[V], K, change[VOut]](t, name, parents, nil)
	node.make = func(ctx *taskContext) (running, error) {
		out, err := newTableOut[K, VOut](ctx, k.store, old)
		return &transformedNode[K, V, VOut]{tableOut: out, transformer: k.newTransformer(), ctx: new(ctx.taskContext(name, node.stores))}, err
	}
}

type transformedNode[K, V, VOut any] struct {
	tableOut[K, VOut]
	transformer TableTransformer[K, V, VOut]
	ctx         *TaskContext
}

func (n *transformedNode[K, V, VOut]) open() error {
	return errors.Join(n.tableOut.open(), n.transformer.Init(n.ctx))
}
func (n *transformedNode[K, V, VOut]) close() error { return n.transformer.Close() }

func (n *transformedNode[K, V, VOut]) receive(r Record[K, change[V]]) (err error) {
	c := change[VOut]{outOfOrder: r.Value.outOfOrder}
	if c.new, err = n.transform(r.Key, r.Value.new); err != nil {
		return err
	}
	switch {
	case n.old && n.keeps:
		c.old, _, err = n.store.get(r.Key)
	case n.old:
		c.old, err = n.transform(r.Key, r.Value.old)
	}
	if err != nil {
		return err
	}
	return n.send(withValue(r, c))
}

func (n *transformedNode[K, V, VOut]) transform(k K, v nullable[V]) (nullable[VOut], error) {
	out, ok, err := n.transformer.Transform(k, v.v, v.ok)
	return valueIf(out, ok), err
}
