package streams

import "github.com/odradek-go/odradek/serde"

// KTable is a table: the latest value of each key, and the stream of its changes.
type KTable[K, V any] struct {
	b      *Builder
	parent string
	keys   serde.Serde[K]
	values serde.Serde[V]
}

// ToStream is the stream of the table's changes: a record with the new value for
// each, null where the key was deleted.
func (t *KTable[K, V]) ToStream(name ...Named) *KStream[K, V] {
	n := t.b.name(string(only(t.b, "ToStream", name)), toStreamPrefix)
	t.b.add(func(topology *Topology) {
		addNode[K, change[V], K, V](topology, n, []string{t.parent}, func(*taskContext) (running, error) {
			return &toStreamNode[K, V]{}, nil
		})
	})
	return &KStream[K, V]{b: t.b, parent: n, keys: t.keys, values: t.values}
}

type toStreamNode[K, V any] struct{ emitter[K, V] }

func (n *toStreamNode[K, V]) receive(r Record[K, change[V]]) error {
	out := withValue(r, r.Value.value)
	out.ValueNull = !r.Value.exists
	return n.forward(out)
}
