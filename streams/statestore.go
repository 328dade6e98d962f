package streams

import (
	"fmt"
	"reflect"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// StateStore describes a state store. The functions that make one, such as
// [NewKeyValueStore], fill it in.
type StateStore struct {
	// Name is unique in the topology and part of the changelog topic's name.
	Name string

	// LoggingDisabled leaves the store without a changelog: what it holds is
	// lost when its task moves.
	LoggingDisabled bool

	// ChangelogConfig are topic settings of the changelog, over the defaults.
	ChangelogConfig map[string]string

	open func() state.Store
	err  error

	sourceTopic string // serves as its changelog; empty: it has one of its own
}

// NewKeyValueStore describes an in-memory key-value store, a [state.KeyValue].
func NewKeyValueStore[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) StateStore {
	return newStateStore(name, keys, values, func(keys serde.Serde[K], values serde.Serde[V]) state.Store {
		return state.NewKeyValue(name, keys, values, state.Memory)
	})
}

// NewTimestampedKeyValueStore describes an in-memory key-value store that keeps a
// timestamp with each value, a [state.TimestampedKeyValue].
func NewTimestampedKeyValueStore[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) StateStore {
	return newStateStore(name, keys, values, func(keys serde.Serde[K], values serde.Serde[V]) state.Store {
		return state.NewTimestampedKeyValue(name, keys, values, state.Memory)
	})
}

// newStateStore describes a store. The serdes may be left out where [serde.For]
// knows one.
func newStateStore[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], open func(serde.Serde[K], serde.Serde[V]) state.Store) StateStore {
	keys, values = serdeOr(keys), serdeOr(values)
	s := StateStore{Name: name, open: func() state.Store { return open(keys, values) }}
	switch {
	case keys == nil:
		s.err = fmt.Errorf("no serde for its keys of type %v", reflect.TypeFor[K]())
	case values == nil:
		s.err = fmt.Errorf("no serde for its values of type %v", reflect.TypeFor[V]())
	}
	return s
}
