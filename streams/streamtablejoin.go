package streams

import "github.com/odradek-go/odradek/serde"

// Joined says how a stream is joined with a table.
type Joined[K, V, VTable any] struct {
	// Name is the operator's, and the repartition topic's where the join needs
	// one; empty: generated.
	Name string

	// Key and Value are the serdes of the repartition topic; nil: the
	// stream's, or else [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]
}

// JoinTable joins each record of the stream with what the table has for its key at
// that moment: an inner join, which drops records whose key is not in the table.
// Records with a null key or value are dropped too. Nil results are null. The
// topics of both must have equal numbers of partitions.
func JoinTable[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], f func(V, VTable) VOut, options ...Joined[K, V, VTable]) *KStream[K, VOut] {
	return JoinTableWithKey(s, t, func(_ K, v V, table VTable) VOut { return f(v, table) }, options...)
}

// JoinTableWithKey is [JoinTable] with a function that sees the key.
func JoinTableWithKey[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], f func(K, V, VTable) VOut, options ...Joined[K, V, VTable]) *KStream[K, VOut] {
	return joinStreamTable(s, t, innerJoin, f, only(s.b, "JoinTable", options))
}

// LeftJoinTable is like [JoinTable], and has the records whose key is null or not
// in the table too: f gets the zero value then.
func LeftJoinTable[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], f func(V, VTable) VOut, options ...Joined[K, V, VTable]) *KStream[K, VOut] {
	return LeftJoinTableWithKey(s, t, func(_ K, v V, table VTable) VOut { return f(v, table) }, options...)
}

// LeftJoinTableWithKey is [LeftJoinTable] with a function that sees the key.
func LeftJoinTableWithKey[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], f func(K, V, VTable) VOut, options ...Joined[K, V, VTable]) *KStream[K, VOut] {
	return joinStreamTable(s, t, leftJoin, f, only(s.b, "LeftJoinTable", options))
}

func joinStreamTable[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], kind joinKind, f func(K, V, VTable) VOut, j Joined[K, V, VTable]) *KStream[K, VOut] {
	b := s.b
	s = s.forJoin(Repartitioned[K, V]{Name: j.Name, Key: j.Key, Value: j.Value})
	sources := b.copartition(s.sources, t.sources)
	prefix := joinPrefix
	if kind == leftJoin {
		prefix = leftJoinPrefix
	}
	name := b.name(j.Name, prefix)
	table := t.kind.view()
	n := b.add(name, func(n *planNode, topology *Topology) {
		addNode[K, V, K, VOut](topology, name, n.parentNames(), func(ctx *taskContext) (running, error) {
			get, err := table.open(ctx)
			return &streamTableJoinNode[K, V, VTable, VOut]{get: get, kind: kind, f: f, isNil: nilCheck[VOut]()}, err
		})
		topology.ConnectProcessorAndStateStores(name, table.stores...)
	}, s.node)
	n.takesNullKeys = kind == leftJoin
	return &KStream[K, VOut]{b: b, node: n, sources: sources, keys: firstOf(j.Key, s.keys)}
}

type streamTableJoinNode[K, V, VTable, VOut any] struct {
	emitter[K, VOut]
	get   getter[K, VTable]
	kind  joinKind
	f     func(K, V, VTable) VOut
	isNil func(VOut) bool
}

func (n *streamTableJoinNode[K, V, VTable, VOut]) receive(r Record[K, V]) error {
	if r.ValueNull || r.KeyNull && n.kind == innerJoin {
		return nil
	}
	var table VTable
	var ok bool
	if !r.KeyNull {
		var err error
		if table, _, ok, err = n.get(r.Key); err != nil {
			return err
		}
	}
	if !n.kind.has(true, ok) {
		return nil
	}
	return n.forward(withNullable(r, n.f(r.Key, r.Value, table), n.isNil))
}
