package streams

// GlobalKTable is a table that each instance of the application has whole, from all
// partitions of its topic. Streams can be joined with it by any key, and no matter how
// their topics are partitioned. It changes as the topic does, not as the streams' times
// advance.
type GlobalKTable[K, V any] struct {
	b     *Builder
	table view[K, V]
}

// GlobalTable is the global table of a topic, which must exist: the latest value of each
// key, where null deletes. Its store is filled before anything else runs.
func GlobalTable[K, V any](b *Builder, topic string, options ...TableOption[K, V]) *GlobalKTable[K, V] {
	of := readTopicTable(b, "GlobalTable", topic, options)
	if of.HistoryRetention != 0 {
		b.errorf("GlobalTable: the table of topic %q can't be versioned", topic)
	}
	kind := &storedTable[K, V]{Materialized: of.Materialized, kept: true}
	b.add(of.name, func(_ *planNode, t *Topology) {
		AddSource(t, of.source, of.Consumed, topic)
		kind.write(t, of.name, []string{of.source}, nil)
		t.makeGlobal(of.Materialized.Name, of.source, of.name)
	})
	return &GlobalKTable[K, V]{b: b, table: kind.view()}
}

// JoinGlobalTable joins each record of the stream with what a global table has for the
// key that key selects for the record: an inner join. ok is false where there is no such
// key. Records with a null value are dropped. Nil results are null.
func JoinGlobalTable[K, V, KGlobal, VGlobal, VOut any](s *KStream[K, V], t *GlobalKTable[KGlobal, VGlobal], key func(K, V) (key KGlobal, ok bool), f func(V, VGlobal) VOut, name ...Named) *KStream[K, VOut] {
	return joinGlobalTable(s, t, "JoinGlobalTable", innerJoin, key, ignoringKeys[K, KGlobal](f), name)
}

// JoinGlobalTableWithKeys is [JoinGlobalTable] with a function that sees both keys: the
// record's and the one that was selected.
func JoinGlobalTableWithKeys[K, V, KGlobal, VGlobal, VOut any](s *KStream[K, V], t *GlobalKTable[KGlobal, VGlobal], key func(K, V) (key KGlobal, ok bool), f func(K, KGlobal, V, VGlobal) VOut, name ...Named) *KStream[K, VOut] {
	return joinGlobalTable(s, t, "JoinGlobalTableWithKeys", innerJoin, key, f, name)
}

// LeftJoinGlobalTable is like [JoinGlobalTable], and has the records too that have no
// such key, or one that is not in the table: f gets the zero value then.
func LeftJoinGlobalTable[K, V, KGlobal, VGlobal, VOut any](s *KStream[K, V], t *GlobalKTable[KGlobal, VGlobal], key func(K, V) (key KGlobal, ok bool), f func(V, VGlobal) VOut, name ...Named) *KStream[K, VOut] {
	return joinGlobalTable(s, t, "LeftJoinGlobalTable", leftJoin, key, ignoringKeys[K, KGlobal](f), name)
}

// LeftJoinGlobalTableWithKeys is [LeftJoinGlobalTable] with a function that sees both
// keys: the record's and the one that was selected.
func LeftJoinGlobalTableWithKeys[K, V, KGlobal, VGlobal, VOut any](s *KStream[K, V], t *GlobalKTable[KGlobal, VGlobal], key func(K, V) (key KGlobal, ok bool), f func(K, KGlobal, V, VGlobal) VOut, name ...Named) *KStream[K, VOut] {
	return joinGlobalTable(s, t, "LeftJoinGlobalTableWithKeys", leftJoin, key, f, name)
}

func ignoringKeys[K, KGlobal, V, VGlobal, VOut any](f func(V, VGlobal) VOut) func(K, KGlobal, V, VGlobal) VOut {
	if f == nil {
		return nil
	}
	return func(_ K, _ KGlobal, v V, global VGlobal) VOut { return f(v, global) }
}

func joinGlobalTable[K, V, KGlobal, VGlobal, VOut any](s *KStream[K, V], t *GlobalKTable[KGlobal, VGlobal], call string, kind joinKind, key func(K, V) (KGlobal, bool), f func(K, KGlobal, V, VGlobal) VOut, options []Named) *KStream[K, VOut] {
	s.b.needs(call, s.node, key, f)
	if t.b != s.b {
		s.b.errorf("%s: the stream and the table belong to different Builders", call)
	}
	name := s.b.name(string(only(s.b, call, options)), leftJoinPrefix) // as in Java, of an inner join too
	known := nullableOf[KGlobal]()
	n := operator[K, V, K, VOut](s, name, func(ctx *taskContext) (running, error) {
		get, err := t.table.open(ctx)
		return &globalJoinNode[K, V, KGlobal, VGlobal, VOut]{
			get: get, kind: kind, f: f, isNil: nilCheck[VOut](),
			key: func(k K, v V) (selected nullable[KGlobal]) {
				if found, ok := key(k, v); ok {
					selected = known(found)
				}
				return selected
			},
		}, err
	})
	n.takesNullKeys = kind == leftJoin
	return &KStream[K, VOut]{b: s.b, node: n, sources: s.sources, keys: s.keys, rekeyed: s.rekeyed}
}

// globalJoinNode joins records with a global table.
type globalJoinNode[K, V, KGlobal, VGlobal, VOut any] struct {
	emitter[K, VOut]
	get   getter[KGlobal, VGlobal]
	key   func(K, V) nullable[KGlobal]
	kind  joinKind
	f     func(K, KGlobal, V, VGlobal) VOut
	isNil func(VOut) bool
}

func (n *globalJoinNode[K, V, KGlobal, VGlobal, VOut]) receive(r Record[K, V]) (err error) {
	if r.ValueNull {
		return nil
	}
	key := n.key(r.Key, r.Value)
	var global nullable[VGlobal]
	if key.ok {
		if global.v, _, global.ok, err = n.get(key.v); err != nil {
			return err
		}
	}
	if !n.kind.has(true, global.ok) {
		return nil
	}
	return n.forward(withNullable(r, n.f(r.Key, key.v, r.Value, global.v), n.isNil))
}
