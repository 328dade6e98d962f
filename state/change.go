package state

// Change is a change that leaves the cache: what the value of a key became, and
// what it was when the cache was flushed before.
type Change[K, V any] struct {
	Key       K
	New, Old  V
	HasNew    bool  // false: the key was deleted, New is the zero value
	HasOld    bool  // there was a value before, and the listener asked for it
	Timestamp int64 // of the change, in milliseconds

	// OldTimestamp is the old value's timestamp in milliseconds, in stores that
	// keep it.
	OldTimestamp int64

	Headers []Header

	// Record is what OpenContext.Record returned when the change was made.
	Record any
}

// newChange is a change, by the encodings of its values; nil is none.
func newChange[K, V any](k K, value, old []byte, it *cached, decode func([]byte) (V, error)) (c Change[K, V], err error) {
	c = Change[K, V]{Key: k, HasNew: value != nil, HasOld: old != nil, Timestamp: it.timestamp, Headers: it.headers, Record: it.record}
	if c.HasNew {
		if c.New, err = decode(value); err != nil {
			return c, err
		}
	}
	if c.HasOld {
		c.Old, err = decode(old)
	}
	return c, err
}
