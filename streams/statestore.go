package streams

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// StateStore describes a state store. The functions that make one, such as
// [NewKeyValueStore], fill it in.
type StateStore struct {
	// Name is unique in the topology and part of the changelog topic's name.
	Name string

	// Type is where the store keeps its data; the zero value: on disk, or as
	// TopologyConfig.StoreType says.
	Type StoreType

	// MaxEntries bounds a key-value store in memory: of more entries it forgets
	// the ones that were least recently used (Stores.lruMap in Java), without a
	// word to its changelog. 0: no bound.
	MaxEntries int

	// CachingEnabled holds changes back in memory, so that several of one key
	// become one (KIP-63), until the task commits or the cache is full:
	// Config.StateStoreCacheMaxBytes. Versioned stores and those with
	// duplicates have no cache.
	CachingEnabled bool

	// LoggingDisabled leaves the store without a changelog: what it holds is
	// lost when its task moves.
	LoggingDisabled bool

	// ChangelogConfig are topic settings of the changelog, over the defaults.
	ChangelogConfig map[string]string

	make func(state.OpenEngine) state.Store
	err  error

	// What the changelog's settings depend on: the cleanup policy, and how long
	// the store keeps what it has, zero for ever.
	cleanup   string
	retention time.Duration
	history   time.Duration // of a versioned store; zero: it has none

	headers     bool // it keeps the headers of its values
	logsHeaders bool // its changelog has them, and so has the store with HeadersFormat

	sourceTopic string // serves as its changelog; empty: it has one of its own
}

// StoreType is where a state store keeps its data.
type StoreType int8

// The store types.
const (
	DefaultStore StoreType = iota // as TopologyConfig.StoreType says, or else Persistent

	// Persistent stores are on disk, under Config.StateDir, in memory as far
	// as that is needed for speed, and found again after a restart. Java has
	// RocksDB there.
	Persistent

	// InMemory stores are in memory alone, and read from their changelogs when
	// their task starts.
	InMemory
)

// NewKeyValueStore describes a key-value store, a [state.KeyValue].
func NewKeyValueStore[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) StateStore {
	return newStateStore(name, keys, values, func(keys serde.Serde[K], values serde.Serde[V], engine state.OpenEngine) state.Store {
		return state.NewKeyValue(name, keys, values, engine)
	})
}

// NewTimestampedKeyValueStore describes a key-value store that keeps a timestamp
// with each value, a [state.TimestampedKeyValue] (KIP-258).
func NewTimestampedKeyValueStore[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) StateStore {
	return newStateStore(name, keys, values, func(keys serde.Serde[K], values serde.Serde[V], engine state.OpenEngine) state.Store {
		return state.NewTimestampedKeyValue(name, keys, values, engine)
	})
}

// NewTimestampedKeyValueStoreWithHeaders describes a key-value store that keeps a
// timestamp and headers with each value, a [state.TimestampedKeyValue] (KIP-1271). Its
// methods that end in Headers take them: see [StoreHeaders].
func NewTimestampedKeyValueStoreWithHeaders[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) StateStore {
	return withHeaders(NewTimestampedKeyValueStore(name, keys, values))
}

// NewVersionedKeyValueStore describes a key-value store that keeps the versions of
// each value which were valid within historyRetention, a [state.Versioned]
// (KIP-889).
func NewVersionedKeyValueStore[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], historyRetention time.Duration) StateStore {
	s := newStateStore(name, keys, values, func(keys serde.Serde[K], values serde.Serde[V], engine state.OpenEngine) state.Store {
		return state.NewVersioned(name, keys, values, historyRetention, engine)
	})
	s.history = historyRetention
	s.require(historyRetention > 0, "the history retention is %v", historyRetention)
	return s
}

// NewWindowStore describes a store of values by key and window, a [state.Window].
func NewWindowStore[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], options state.WindowOptions) StateStore {
	s := newStateStore(name, keys, values, func(keys serde.Serde[K], values serde.Serde[V], engine state.OpenEngine) state.Store {
		return state.NewWindow(name, keys, values, options, engine)
	})
	s.retention, s.cleanup = options.Retention, "compact,delete"
	if options.RetainDuplicates {
		s.cleanup = "delete"
	}
	s.require(options.Size >= 0, "the window size %v is negative", options.Size)
	s.require(options.Retention >= options.Size, "the retention %v is less than the window size %v", options.Retention, options.Size)
	return s
}

// NewWindowStoreWithHeaders describes a store of values by key and window that keeps
// headers with each value, a [state.Window] (KIP-1271). Its methods that end in Headers
// take them: see [StoreHeaders].
func NewWindowStoreWithHeaders[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], options state.WindowOptions) StateStore {
	return withHeaders(NewWindowStore(name, keys, values, options))
}

// NewSessionStore describes a store of values by key and session, a
// [state.Session]. A session is kept for retention after it has ended.
func NewSessionStore[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], retention time.Duration) StateStore {
	s := newStateStore(name, keys, values, func(keys serde.Serde[K], values serde.Serde[V], engine state.OpenEngine) state.Store {
		return state.NewSession(name, keys, values, retention, engine)
	})
	s.retention, s.cleanup = retention, "compact,delete"
	s.require(retention >= 0, "the retention %v is negative", retention)
	return s
}

// NewSessionStoreWithHeaders describes a store of values by key and session that keeps
// headers with each value, a [state.Session] (KIP-1271). Its methods that end in Headers
// take them: see [StoreHeaders].
func NewSessionStoreWithHeaders[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], retention time.Duration) StateStore {
	return withHeaders(NewSessionStore(name, keys, values, retention))
}

func withHeaders(s StateStore) StateStore {
	s.headers = true
	return s
}

// StoreHeaders returns the headers of a record as stores take them. Keys and values
// are shared, and must not be changed.
func StoreHeaders(headers []Header) []state.Header {
	return convertHeaders(headers, func(h Header) state.Header { return state.Header(h) })
}

// RecordHeaders returns headers from a store as records have them, the reverse of
// [StoreHeaders].
func RecordHeaders(headers []state.Header) []Header {
	return convertHeaders(headers, func(h state.Header) Header { return Header(h) })
}

func convertHeaders[In, Out any](headers []In, convert func(In) Out) []Out {
	if len(headers) == 0 {
		return nil
	}
	out := make([]Out, len(headers))
	for i, h := range headers {
		out[i] = convert(h)
	}
	return out
}

// newStateStore describes a store. The serdes may be left out where [serde.For]
// knows one.
func newStateStore[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], make func(serde.Serde[K], serde.Serde[V], state.OpenEngine) state.Store) StateStore {
	keys, values = serdeOr(keys), serdeOr(values)
	s := StateStore{
		Name: name, cleanup: "compact",
		make: func(engine state.OpenEngine) state.Store { return make(keys, values, engine) },
	}
	s.require(keys != nil, "no serde for its keys of type %v", reflect.TypeFor[K]())
	s.require(values != nil, "no serde for its values of type %v", reflect.TypeFor[V]())
	return s
}

// require notes what is wrong with the store, the first of it.
func (s *StateStore) require(ok bool, format string, args ...any) {
	if !ok && s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

// new makes the store of one task, not yet open.
func (s *StateStore) new() state.Store {
	made := s.make(s.engine())
	if cached, ok := made.(interface{ EnableCache() }); ok && s.CachingEnabled {
		cached.EnableCache()
	}
	if s.headers {
		made.(interface{ EnableHeaders() }).EnableHeaders()
	}
	return made
}

// engine is what the store keeps its data in.
func (s *StateStore) engine() state.OpenEngine {
	switch {
	case s.Type != InMemory:
		return state.Persistent
	case s.MaxEntries > 0:
		return state.LRU(s.MaxEntries)
	}
	return state.Memory
}

// check returns what is wrong with the settings.
func (s *StateStore) check() error {
	switch keyed := s.retention == 0 && s.history == 0; {
	case s.MaxEntries < 0:
		return fmt.Errorf("state store %q: MaxEntries is %d", s.Name, s.MaxEntries)
	case s.MaxEntries > 0 && (s.Type != InMemory || !keyed):
		return fmt.Errorf("state store %q: MaxEntries is for key-value stores whose type is InMemory", s.Name)
	}
	return nil
}

// changelogConfig are the settings of the store's changelog, as Java has them.
func (s *StateStore) changelogConfig(of internalTopics) map[string]string {
	config := map[string]string{"cleanup.policy": s.cleanup, "message.timestamp.type": "CreateTime"}
	if s.history > 0 {
		config["min.compaction.lag.ms"] = millis(s.history + 24*time.Hour)
	}
	maps.Copy(config, of.config)
	if s.retention > 0 {
		config["retention.ms"] = millis(s.retention + of.additionalRetention)
	}
	maps.Copy(config, s.ChangelogConfig)
	return config
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
