package state

// Engine keeps keys and values as bytes, in the keys' byte order, as Java orders
// them. It is used by one goroutine at a time.
//
// A slice that an engine returns belongs to it, must not be changed, and is valid
// until the engine's next call. Slices that it is given belong to the caller and
// are copied where they are kept.
type Engine interface {
	// Get returns the value of key, or nil where there is none.
	Get(key []byte) ([]byte, error)

	// Put sets the value of key. A nil value deletes it.
	Put(key, value []byte) error

	// Scan iterates over the keys from from, included, to to, excluded; a nil
	// bound is open. The engine may be written to meanwhile; whether the
	// iterator sees that is open.
	Scan(from, to []byte, order Order) Iterator

	// DropBefore deletes all keys before key, which are neither read nor
	// written again. It costs less than deleting them one by one.
	DropBefore(key []byte) error

	// Len is the number of keys; an engine on disk estimates it.
	Len() (int, error)

	// Checkpoint says that what was written up to now belongs to c. An engine
	// on disk that ends at any later moment, even by a crash, is found as it
	// was at one of its checkpoints, though not always the last, and never in
	// between. It costs little where little was written.
	Checkpoint(c Checkpoint) error

	// Checkpointed returns the checkpoint that the engine was found at when it
	// was opened; ok is false for one that was opened empty.
	Checkpointed() (c Checkpoint, ok bool)

	// Close ends the engine. What was written since the last checkpoint is
	// lost. Iterators that are open are closed and reported with
	// [ErrIteratorLeak].
	Close() error
}

// Checkpoint is a point in a store's history.
type Checkpoint struct {
	// Offset is the offset of the changelog record that comes next.
	Offset int64

	// Note is what the store itself must remember along with its data.
	Note []byte
}

// OpenEngine opens an engine for a store: [Memory] or [Persistent].
type OpenEngine func(OpenContext) (Engine, error)

// Order is the direction in which a store is walked.
type Order bool

// The orders. Forward is by rising key, and by rising time within a key.
const (
	Forward  Order = false
	Backward Order = true
)

// Iterator walks over the entries of an Engine and must be closed.
type Iterator interface {
	Next() bool    // moves to the next entry; false at the end or on an error
	Key() []byte   // of the current entry, valid until the next call of Next
	Value() []byte // of the current entry, valid until the next call of Next
	Err() error    // what ended the walk early, or nil
	Close() error
}
