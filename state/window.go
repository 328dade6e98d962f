package state

import (
	"time"

	"github.com/odradek-go/odradek/serde"
)

// Window is a store of values by key and window, where a window is told by its
// start. It keeps a timestamp with each value (KIP-258).
//
// A window's entry expires when a window starts that is the retention later.
// What is put after that isn't stored, but logged, as in Java.
//
// In the changelog a key is the key's encoding, the start in 8 bytes and a
// sequence number in 4, and the value is the encoding alone, with the timestamp
// as the record's. A store with headers keeps those of each value, and its changelog
// has them as the record's.
type Window[K, V any] struct {
	backing
	codec codec[K, V]
	size  int64
	many  bool
}

// WindowOptions are the settings of a [Window].
type WindowOptions struct {
	// Size is the size of the windows. It is not written: it gives windows
	// their ends.
	Size time.Duration

	// Retention is how long windows are kept, by the times that the store sees.
	// It must be at least the size and the grace period together.
	Retention time.Duration

	// RetainDuplicates makes each put an entry of its own, told from others of
	// its key and window by the sequence number, as joins of streams need. Such
	// a store isn't cached, and nothing is deleted in it.
	RetainDuplicates bool
}

// NewWindow returns a store, not yet open, whose data is kept by the engine that
// open opens.
func NewWindow[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], options WindowOptions, open OpenEngine) *Window[K, V] {
	return &Window[K, V]{
		backing: backing{
			name: name, make: open, cutKey: segmentSize, cutValue: timestampSize,
			windows: newSegments(options.Retention, windowSuffixSize),
		},
		codec: newCodec(keys, values),
		size:  options.Size.Milliseconds(),
		many:  options.RetainDuplicates,
	}
}

// EnableCache makes the store hold its changes back in the thread's cache, unless
// it has duplicates or an index. It must be called before the store is opened.
func (s *Window[K, V]) EnableCache() { s.caching = !s.many && !s.windows.indexed }

// OrderByTime keeps windows in the order of their starts and then of their keys,
// which is that of all walks then: what emits windows when they close finds them
// together. A single window is found as fast, those of one key are not. As in Java,
// a window is shown a millisecond longer than its retention, so that one whose end
// is a time that a window starts at can be emitted then. It must be called before
// the store is opened.
func (s *Window[K, V]) OrderByTime() { s.windows.interval, s.windows.slack = 1, 1 }

// IndexByTime keeps an index beside, by which walks over the windows of all keys go
// in the order of their starts and then of their keys. What is looked for by key is
// found as fast; a change costs more. Such a store isn't cached, and shows windows a
// millisecond longer, as with [Window.OrderByTime]. It must be called before the
// store is opened.
func (s *Window[K, V]) IndexByTime() {
	s.windows.indexed, s.windows.slack, s.caching = true, 1, false
}

// OnFlush sets what is told of each change that leaves the cache, after it is in
// the store and in the changelog. Without wantOld old values aren't looked up.
func (s *Window[K, V]) OnFlush(wantOld bool, listener func(Change[serde.Windowed[K], V]) error) {
	s.wantOld = wantOld
	s.onFlush = func(key, value, old []byte, it *cached) error {
		w, err := s.decodeKey(key)
		if err != nil {
			return err
		}
		c, err := newTimestampedChange(w, value, old, it, &s.codec)
		if err != nil {
			return err
		}
		return listener(c)
	}
}

// Get returns the value of k in the window that starts at start, in milliseconds,
// and the value's timestamp; ok is false where there is none. Of several it is
// the first.
func (s *Window[K, V]) Get(k K, start int64) (v V, timestamp int64, ok bool, err error) {
	if s.many {
		it := s.Fetch(k, start, start, Forward)
		defer it.Close()
		if ok = it.Next(); ok {
			v, timestamp = it.Value(), it.Timestamp()
		}
		return v, timestamp, ok, it.Err()
	}
	raw, err := s.find(k, start)
	if err != nil || raw == nil {
		return v, 0, false, err
	}
	timestamp, v, err = s.codec.decodeTimestamped(raw)
	if err != nil {
		return v, 0, false, s.fail("get: the value", err)
	}
	return v, timestamp, true, nil
}

// Headers returns the headers that the value of k in the window that starts at start
// was put with, nil where there are none, or no value, or where the store doesn't keep
// them. Of several values it is the first.
func (s *Window[K, V]) Headers(k K, start int64) ([]Header, error) {
	if s.many {
		it := s.Fetch(k, start, start, Forward)
		defer it.Close()
		it.Next()
		return it.Headers(), it.Err()
	}
	raw, err := s.find(k, start)
	if err != nil {
		return nil, err
	}
	headers, err := s.codec.decodeHeaders(raw)
	return headers, s.fail("get: the headers", err)
}

// find returns what the engine has of k in a window, in a store without duplicates.
func (s *Window[K, V]) find(k K, start int64) ([]byte, error) {
	if s.engine == nil {
		return nil, s.fail("get", ErrClosed)
	}
	key, err := s.encodeKey(k, start, 0)
	if err != nil {
		return nil, s.fail("get: the key", err)
	}
	raw, err := s.get(key)
	return raw, s.fail("get", err)
}

// Put sets the value of k in the window that starts at start, with the value's
// timestamp, both in milliseconds, and logs the change. A value that its serde
// makes null deletes the entry.
func (s *Window[K, V]) Put(k K, start int64, v V, timestamp int64) error {
	return s.PutHeaders(k, start, v, timestamp, nil)
}

// PutHeaders is Put with headers. They go to the changelog, as those of the windows of
// stream-stream joins do; a store with headers keeps them, too. They must not be
// changed later.
func (s *Window[K, V]) PutHeaders(k K, start int64, v V, timestamp int64, headers []Header) error {
	if s.engine == nil {
		return s.fail("put", ErrClosed)
	}
	value, err := s.codec.encodeTimestamped(v, timestamp, headers)
	if err != nil {
		return s.fail("put: the value", err)
	}
	return s.set("put", k, start, value, timestamp, headers)
}

// Delete removes the entry of k in the window that starts at start and logs a
// tombstone whose timestamp is that of the record that made it go.
func (s *Window[K, V]) Delete(k K, start, timestamp int64) error {
	return s.DeleteHeaders(k, start, timestamp, nil)
}

// DeleteHeaders is Delete with headers for the changelog.
func (s *Window[K, V]) DeleteHeaders(k K, start, timestamp int64, headers []Header) error {
	if s.engine == nil {
		return s.fail("delete", ErrClosed)
	}
	return s.set("delete", k, start, nil, timestamp, headers)
}

func (s *Window[K, V]) set(op string, k K, start int64, value []byte, timestamp int64, headers []Header) error {
	sequence := uint32(0)
	if s.many {
		sequence = (s.windows.sequence + 1) & 0x7fffffff
	}
	key, err := s.encodeKey(k, start, sequence)
	if err != nil {
		return s.fail(op+": the key", err)
	}
	s.windows.sequence = sequence
	if s.many && value == nil { // it is none of the entries', and yet logged
		return s.fail(op, s.log(key, nil, timestamp, headers))
	}
	return s.fail(op, s.put(key, value, timestamp, headers))
}

// Restore implements [Store].
func (s *Window[K, V]) Restore(key, value []byte, timestamp int64) error {
	return s.RestoreHeaders(key, value, timestamp, nil)
}

// RestoreHeaders implements [HeaderRestorer].
func (s *Window[K, V]) RestoreHeaders(key, value []byte, timestamp int64, headers []Header) error {
	if s.engine == nil {
		return s.fail("restore", ErrClosed)
	}
	_, start, sequence, ok := splitWindowKey(key)
	if !ok {
		return s.fail("restore", ErrMalformedKey)
	}
	if s.many {
		s.windows.sequence = max(s.windows.sequence, sequence)
		if value == nil {
			return nil
		}
	}
	if value != nil {
		value = s.codec.stamp(value, timestamp, headers)
	}
	s.codec.key = append(s.windows.appendPrefix(s.codec.key[:0], start), key...)
	return s.fail("restore", s.store(s.codec.key, value))
}

// encodeKey encodes a key of the engine.
func (s *Window[K, V]) encodeKey(k K, start int64, sequence uint32) ([]byte, error) {
	if start < 0 {
		return nil, ErrNegativeTime
	}
	key, err := s.codec.appendKey(s.windows.appendPrefix(s.codec.key[:0], start), k)
	if err != nil {
		return nil, err
	}
	s.codec.key = appendWindowSuffix(key, start, sequence)
	return s.codec.key, nil
}

func (s *Window[K, V]) decodeKey(key []byte) (w serde.Windowed[K], err error) {
	raw, start, _, ok := splitWindowKey(key[segmentSize:])
	if !ok {
		return w, ErrMalformedKey
	}
	w.Start, w.End = start, s.WindowEnd(start)
	w.Key, err = s.codec.keys.Decode(raw)
	return w, err
}
