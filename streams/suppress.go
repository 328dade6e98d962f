package streams

import (
	"fmt"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// Suppressed says how a suppression holds changes back (KIP-328): in memory, with a
// changelog from which a restart or another instance goes on.
type Suppressed struct {
	// Name is the operator's, and that of its store with "-store"; empty: both
	// are generated.
	Name string

	// MaxRecords is how many changes may be held back, of as many keys; 0: as
	// many as there are.
	MaxRecords int64

	// MaxBytes is how many bytes they may take, as far as that can be told; 0: as
	// many as they take.
	MaxBytes int64

	// ShutDownWhenFull has the stream thread fail with a [BufferFullError] where
	// a limit is exceeded. Otherwise the first changes are sent on early.
	// [SuppressUntilWindowCloses], which must not send early, always does so.
	ShutDownWhenFull bool

	// LoggingDisabled leaves the store without a changelog: what is held back is
	// lost when its task moves.
	LoggingDisabled bool

	// ChangelogConfig are topic settings of the changelog, over the defaults.
	ChangelogConfig map[string]string
}

// BufferFullError is the failure of a suppression that has to hold back more than it
// may.
type BufferFullError struct {
	Operator            string // its name in the topology
	Records, MaxRecords int64  // that are held back; MaxRecords 0: no limit
	Bytes, MaxBytes     int64
}

func (e *BufferFullError) Error() string {
	return fmt.Sprintf("suppression %q has to hold back %d records (the limit is %s) of %d bytes (the limit is %s)",
		e.Operator, e.Records, orNone(e.MaxRecords), e.Bytes, orNone(e.MaxBytes))
}

func orNone(limit int64) string {
	if limit == 0 {
		return "none"
	}
	return fmt.Sprint(limit)
}

// SuppressUntilWindowCloses is the table with one change for each window: the final
// result, once the window has ended and its grace period has passed, by the times
// of the records. Windows without a result have no change.
func SuppressUntilWindowCloses[K, V any](t *KTable[serde.Windowed[K], V], options ...Suppressed) *KTable[serde.Windowed[K], V] {
	s := only(t.b, "SuppressUntilWindowCloses", options)
	s.ShutDownWhenFull = true
	return suppress(t, "SuppressUntilWindowCloses", s, suppression[serde.Windowed[K]]{
		time:           func(w serde.Windowed[K], _ int64) int64 { return w.End },
		dropTombstones: true,
	})
}

// SuppressUntilTimeLimit is the table with fewer changes: those of a key that come
// within the limit, by the times of the records, become one, which is sent on when
// the limit has passed since the first.
func (t *KTable[K, V]) SuppressUntilTimeLimit(limit time.Duration, options ...Suppressed) *KTable[K, V] {
	if limit < 0 {
		t.b.errorf("SuppressUntilTimeLimit: the limit %v is negative", limit)
	}
	s := only(t.b, "SuppressUntilTimeLimit", options)
	return suppress(t, "SuppressUntilTimeLimit", s, suppression[K]{
		time: func(_ K, timestamp int64) int64 { return timestamp },
		wait: limit.Milliseconds(),
	})
}

// suppression says what is held back and for how long.
type suppression[K any] struct {
	time           func(k K, timestamp int64) int64 // by which changes are ordered
	wait           int64                            // after that time, in milliseconds
	dropTombstones bool
}

func suppress[K, V any](t *KTable[K, V], operator string, s Suppressed, of suppression[K]) *KTable[K, V] {
	b := t.b
	name, store := s.Name, s.Name+"-store"
	if s.Name == "" {
		name, store = b.generate(suppressPrefix), b.generateStore(suppressPrefix)
	}
	if of.dropTombstones {
		grace, ok := t.node.windowGrace()
		if !ok {
			b.errorf("%s: %q: a table whose windows close comes from a windowed aggregation, which %q does not", operator, name, t.node.name)
		}
		of.wait = grace
	}
	if s.MaxRecords < 0 || s.MaxBytes < 0 {
		b.errorf("%s: %q: a limit is negative: MaxRecords %d, MaxBytes %d", operator, name, s.MaxRecords, s.MaxBytes)
	}
	if t.node.versioned() {
		b.errorf("%s: %q: the table %q is versioned, whose changes come out of order", operator, name, t.node.name)
	}
	t.kind.sendOld(true)
	n := b.add(name, func(n *planNode, topology *Topology) {
		addNode[K, change[V], K, change[V]](topology, name, n.parentNames(), func(ctx *taskContext) (running, error) {
			buffer, err := openStore[*state.ChangeBuffer[K, V]](ctx, store)
			return &suppressNode[K, V]{ctx: ctx, node: name, buffer: buffer, limits: s, suppression: of, streamTime: -1}, err
		})
		topology.AddStateStore(newChangeBuffer(store, s, topology.format, t.keys, t.values), name)
	}, t.node)
	n.versioning = unversioned
	return &KTable[K, V]{
		b: b, node: n, sources: []string{t.node.name}, keys: t.keys, values: t.values,
		kind: &suppressedTable[K, V]{parent: t, store: store},
	}
}

// windowGrace is how long after their end the windows take records that a node gets
// to see; ok is false where there are none.
func (n *planNode) windowGrace() (grace int64, ok bool) {
	if n.grace != nil {
		return *n.grace, true
	}
	for _, parent := range n.parents {
		g, has := parent.windowGrace()
		if !has {
			return 0, false
		}
		grace, ok = max(grace, g), true
	}
	return grace, ok
}

// newChangeBuffer describes the store of a suppression.
func newChangeBuffer[K, V any](name string, of Suppressed, format StoreFormat, keys serde.Serde[K], values serde.Serde[V]) StateStore {
	s := newStateStore(name, keys, values, func(keys serde.Serde[K], values serde.Serde[V], _ state.OpenEngine) state.Store {
		buffer := state.NewChangeBuffer(name, keys, values)
		if format == HeadersFormat {
			buffer.EnableHeaders()
		}
		return buffer
	})
	s.Type, s.LoggingDisabled, s.ChangelogConfig = InMemory, of.LoggingDisabled, of.ChangelogConfig
	return s
}

// suppressedTable is the tableKind of a suppression. What it lets through are the
// values of the table above, but for what is held back.
type suppressedTable[K, V any] struct {
	parent *KTable[K, V]
	store  string
}

func (k *suppressedTable[K, V]) sendOld(force bool) bool { return k.parent.kind.sendOld(force) }

func (k *suppressedTable[K, V]) view() view[K, V] {
	of := k.parent.kind.view()
	return view[K, V]{stores: union([]string{k.store}, of.stores), open: func(ctx *taskContext) (getter[K, V], error) {
		get, err := of.open(ctx)
		if err != nil {
			return nil, err
		}
		buffer, err := openStore[*state.ChangeBuffer[K, V]](ctx, k.store)
		return func(key K) (V, int64, bool, error) {
			v, exists, held, err := buffer.Prior(key)
			if held || err != nil {
				return v, -1, exists, err
			}
			return get(key)
		}, err
	}}
}
