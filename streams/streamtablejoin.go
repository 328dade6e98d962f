package streams

import (
	"time"

	"github.com/odradek-go/odradek/serde"
)

// Joined says how a stream is joined with a table.
type Joined[K, V, VTable any] struct {
	// Name is the operator's, and the repartition topic's where the join needs
	// one; empty: generated.
	Name string

	// Key and Value are the serdes of the repartition topic; nil: the
	// stream's, or else [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]

	// Grace is how long records of the stream wait for what comes late to the
	// table, by the records' times (KIP-923); nil: they don't. The table must
	// be versioned and its history at least as long. In a left join, records
	// with a null key don't wait.
	Grace *time.Duration
}

// JoinTable joins each record of the stream with what the table has for its key at
// that moment, or where the table is versioned, had at the record's time: an inner join, which drops records whose key is not in the table.
// Records with a null key or value are dropped too. Nil results are null. The
// topics of both must have equal numbers of partitions.
func JoinTable[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], f func(V, VTable) VOut, options ...Joined[K, V, VTable]) *KStream[K, VOut] {
	return joinStreamTable(s, t, "JoinTable", innerJoin, ignoringKey[K](f), options)
}

// JoinTableWithKey is [JoinTable] with a function that sees the key.
func JoinTableWithKey[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], f func(K, V, VTable) VOut, options ...Joined[K, V, VTable]) *KStream[K, VOut] {
	return joinStreamTable(s, t, "JoinTableWithKey", innerJoin, f, options)
}

// LeftJoinTable is like [JoinTable], and has the records whose key is null or not
// in the table too: f gets the zero value then.
func LeftJoinTable[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], f func(V, VTable) VOut, options ...Joined[K, V, VTable]) *KStream[K, VOut] {
	return joinStreamTable(s, t, "LeftJoinTable", leftJoin, ignoringKey[K](f), options)
}

// LeftJoinTableWithKey is [LeftJoinTable] with a function that sees the key.
func LeftJoinTableWithKey[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], f func(K, V, VTable) VOut, options ...Joined[K, V, VTable]) *KStream[K, VOut] {
	return joinStreamTable(s, t, "LeftJoinTableWithKey", leftJoin, f, options)
}

// openForStream opens what looks up the values that records of a stream are joined
// with: those of their times, where the table knows them, or else the latest.
func (v view[K, V]) openForStream(ctx *taskContext) (asOfGetter[K, V], error) {
	if v.openAsOf != nil {
		if get, err := v.openAsOf(ctx); get != nil || err != nil {
			return get, err
		}
	}
	get, err := v.open(ctx)
	return func(k K, _ int64) (V, int64, bool, error) { return get(k) }, err
}

func joinStreamTable[K, V, VTable, VOut any](s *KStream[K, V], t *KTable[K, VTable], operator string, kind joinKind, f func(K, V, VTable) VOut, options []Joined[K, V, VTable]) *KStream[K, VOut] {
	b := s.b
	j := only(b, operator, options)
	b.needs(operator, s.node, f)
	s = s.forJoin(Repartitioned[K, V]{Name: j.Name, Key: j.Key, Value: j.Value})
	sources := b.copartition(s.sources, t.sources)
	prefix := joinPrefix
	if kind == leftJoin {
		prefix = leftJoinPrefix
	}
	name := b.name(j.Name, prefix)
	table := t.kind.view()
	var buffer *StateStore
	if j.Grace != nil {
		if !t.node.versioned() {
			b.errorf("%q: only a versioned table can be joined with a grace period", name)
		}
		buffer = newRecordBuffer(&b.plan, name, firstOf(j.Key, s.keys), firstOf(j.Value, s.values), j)
	}
	n := b.add(name, func(n *planNode, topology *Topology) {
		addNode[K, V, K, VOut](topology, name, n.parentNames(), func(ctx *taskContext) (_ running, err error) {
			join := &streamTableJoinNode[K, V, VTable, VOut]{kind: kind, f: f, isNil: nilCheck[VOut]()}
			if join.get, err = table.openForStream(ctx); err != nil || buffer == nil {
				return join, err
			}
			return newGraceJoinNode(ctx, join, buffer.Name)
		})
		topology.ConnectProcessorAndStateStores(name, table.stores...)
		if buffer != nil {
			topology.AddStateStore(*buffer, name)
			topology.requireHistory(name, *j.Grace, table.stores)
		}
	}, s.node)
	n.takesNullKeys = kind == leftJoin
	return &KStream[K, VOut]{b: b, node: n, sources: sources, keys: firstOf(j.Key, s.keys)}
}

type streamTableJoinNode[K, V, VTable, VOut any] struct {
	emitter[K, VOut]
	get   asOfGetter[K, VTable]
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
		if table, _, ok, err = n.get(r.Key, r.Timestamp); err != nil {
			return err
		}
	}
	if !n.kind.has(true, ok) {
		return nil
	}
	return n.forward(withNullable(r, n.f(r.Key, r.Value, table), n.isNil))
}
