package state

import (
	"encoding/binary"
	"time"

	"github.com/odradek-go/odradek/serde"
)

// Session is a store of values by key and session, where a session is told by
// its start and its end, the times of its first and its last record.
//
// A session expires when another ends that is the retention later. What is put
// after that isn't stored, but logged, as in Java.
//
// In the changelog a key is the key's encoding, the end and the start in 8 bytes
// each, and the value is the encoding alone. A store with headers keeps those of each
// value, and its changelog has them as the record's.
type Session[K, V any] struct {
	backing
	codec codec[K, V]
}

// NewSession returns a store, not yet open, whose data is kept by the engine that
// open opens. The retention, by the times that the store sees, must be at least
// the inactivity gap and the grace period together.
func NewSession[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], retention time.Duration, open OpenEngine) *Session[K, V] {
	return &Session[K, V]{
		backing: backing{
			name: name, make: open, cutKey: segmentSize,
			windows: newSegments(retention, sessionSuffixSize),
		},
		codec: newCodec(keys, values),
	}
}

// EnableCache makes the store hold its changes back in the thread's cache, unless
// it has an index. It must be called before the store is opened.
func (s *Session[K, V]) EnableCache() { s.caching = !s.windows.indexed }

// IndexByTime keeps an index beside, by which walks over the sessions of all keys go
// in the order of their ends, then of their starts, then of their keys: what emits
// sessions when they close finds them together. What is looked for by key is found
// as fast; a change costs more. Such a store isn't cached. It must be called before
// the store is opened.
func (s *Session[K, V]) IndexByTime() { s.windows.indexed, s.caching = true, false }

// OnFlush sets what is told of each change that leaves the cache, after it is in
// the store and in the changelog. Without wantOld old values aren't looked up.
func (s *Session[K, V]) OnFlush(wantOld bool, listener func(Change[serde.Windowed[K], V]) error) {
	s.wantOld = wantOld
	s.onFlush = func(key, value, old []byte, it *cached) error {
		w, err := s.decodeKey(key)
		if err != nil {
			return err
		}
		c, err := newChange(w, value, old, it, s.decodeValue)
		if err != nil {
			return err
		}
		return listener(c)
	}
}

// Get returns the value of a session; ok is false where there is none.
func (s *Session[K, V]) Get(w serde.Windowed[K]) (v V, ok bool, err error) {
	raw, err := s.find(w)
	if err != nil || raw == nil {
		return v, false, err
	}
	if v, err = s.decodeValue(raw); err != nil {
		return v, false, s.fail("get: the value", err)
	}
	return v, true, nil
}

// Headers returns the headers that the value of a session was put with, nil where
// there are none, or no value, or where the store doesn't keep them.
func (s *Session[K, V]) Headers(w serde.Windowed[K]) ([]Header, error) {
	raw, err := s.find(w)
	if err != nil {
		return nil, err
	}
	headers, err := s.codec.decodeHeaders(raw)
	return headers, s.fail("get: the headers", err)
}

// find returns what the engine has of a session.
func (s *Session[K, V]) find(w serde.Windowed[K]) ([]byte, error) {
	if s.engine == nil {
		return nil, s.fail("get", ErrClosed)
	}
	key, err := s.encodeKey(w)
	if err != nil {
		return nil, s.fail("get: the key", err)
	}
	raw, err := s.get(key)
	return raw, s.fail("get", err)
}

// Put sets the value of a session. The timestamp, in milliseconds, is that of the
// record being processed and goes to the changelog only. A value that its serde
// makes null removes the session.
func (s *Session[K, V]) Put(w serde.Windowed[K], v V, timestamp int64) error {
	return s.PutHeaders(w, v, timestamp, nil)
}

// PutHeaders is Put with headers. They go to the changelog; a store with headers keeps
// them, too. They must not be changed later.
func (s *Session[K, V]) PutHeaders(w serde.Windowed[K], v V, timestamp int64, headers []Header) error {
	if s.engine == nil {
		return s.fail("put", ErrClosed)
	}
	value, err := s.codec.encodeValue(s.codec.prefix(headers), v)
	if err != nil {
		return s.fail("put: the value", err)
	}
	return s.set("put", w, value, timestamp, headers)
}

// Remove removes a session and logs a tombstone whose timestamp, in milliseconds,
// is that of the record that made it go.
func (s *Session[K, V]) Remove(w serde.Windowed[K], timestamp int64) error {
	return s.RemoveHeaders(w, timestamp, nil)
}

// RemoveHeaders is Remove with headers for the changelog.
func (s *Session[K, V]) RemoveHeaders(w serde.Windowed[K], timestamp int64, headers []Header) error {
	if s.engine == nil {
		return s.fail("remove", ErrClosed)
	}
	return s.set("remove", w, nil, timestamp, headers)
}

func (s *Session[K, V]) set(op string, w serde.Windowed[K], value []byte, timestamp int64, headers []Header) error {
	key, err := s.encodeKey(w)
	if err != nil {
		return s.fail(op+": the key", err)
	}
	return s.fail(op, s.put(key, value, timestamp, headers))
}

// Find walks over the sessions of k that end at earliestEnd or later and start
// at latestStart or earlier, in milliseconds: those that a record would join. They
// come in the order of their ends.
func (s *Session[K, V]) Find(k K, earliestEnd, latestStart int64, order Order) *WindowIterator[K, V] {
	it, err := scanKey(&s.backing, &s.codec, k, span{earliest: earliestEnd, latest: forever, order: order}, startsBy(latestStart))
	return s.iterate("find", it, err)
}

// FindRange is Find for the keys within bounds. The sessions of one key come in
// the order of their ends; whole segments of time come one after the other.
func (s *Session[K, V]) FindRange(bounds Bounds[K], earliestEnd, latestStart int64, order Order) *WindowIterator[K, V] {
	it, err := scanKeys(&s.backing, &s.codec, bounds, span{earliest: earliestEnd, latest: forever, order: order}, startsBy(latestStart))
	return s.iterate("find", it, err)
}

// FindEnds walks over the sessions of all keys that end from earliest to latest,
// both included, in milliseconds. With an index, as in Java, it shows those too that
// have expired and are still there.
func (s *Session[K, V]) FindEnds(earliest, latest int64, order Order) *WindowIterator[K, V] {
	sp := span{earliest: earliest, latest: latest, order: order, gone: s.windows.indexed}
	it, err := scanKeys(&s.backing, &s.codec, Bounds[K]{}, sp, nil)
	return s.iterate("find", it, err)
}

// Fetch walks over all sessions of k.
func (s *Session[K, V]) Fetch(k K, order Order) *WindowIterator[K, V] {
	return s.Find(k, 0, forever, order)
}

// FetchRange walks over all sessions of the keys within bounds, in the order of
// [Session.FindRange].
func (s *Session[K, V]) FetchRange(bounds Bounds[K], order Order) *WindowIterator[K, V] {
	return s.FindRange(bounds, 0, forever, order)
}

func startsBy(latest int64) func([]byte) bool {
	return func(key []byte) bool { return int64(binary.BigEndian.Uint64(key[len(key)-8:])) <= latest }
}

func (s *Session[K, V]) iterate(op string, it Iterator, err error) *WindowIterator[K, V] {
	return &WindowIterator[K, V]{
		walk: s.walk(op, it, err), decodeKey: s.decodeKey,
		decodeValue:   func(raw []byte) (int64, V, error) { v, err := s.decodeValue(raw); return -1, v, err },
		decodeHeaders: s.codec.decodeHeaders,
	}
}

// Restore implements [Store].
func (s *Session[K, V]) Restore(key, value []byte, timestamp int64) error {
	return s.RestoreHeaders(key, value, timestamp, nil)
}

// RestoreHeaders implements [HeaderRestorer].
func (s *Session[K, V]) RestoreHeaders(key, value []byte, timestamp int64, headers []Header) error {
	if s.engine == nil {
		return s.fail("restore", ErrClosed)
	}
	_, _, end, ok := splitSessionKey(key)
	if !ok {
		return s.fail("restore", ErrMalformedKey)
	}
	if value != nil && s.codec.headers {
		s.codec.value = append(s.codec.prefix(headers), value...)
		value = s.codec.value
	}
	s.codec.key = append(s.windows.appendPrefix(s.codec.key[:0], end), key...)
	return s.fail("restore", s.store(s.codec.key, value))
}

// encodeKey encodes a key of the engine.
func (s *Session[K, V]) encodeKey(w serde.Windowed[K]) ([]byte, error) {
	if w.Start < 0 || w.End < 0 {
		return nil, ErrNegativeTime
	}
	key, err := s.codec.appendKey(s.windows.appendPrefix(s.codec.key[:0], w.End), w.Key)
	if err != nil {
		return nil, err
	}
	s.codec.key = appendSessionSuffix(key, w.Start, w.End)
	return s.codec.key, nil
}

func (s *Session[K, V]) decodeKey(key []byte) (w serde.Windowed[K], err error) {
	raw, start, end, ok := splitSessionKey(key[segmentSize:])
	if !ok {
		return w, ErrMalformedKey
	}
	w.Start, w.End = start, end
	w.Key, err = s.codec.keys.Decode(raw)
	return w, err
}

func (s *Session[K, V]) decodeValue(raw []byte) (v V, err error) {
	if raw, err = s.codec.cutPrefix(raw); err != nil {
		return v, err
	}
	return s.codec.values.Decode(raw)
}
