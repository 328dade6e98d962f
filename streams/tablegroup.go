package streams

import (
	"bytes"

	"github.com/odradek-go/odradek/serde"
)

// KGroupedTable is a table whose entries are grouped by other keys, ready to be
// aggregated into another table. Make one with [TableGroupBy].
type KGroupedTable[K, V any] struct {
	b      *Builder
	node   *planNode
	name   string // as given with Grouped, empty otherwise
	keys   serde.Serde[K]
	values serde.Serde[V]

	// repartitioned is the repartition that the group's aggregations share
	// where it has a name.
	repartitioned *planNode
}

// TableGroupBy groups the entries of a table by the key that f returns for each of
// them, with the value to aggregate. Entries for which either is nil are in no
// group. The groups are made behind a repartition topic.
func TableGroupBy[K, V, KOut, VOut any](t *KTable[K, V], f func(K, V) (KOut, VOut), options ...Grouped[KOut, VOut]) *KGroupedTable[KOut, VOut] {
	g := only(t.b, "TableGroupBy", options)
	t.b.needs("TableGroupBy", t.node, f)
	g.Key, g.Value = serdeOr(g.Key), serdeOr(g.Value)
	name := t.b.name(g.Name, tableSelectPrefix)
	n := t.b.add(name, func(n *planNode, topology *Topology) {
		versioned := n.versionedFrom(t.node.name)
		addNode[K, change[V], KOut, change[VOut]](topology, name, n.parentNames(), func(*taskContext) (running, error) {
			return &tableSelectNode[K, V, KOut, VOut]{f: f, keys: g.Key, nulls: newNulls[KOut, VOut](), versioned: versioned}, nil
		})
	}, t.node)
	t.kind.sendOld(true)
	return &KGroupedTable[KOut, VOut]{b: t.b, node: n, name: g.Name, keys: g.Key, values: g.Value}
}

// tableSelectNode turns the changes of a table into changes of the groups.
type tableSelectNode[K, V, KOut, VOut any] struct {
	emitter[KOut, change[VOut]]
	f     func(K, V) (KOut, VOut)
	keys  serde.Serde[KOut]
	nulls nulls[KOut, VOut]

	versioned bool // changes out of order don't matter

	oldKey, newKey []byte // reused
}

func (n *tableSelectNode[K, V, KOut, VOut]) receive(r Record[K, change[V]]) error {
	if n.versioned && r.Value.outOfOrder {
		return nil
	}
	old, removes := n.sel(r.Key, r.Value.old)
	now, adds := n.sel(r.Key, r.Value.new)
	if removes && adds {
		// One record for both where the group stays the same (KIP-904), so that
		// nobody sees the group without the entry.
		same, err := n.sameKey(old.Key, now.Key)
		if err != nil {
			return err
		}
		if same {
			return n.send(r, now.Key, change[VOut]{new: nullable[VOut]{now.Value, true}, old: nullable[VOut]{old.Value, true}})
		}
	}
	if removes {
		if err := n.send(r, old.Key, change[VOut]{old: nullable[VOut]{old.Value, true}}); err != nil {
			return err
		}
	}
	if adds {
		return n.send(r, now.Key, change[VOut]{new: nullable[VOut]{now.Value, true}})
	}
	return nil
}

// sel is what the function returns for a value; ok is false where it counts for no
// group.
func (n *tableSelectNode[K, V, KOut, VOut]) sel(k K, v nullable[V]) (_ Record[KOut, VOut], ok bool) {
	if !v.ok {
		return Record[KOut, VOut]{}, false
	}
	key, value := n.f(k, v.v)
	r := n.nulls.record(key, value, 0, nil)
	return r, !r.KeyNull && !r.ValueNull
}

func (n *tableSelectNode[K, V, KOut, VOut]) send(r Record[K, change[V]], key KOut, c change[VOut]) error {
	return n.forward(Record[KOut, change[VOut]]{Key: key, Value: c, Timestamp: r.Timestamp, Headers: r.Headers})
}

// sameKey compares keys as the topic sees them.
func (n *tableSelectNode[K, V, KOut, VOut]) sameKey(a, b KOut) (bool, error) {
	var err error
	if n.oldKey, err = n.keys.Append(append(n.oldKey[:0], 0), a); err != nil {
		return false, err
	}
	if n.newKey, err = n.keys.Append(append(n.newKey[:0], 0), b); err != nil {
		return false, err
	}
	return bytes.Equal(n.oldKey, n.newKey), nil
}
