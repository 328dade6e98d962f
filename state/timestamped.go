package state

import (
	"encoding/binary"
	"io"

	"github.com/odradek-go/odradek/serde"
)

// TimestampedKeyValue is a key-value store that remembers the timestamp of each
// value (KIP-258), as the stores behind tables do.
//
// In the engine a value is eight bytes of timestamp and then the value's
// encoding. In the changelog it is the encoding alone, and the timestamp is the
// record's: both as in Java Kafka Streams. A store with headers has them before that,
// and its changelog has them as the record's.
type TimestampedKeyValue[K, V any] struct {
	backing
	codec codec[K, V]
}

// NewTimestampedKeyValue returns a store, not yet open, whose data is kept by
// the engine that open opens.
func NewTimestampedKeyValue[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], open OpenEngine) *TimestampedKeyValue[K, V] {
	return &TimestampedKeyValue[K, V]{
		backing: backing{name: name, make: open, cutValue: timestampSize},
		codec:   newCodec(keys, values),
	}
}

const timestampSize = 8

// EnableCache makes the store hold its changes back in the thread's cache. It
// must be called before the store is opened.
func (s *TimestampedKeyValue[K, V]) EnableCache() { s.caching = true }

// OnFlush sets what is told of each change that leaves the cache, after it is in
// the store and in the changelog. Without wantOld old values aren't looked up.
func (s *TimestampedKeyValue[K, V]) OnFlush(wantOld bool, listener func(Change[K, V]) error) {
	s.wantOld = wantOld
	s.onFlush = func(key, value, old []byte, it *cached) error {
		k, err := s.codec.keys.Decode(key)
		if err != nil {
			return err
		}
		c, err := newTimestampedChange(k, value, old, it, &s.codec)
		if err != nil {
			return err
		}
		return listener(c)
	}
}

func newTimestampedChange[KOut, K, V any](k KOut, value, old []byte, it *cached, codec *codec[K, V]) (Change[KOut, V], error) {
	var timestamp int64
	c, err := newChange(k, value, old, it, func(raw []byte) (v V, err error) {
		timestamp, v, err = codec.decodeTimestamped(raw)
		return v, err
	})
	if c.HasOld {
		c.OldTimestamp = timestamp // the old value is decoded last
	}
	return c, err
}

// Get returns the value of k and its timestamp in milliseconds; ok is false
// where there is none.
func (s *TimestampedKeyValue[K, V]) Get(k K) (v V, timestamp int64, ok bool, err error) {
	raw, err := s.find(k)
	if err != nil || raw == nil {
		return v, 0, false, err
	}
	timestamp, v, err = s.codec.decodeTimestamped(raw)
	if err != nil {
		return v, 0, false, s.fail("get: the value", err)
	}
	return v, timestamp, true, nil
}

// Headers returns the headers that the value of k was put with, nil where there are
// none, or no value, or where the store doesn't keep them.
func (s *TimestampedKeyValue[K, V]) Headers(k K) ([]Header, error) {
	raw, err := s.find(k)
	if err != nil {
		return nil, err
	}
	headers, err := s.codec.decodeHeaders(raw)
	return headers, s.fail("get: the headers", err)
}

// find returns what the engine has of k.
func (s *TimestampedKeyValue[K, V]) find(k K) ([]byte, error) {
	if s.engine == nil {
		return nil, s.fail("get", ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return nil, s.fail("get: the key", err)
	}
	raw, err := s.get(key)
	return raw, s.fail("get", err)
}

// Put sets the value of k, with its timestamp in milliseconds, and logs the
// change. A value that its serde makes null deletes k.
func (s *TimestampedKeyValue[K, V]) Put(k K, v V, timestamp int64) error {
	return s.PutHeaders(k, v, timestamp, nil)
}

// PutHeaders is Put with headers. They go to the changelog, as those of the
// subscriptions of foreign-key joins do; a store with headers keeps them, too. They
// must not be changed later.
func (s *TimestampedKeyValue[K, V]) PutHeaders(k K, v V, timestamp int64, headers []Header) error {
	if s.engine == nil {
		return s.fail("put", ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return s.fail("put: the key", err)
	}
	value, err := s.codec.encodeTimestamped(v, timestamp, headers)
	if err != nil {
		return s.fail("put: the value", err)
	}
	return s.fail("put", s.put(key, value, timestamp, headers))
}

// Delete removes k and logs a tombstone whose timestamp, in milliseconds, is
// that of the record that made it go.
func (s *TimestampedKeyValue[K, V]) Delete(k K, timestamp int64) error {
	return s.DeleteHeaders(k, timestamp, nil)
}

// DeleteHeaders is Delete with headers for the changelog.
func (s *TimestampedKeyValue[K, V]) DeleteHeaders(k K, timestamp int64, headers []Header) error {
	if s.engine == nil {
		return s.fail("delete", ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return s.fail("delete: the key", err)
	}
	return s.fail("delete", s.put(key, nil, timestamp, headers))
}

// Range walks over the entries within bounds.
func (s *TimestampedKeyValue[K, V]) Range(bounds Bounds[K], order Order) *TimestampedIterator[K, V] {
	it, err := scanBounds(&s.backing, &s.codec, bounds, order)
	return &TimestampedIterator[K, V]{walk: s.walk("range", it, err), s: s}
}

// Prefix walks over the entries whose encoded keys begin with prefix.
func (s *TimestampedKeyValue[K, V]) Prefix(prefix []byte, order Order) *TimestampedIterator[K, V] {
	it, err := s.scanPrefix(prefix, order)
	return &TimestampedIterator[K, V]{walk: s.walk("prefix", it, err), s: s}
}

// All calls yield for each entry in the order of the encoded keys, until yield
// returns false.
func (s *TimestampedKeyValue[K, V]) All(yield func(k K, v V, timestamp int64) bool) error {
	it := s.Range(Bounds[K]{}, Forward)
	defer it.Close()
	for it.Next() && yield(it.key, it.value, it.timestamp) {
	}
	return it.Err()
}

// Restore implements [Store].
func (s *TimestampedKeyValue[K, V]) Restore(key, value []byte, timestamp int64) error {
	return s.RestoreHeaders(key, value, timestamp, nil)
}

// RestoreHeaders implements [HeaderRestorer].
func (s *TimestampedKeyValue[K, V]) RestoreHeaders(key, value []byte, timestamp int64, headers []Header) error {
	if s.engine == nil {
		return s.fail("restore", ErrClosed)
	}
	if value != nil {
		value = s.codec.stamp(value, timestamp, headers)
	}
	return s.fail("restore", s.engine.Put(key, value))
}

// stamp puts headers and a timestamp before the encoding of a value.
func (c *codec[K, V]) stamp(value []byte, timestamp int64, headers []Header) []byte {
	c.value = append(binary.BigEndian.AppendUint64(c.prefix(headers), uint64(timestamp)), value...)
	return c.value
}

// encodeTimestamped encodes a value after its headers and its timestamp; nil where it
// is null.
func (c *codec[K, V]) encodeTimestamped(v V, timestamp int64, headers []Header) ([]byte, error) {
	return c.encodeValue(binary.BigEndian.AppendUint64(c.prefix(headers), uint64(timestamp)), v)
}

func (c *codec[K, V]) decodeTimestamped(raw []byte) (timestamp int64, v V, err error) {
	if raw, err = c.cutPrefix(raw); err != nil {
		return 0, v, err
	}
	if len(raw) < timestampSize {
		return 0, v, io.ErrUnexpectedEOF
	}
	v, err = c.values.Decode(raw[timestampSize:])
	return int64(binary.BigEndian.Uint64(raw)), v, err
}

// TimestampedIterator walks over entries of a [TimestampedKeyValue], in the way
// of a [KeyValueIterator], and must be closed.
type TimestampedIterator[K, V any] struct {
	walk
	s         *TimestampedKeyValue[K, V]
	key       K
	value     V
	timestamp int64
	headers   []Header
}

// Next moves to the next entry. It is false at the end, or on an error.
func (it *TimestampedIterator[K, V]) Next() bool {
	return it.next(func(key, value []byte) (err error) {
		if it.key, err = it.s.codec.keys.Decode(key); err == nil {
			it.timestamp, it.value, err = it.s.codec.decodeTimestamped(value)
		}
		if err == nil {
			it.headers, err = it.s.codec.decodeHeaders(value)
		}
		return err
	})
}

// Key is the current entry's key.
func (it *TimestampedIterator[K, V]) Key() K { return it.key }

// Value is the current entry's value.
func (it *TimestampedIterator[K, V]) Value() V { return it.value }

// Timestamp is the current value's timestamp in milliseconds.
func (it *TimestampedIterator[K, V]) Timestamp() int64 { return it.timestamp }

// Headers are those of the current value: see [TimestampedKeyValue.Headers].
func (it *TimestampedIterator[K, V]) Headers() []Header { return it.headers }
