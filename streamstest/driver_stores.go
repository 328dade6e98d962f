package streamstest

import (
	"maps"
	"slices"

	"github.com/odradek-go/odradek/state"
)

// Store returns a state store of the topology, whatever its kind: S is its type, such as
// *state.Window[string, int64]. It fails the test if there is no store of that name, or it is of another type.
//
// The store can be read, and written to, as a processor does it. What is written goes to the changelog topic too, which
// has it when the next record is piped, but to no output topic.
func Store[S state.Store](d *Driver, name string) S {
	d.tb.Helper()
	s, ok := d.stores[name]
	if !ok {
		d.tb.Fatalf("streamstest: the topology has no state store %q, only %q", name, slices.Sorted(maps.Keys(d.stores)))
	}
	typed, ok := s.(S)
	if !ok {
		d.tb.Fatalf("streamstest: state store %q is a %T, not a %T", name, s, typed)
	}
	return typed
}

// KeyValueStore returns a key-value store of the Processor API. See [Store].
func KeyValueStore[K, V any](d *Driver, name string) *state.KeyValue[K, V] {
	d.tb.Helper()
	return Store[*state.KeyValue[K, V]](d, name)
}

// TimestampedKeyValueStore returns the store of a table, or of an aggregation without windows. See [Store].
func TimestampedKeyValueStore[K, V any](d *Driver, name string) *state.TimestampedKeyValue[K, V] {
	d.tb.Helper()
	return Store[*state.TimestampedKeyValue[K, V]](d, name)
}

// VersionedKeyValueStore returns a store that keeps the history of each key. See [Store].
func VersionedKeyValueStore[K, V any](d *Driver, name string) *state.Versioned[K, V] {
	d.tb.Helper()
	return Store[*state.Versioned[K, V]](d, name)
}

// WindowStore returns the store of a windowed aggregation, or of a join of streams. See [Store].
func WindowStore[K, V any](d *Driver, name string) *state.Window[K, V] {
	d.tb.Helper()
	return Store[*state.Window[K, V]](d, name)
}

// SessionStore returns the store of an aggregation of sessions. See [Store].
func SessionStore[K, V any](d *Driver, name string) *state.Session[K, V] {
	d.tb.Helper()
	return Store[*state.Session[K, V]](d, name)
}

// StoreNames are the names of the topology's state stores, sorted.
func (d *Driver) StoreNames() []string { return slices.Sorted(maps.Keys(d.stores)) }
