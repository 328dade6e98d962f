package state

// KeyValue is an engine: keys and values as bytes, in the keys' byte order, as
// Java orders them.
//
// Slices that an engine returns belong to it, must not be changed, and are valid
// until the next write. Slices that it is given belong to the caller and are
// copied where they are kept.
type KeyValue interface {
	// Get returns the value of key, or nil where there is none.
	Get(key []byte) ([]byte, error)

	// Put sets the value of key. A nil value deletes it.
	Put(key, value []byte) error

	// Range iterates over the keys from from to to, both included, in order; a
	// nil bound is open. The engine must not be written to while the iterator
	// is open.
	Range(from, to []byte) Iterator

	// Len is the number of keys; an engine on disk may estimate it.
	Len() int

	// Flush makes what was written durable, where the engine is.
	Flush() error

	// Close ends the engine.
	Close() error
}

// Iterator walks over the entries of a KeyValue in order and must be closed.
//
//	it := kv.Range(nil, nil)
//	defer it.Close()
//	for it.Next() {
//		use(it.Key(), it.Value())
//	}
//	return it.Err()
type Iterator interface {
	Next() bool    // moves to the next entry; false at the end or on an error
	Key() []byte   // of the current entry, valid until the next call of Next
	Value() []byte // of the current entry, valid until the next call of Next
	Err() error    // what ended the walk early, or nil
	Close() error
}
