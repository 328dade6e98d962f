package state

import (
	"errors"
	"fmt"
)

// What callers may want to tell apart with errors.Is.
var (
	// ErrClosed is returned by every use of a store that is not open.
	ErrClosed = errors.New("the state store is closed")

	// ErrReadOnly is returned where a global store is written by a processor that
	// may only read it.
	ErrReadOnly = errors.New("the store is global, and only its own processor writes it")

	// ErrNullKey is returned for a key that its serde encodes as null.
	ErrNullKey = errors.New("a store has no null keys")

	// ErrMalformedKey is returned for a changelog record that the store can't
	// have written.
	ErrMalformedKey = errors.New("this is not a key of this kind of store: does something else produce to the changelog?")

	// ErrNegativeTime is returned for a window that starts or ends before 1970.
	ErrNegativeTime = errors.New("a window's time is negative")

	// ErrIteratorLeak is returned by Close where iterators were left open.
	ErrIteratorLeak = errors.New("iterators were not closed before the store")

	// ErrCorrupt is returned where files of a persistent store can't be what it
	// has written. Delete the directory: the store is rebuilt from its changelog.
	ErrCorrupt = errors.New("the files are damaged; delete the directory to have the store rebuilt from its changelog")

	// ErrDiskFull is returned where a persistent store found no room. The store
	// must be closed; opened again it is as it was at a checkpoint.
	ErrDiskFull = errors.New("the disk is full; make room and start again")

	// ErrLocked is returned where another process, or another store of this
	// one, has the directory open.
	ErrLocked = errors.New("the directory is in use; does another instance run with the same state directory?")
)

// Error is a failure of one store.
type Error struct {
	Store string // the store's name
	Op    string // what was tried: get, put, restore …
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("state store %q: %s: %v", e.Store, e.Op, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// DiskError is a failure of a store's files.
type DiskError struct {
	Dir  string // the store's directory
	Kind error  // ErrCorrupt, ErrDiskFull, ErrLocked, or nil for any other
	Err  error  // what the file system or the files' reader said
}

func (e *DiskError) Error() string {
	if e.Kind == nil {
		return fmt.Sprintf("%s: %v", e.Dir, e.Err)
	}
	return fmt.Sprintf("%s: %v (%v)", e.Dir, e.Kind, e.Err)
}

func (e *DiskError) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// leaked is the error for iterators that are open when their store ends.
func leaked(open int) error {
	if open == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d", ErrIteratorLeak, open)
}
