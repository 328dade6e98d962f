package state

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every use of a store that is not open.
var ErrClosed = errors.New("the state store is closed")

var errNullKey = errors.New("a store has no null keys")

// Store is what a task does with a store, whatever the store's kind.
type Store interface {
	// Name is the store's name, unique in its topology.
	Name() string

	// Open makes the store usable. Every later change is appended to log,
	// which is nil for a store without a changelog.
	Open(log Changelog) error

	// Restore applies one record of the store's changelog: key and value as in
	// the topic, a nil value for a tombstone, timestamp in milliseconds. Both
	// slices belong to the caller. Nothing is appended to the changelog.
	Restore(key, value []byte, timestamp int64) error

	// Flush makes every change up to now durable where the engine is, and is
	// called before a commit.
	Flush() error

	// Close ends the store. It can be opened again; whether it then still has
	// its data depends on the engine.
	Close() error
}

// Changelog takes the changes of a store, in the order in which they are made.
type Changelog interface {
	// Append logs one change. A nil value is a tombstone; timestamp is in
	// milliseconds. The slices belong to the caller and are copied.
	Append(key, value []byte, timestamp int64) error
}

// Error is a failure of one store.
type Error struct {
	Store string // the store's name
	Op    string // what was tried: get, put, restore …
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("state store %q: %s: %v", e.Store, e.Op, e.Err) }
func (e *Error) Unwrap() error { return e.Err }
