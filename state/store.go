package state

// Store is what a task does with a store, whatever the store's kind.
type Store interface {
	// Name is the store's name, unique in its topology.
	Name() string

	// Open makes the store usable, empty or as it was at a checkpoint.
	Open(OpenContext) error

	// Restore applies one record of the store's changelog: key and value as in
	// the topic, a nil value for a tombstone, timestamp in milliseconds. Both
	// slices belong to the caller. Nothing is appended to the changelog.
	Restore(key, value []byte, timestamp int64) error

	// Flush writes what a cache holds back to the store, to its changelog and
	// to its flush listener, and is called before a commit, for the stores of a
	// task in the order of its graph.
	Flush() error

	// Dirty says whether a cache holds changes back, to be flushed.
	Dirty() bool

	// Checkpoint says that the changelog holds everything that was written to
	// the store, and that offset is the offset of its next record: after a
	// commit, while restoring, while being kept as a standby, and before a
	// clean Close. A persistent store that is opened again later is found as it
	// was at a checkpoint. In memory it does nothing.
	Checkpoint(offset int64) error

	// Checkpointed returns the offset of the changelog from which on records
	// are missing in the store as it was opened. ok is false where that isn't
	// known, and then the store was opened empty: it must be restored from the
	// changelog's start. Stores in memory always are.
	Checkpointed() (offset int64, ok bool)

	// Close ends the store. It can be opened again. What was written since the
	// last checkpoint is lost, unless the store isn't logged.
	Close() error
}

// CacheClearer is a [Store] that may have a cache.
type CacheClearer interface {
	Store

	// ClearCache forgets what the cache holds, which is flushed, so that the store
	// can be restored: a running task has become a standby, and restoring passes the
	// cache by.
	ClearCache() error
}

// HeaderRestorer is a [Store] that needs the headers of its changelog's records too.
type HeaderRestorer interface {
	Store

	// RestoreHeaders is Restore with the record's headers, which belong to the
	// caller; their keys and values are never changed.
	RestoreHeaders(key, value []byte, timestamp int64, headers []Header) error
}

// OpenContext is what a task gives a store to open in.
type OpenContext struct {
	// Dir is the directory of the store's files. It is made by the store, which
	// is alone in it. Only persistent stores use it.
	Dir string

	// Fresh throws away what an earlier store has left in Dir.
	Fresh bool

	// Disk is what the persistent stores of an application share. Where it is
	// nil a persistent store makes its own.
	Disk *Disk

	// Changelog takes the store's changes; nil for a store that isn't logged.
	Changelog Changelog

	// Cache is the cache of the task's thread; nil turns off caching.
	Cache *Cache

	// Record returns what is being processed. It is kept with each change in
	// the cache and given back to the flush listener. May be nil.
	Record func() any
}

// Changelog takes the changes of a store, in the order in which they are made.
type Changelog interface {
	// Append logs one change. A nil value is a tombstone; timestamp is in
	// milliseconds, or NoTimestamp. The slices belong to the caller and are copied, except
	// those of headers, which are never changed.
	Append(key, value []byte, timestamp int64, headers []Header) error
}

// NoTimestamp leaves the timestamp of a changelog record to the producer: it is the
// time of day.
const NoTimestamp = -1

// Header is a header of a value and of its changelog record. Few stores keep them, those
// with EnableHeaders; the changelogs of some more have them: the windows of
// stream-stream joins and the subscriptions of foreign-key joins.
type Header struct {
	Key   string
	Value []byte // nil is null
}
