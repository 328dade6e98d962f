package streams

import (
	"time"

	"github.com/odradek-go/odradek/serde"
)

// KTable is a table: the latest value of each key, and the stream of its changes.
//
// Operators on tables whose names a stream's operator has begin with Table, such
// as [TableMapValues].
type KTable[K, V any] struct {
	b       *Builder
	node    *planNode
	sources []string // that it comes from, by name
	keys    serde.Serde[K]
	values  serde.Serde[V]
	kind    tableKind[K, V]
}

// tableKind is the side of an operator that makes a table which the operators
// below see. They ask while the topology is planned, and the answers decide which
// tables have a store.
type tableKind[K, V any] interface {
	// sendOld has changes carry the old value too. A table that would need a
	// store for it makes one if force, or else says no.
	sendOld(force bool) bool

	// view tells how to look up values. A table that can't know them otherwise
	// makes itself a store.
	view() view[K, V]
}

// view is how the values of a table are looked up.
type view[K, V any] struct {
	stores []string // that a node needs to be connected to
	open   func(*taskContext) (getter[K, V], error)

	// openAsOf opens what looks up values as of a time. It returns nil where the
	// table doesn't know them, and may be nil itself.
	openAsOf func(*taskContext) (asOfGetter[K, V], error)
}

// getter looks up a value and its timestamp in milliseconds.
type getter[K, V any] func(K) (v V, timestamp int64, ok bool, err error)

// asOfGetter likewise looks up the value that was valid at a time, in milliseconds.
type asOfGetter[K, V any] func(k K, asOf int64) (v V, timestamp int64, ok bool, err error)

// change is the value of a table's records: what a key's value became, and where
// the receiver asked for it what it was.
type change[V any] struct {
	new nullable[V]
	old nullable[V] // null where nobody asked

	// outOfOrder says that the key has a later value already, which only a table
	// with a versioned store knows.
	outOfOrder bool
}

// nullable is a value or null.
type nullable[V any] struct {
	v  V    // the type's zero value where it is null
	ok bool // false: null
}

// valueIf is v, or null unless ok.
func valueIf[V any](v V, ok bool) (n nullable[V]) {
	if ok {
		n = nullable[V]{v, true}
	}
	return n
}

// nullableOf returns what makes a nullable of a value: nil is null.
func nullableOf[V any]() func(V) nullable[V] {
	isNil := nilCheck[V]()
	return func(v V) nullable[V] { return nullable[V]{v, isNil == nil || !isNil(v)} }
}

// Materialized says how a table is kept in a state store.
type Materialized[K, V any] struct {
	// Name is the store's, and part of its changelog topic's; empty: generated.
	// A table that is derived from another one has a store only if it is named
	// here, or if it takes part in something that can't do without.
	Name string

	// Processor is the name of the operator that keeps the store, Named in
	// Java; empty: generated.
	Processor string

	// Key and Value are the store's serdes; nil: the stream's, or else
	// [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]

	// StoreType is where the store keeps its data; the zero value: as
	// TopologyConfig.StoreType says, or else on disk.
	StoreType StoreType

	// Retention is how long a windowed table keeps windows and sessions after
	// their end, by the records' times; 0: the windows' size and grace period.
	Retention time.Duration

	// HistoryRetention is how long the store of a table keeps what a value was,
	// after it has changed, by the records' times; 0: not at all. A table with
	// a history is versioned (KIP-914): a change that is older than the value
	// is known as such, and as long as the history reaches back it has its
	// place in it.
	HistoryRetention time.Duration

	// MaxEntries bounds a table whose StoreType is InMemory and that has neither
	// windows nor a history: of more entries it forgets the ones that were least
	// recently used (Stores.lruMap in Java), without a change of the table. 0: no
	// bound.
	MaxEntries int

	// CachingDisabled has each change stored and sent on by itself. Otherwise
	// changes are held back in memory, and several of one key become one
	// (KIP-63), until the task commits or the cache is full:
	// Config.StateStoreCacheMaxBytes.
	CachingDisabled bool

	// LoggingDisabled leaves the store without a changelog: what it holds is
	// lost when its task moves.
	LoggingDisabled bool

	// ChangelogConfig are topic settings of the changelog, over the defaults.
	ChangelogConfig map[string]string
}

// MaterializedWith is a Materialized with a name and serdes.
func MaterializedWith[K, V any](name string, key serde.Serde[K], value serde.Serde[V]) Materialized[K, V] {
	return Materialized[K, V]{Name: name, Key: key, Value: value}
}

// As returns a copy with that processor's name.
func (m Materialized[K, V]) As(processor string) Materialized[K, V] {
	m.Processor = processor
	return m
}

// given says whether it is more than the processor's name: in Java, whether there
// is a Materialized besides the Named.
func (m Materialized[K, V]) given() bool {
	return m.Name != "" || m.Key != nil || m.Value != nil || m.StoreType != DefaultStore || m.Retention != 0 || m.HistoryRetention != 0 || m.MaxEntries != 0 ||
		m.CachingDisabled || m.LoggingDisabled || m.ChangelogConfig != nil
}

// storeName names the store, unless it has a name.
func (m *Materialized[K, V]) storeName(p *plan, prefix string) {
	if m.Name == "" {
		m.Name = p.generateStore(prefix)
	}
}

// store describes the store.
func (m Materialized[K, V]) store() StateStore {
	if m.HistoryRetention != 0 {
		return m.settle(NewVersionedKeyValueStore(m.Name, m.Key, m.Value, m.HistoryRetention))
	}
	return m.settle(NewTimestampedKeyValueStore(m.Name, m.Key, m.Value))
}

// versioning says whether the table is versioned.
func (m Materialized[K, V]) versioning() versioning {
	if m.HistoryRetention != 0 {
		return versioned
	}
	return unversioned
}

// settle gives a store the settings that stores of every kind have.
func (m Materialized[K, V]) settle(s StateStore) StateStore {
	s.Type, s.MaxEntries, s.CachingEnabled = m.StoreType, m.MaxEntries, !m.CachingDisabled
	s.LoggingDisabled, s.ChangelogConfig = m.LoggingDisabled, m.ChangelogConfig
	return s
}

// ToStream is the stream of the table's changes: a record with the new value for
// each, null where the key was deleted.
func (t *KTable[K, V]) ToStream(name ...Named) *KStream[K, V] {
	n := t.b.name(string(only(t.b, "ToStream", name)), toStreamPrefix)
	node := tableOperator[K, V, K, V](t, n, func(*taskContext) (running, error) {
		return &transformNode[K, change[V], K, V]{f: func(r Record[K, change[V]]) (Record[K, V], bool) {
			out := withValue(r, r.Value.new.v)
			out.ValueNull = !r.Value.new.ok
			return out, true
		}}, nil
	})
	return &KStream[K, V]{b: t.b, node: node, sources: t.sources, keys: t.keys, values: t.values}
}

// ToStreamWithKey is [KTable.ToStream] followed by [SelectKey].
func ToStreamWithKey[K, V, KOut any](t *KTable[K, V], f func(K, V) KOut, name ...Named) *KStream[KOut, V] {
	t.b.needs("ToStreamWithKey", t.node, f)
	return selectKey(t.ToStream(name...), f, "")
}

// tableOperator plans a node below the table that takes its changes.
func tableOperator[KIn, VIn, KOut, Out any](t *KTable[KIn, VIn], name string, make func(*taskContext) (running, error)) *planNode {
	return t.b.add(name, func(n *planNode, topology *Topology) {
		addNode[KIn, change[VIn], KOut, Out](topology, name, n.parentNames(), make)
	}, t.node)
}
