package streams

// TableOption is an option of [Table]: a [Consumed] or a [Materialized].
type TableOption[K, V any] interface {
	setTable(*Consumed[K, V], *Materialized[K, V])
}

func (c Consumed[K, V]) setTable(to *Consumed[K, V], _ *Materialized[K, V])     { *to = c }
func (m Materialized[K, V]) setTable(_ *Consumed[K, V], to *Materialized[K, V]) { *to = m }

// Table is the table of a topic: the latest value of each key, where null deletes.
// It has a store if it is named with [Materialized], or if what becomes of it
// can't do without.
func Table[K, V any](b *Builder, topic string, options ...TableOption[K, V]) *KTable[K, V] {
	of := readTopicTable(b, "Table", topic, options)
	kind := &storedTable[K, V]{Materialized: of.Materialized, kept: of.named}
	n := b.add(of.name, func(n *planNode, t *Topology) {
		AddSource(t, of.source, of.Consumed, topic)
		kind.write(t, of.name, []string{of.source}, func(s *StateStore) {
			if n.table.isChangelog {
				s.sourceTopic = topic
			}
		})
	})
	n.table, n.versioning = &tableSourcePlan{}, of.versioning()
	return &KTable[K, V]{b: b, node: n, sources: []string{of.source}, keys: of.Consumed.Key, values: of.Consumed.Value, kind: kind}
}

// topicTable is what the options of [Table] and [GlobalTable] say, with the names that
// are not given.
type topicTable[K, V any] struct {
	Consumed[K, V]
	Materialized[K, V]
	named        bool   // its store is
	source, name string // of the nodes
}

func readTopicTable[K, V any](b *Builder, call, topic string, options []TableOption[K, V]) (of topicTable[K, V]) {
	c, m := &of.Consumed, &of.Materialized
	for _, o := range options {
		o.setTable(c, m)
	}
	if m.Processor != "" {
		b.errorf("%s: name the table of topic %q with Consumed, not with Processor of Materialized", call, topic)
	}
	of.named = m.Name != ""
	m.storeName(&b.plan, topic+"-")
	of.source, of.name = b.suffixed(c.Name, "-source", sourcePrefix), b.name(c.Name, tableSourcePrefix)
	c.Key, c.Value = serdeOr(c.Key), serdeOr(c.Value)
	m.Key, m.Value = firstOf(m.Key, c.Key), firstOf(m.Value, c.Value)
	return of
}

// tableSourcePlan is a planned source of a table.
type tableSourcePlan struct {
	isChangelog bool // its topic serves as the changelog of its store
}

// ToTable is the table that the stream describes: the latest value of each key,
// where null deletes. Where the keys may have changed, it is made behind a
// repartition topic. It has a store if it is named with [Materialized], or if what
// becomes of it can't do without.
func (s *KStream[K, V]) ToTable(options ...Materialized[K, V]) *KTable[K, V] {
	m := only(s.b, "ToTable", options)
	name := s.b.name(m.Processor, toTablePrefix)
	kind := &storedTable[K, V]{kept: m.Name != ""}
	m.storeName(&s.b.plan, toTablePrefix)
	m.Key, m.Value = firstOf(m.Key, s.keys), firstOf(m.Value, s.values)
	kind.Materialized = m

	if s.rekeyed {
		r := Repartitioned[K, V]{Name: name, Key: m.Key, Value: m.Value}
		n := planRepartition(&s.b.plan, r, m.Processor != "")
		n.repartition.optimizable = true
		s.b.insert(n, s.node)
		s = s.behind(n, r)
	}
	n := s.b.add(name, func(n *planNode, t *Topology) { kind.write(t, name, n.parentNames(), nil) }, s.node)
	n.versioning = m.versioning()
	return &KTable[K, V]{b: s.b, node: n, sources: s.sources, keys: m.Key, values: m.Value, kind: kind}
}

// storedTable is the tableKind of a table that can have a store of its own.
type storedTable[K, V any] struct {
	Materialized[K, V]
	kept bool // there is a store
	old  bool // changes carry old values
}

func (k *storedTable[K, V]) sendOld(force bool) bool {
	if !force && !k.kept {
		return false
	}
	k.kept, k.old = true, true
	return true
}

func (k *storedTable[K, V]) view() view[K, V] {
	k.kept = true
	return storeView[K, V](k.Name)
}

// write writes the table's node and store.
func (k *storedTable[K, V]) write(t *Topology, name string, parents []string, adjust func(*StateStore)) {
	kept, old := k.kept, k.old
	var store string
	if kept {
		store = k.Name
	}
	addNode[K, V, K, change[V]](t, name, parents, func(ctx *taskContext) (running, error) {
		out, err := newTableOut[K, V](ctx, store, old)
		return &tableSourceNode[K, V]{out}, err
	})
	if kept {
		s := k.store()
		if adjust != nil {
			adjust(&s)
		}
		t.AddStateStore(s, name)
	}
}

// tableSourceNode turns a stream into the changes of a table. As in Java, a record
// that is older than the one before it counts nevertheless.
type tableSourceNode[K, V any] struct{ tableOut[K, V] }

func (n *tableSourceNode[K, V]) receive(r Record[K, V]) error {
	if r.KeyNull {
		return nil
	}
	c := change[V]{new: valueIf(r.Value, !r.ValueNull)}
	if n.keeps && n.old {
		var err error
		if c.old, _, err = n.store.get(r.Key); err != nil {
			return err
		}
	}
	return n.send(withValue(r, c))
}
