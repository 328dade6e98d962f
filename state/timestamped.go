package state

import (
	"encoding/binary"

	"github.com/odradek-go/odradek/serde"
)

// TimestampedKeyValue is a key-value store that remembers the timestamp of each
// value (KIP-258), as the stores behind tables do.
//
// In the engine a value is eight bytes of timestamp and then the value's
// encoding. In the changelog it is the encoding alone, and the timestamp is the
// record's: both as in Java Kafka Streams.
type TimestampedKeyValue[K, V any] struct {
	name   string
	keys   serde.Serde[K]
	values serde.Serde[V]
	make   func() KeyValue

	engine KeyValue
	log    Changelog
	key    []byte // reused for each operation
	value  []byte
}

// NewTimestampedKeyValue returns a store, not yet open, whose data is kept by
// the engine that newEngine makes.
func NewTimestampedKeyValue[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], newEngine func() KeyValue) *TimestampedKeyValue[K, V] {
	return &TimestampedKeyValue[K, V]{
		name: name, keys: keys, values: values, make: newEngine,
		key: make([]byte, 0, 64), value: make([]byte, 0, 64),
	}
}

const timestampSize = 8

// Name implements [Store].
func (s *TimestampedKeyValue[K, V]) Name() string { return s.name }

// Open implements [Store].
func (s *TimestampedKeyValue[K, V]) Open(log Changelog) error {
	s.engine, s.log = s.make(), log
	return nil
}

// Get returns the value of k and its timestamp in milliseconds; ok is false
// where there is none.
func (s *TimestampedKeyValue[K, V]) Get(k K) (v V, timestamp int64, ok bool, err error) {
	if s.engine == nil {
		return v, 0, false, s.fail("get", ErrClosed)
	}
	key, err := s.encodeKey(k)
	if err != nil {
		return v, 0, false, s.fail("get: the key", err)
	}
	raw, err := s.engine.Get(key)
	if err != nil || raw == nil {
		return v, 0, false, s.fail("get", err)
	}
	timestamp, v, err = s.decode(raw)
	if err != nil {
		return v, 0, false, s.fail("get: the value", err)
	}
	return v, timestamp, true, nil
}

// Put sets the value of k, with its timestamp in milliseconds, and logs the
// change. A value that its serde makes null deletes k.
func (s *TimestampedKeyValue[K, V]) Put(k K, v V, timestamp int64) error {
	if s.engine == nil {
		return s.fail("put", ErrClosed)
	}
	key, err := s.encodeKey(k)
	if err != nil {
		return s.fail("put: the key", err)
	}
	stamped := binary.BigEndian.AppendUint64(s.value[:0], uint64(timestamp))
	encoded, err := s.values.Append(stamped, v)
	if err != nil {
		return s.fail("put: the value", err)
	}
	if encoded == nil {
		return s.put(key, nil, timestamp)
	}
	s.value = encoded
	return s.put(key, encoded, timestamp)
}

// Delete removes k and logs a tombstone whose timestamp, in milliseconds, is
// that of the record that made it go.
func (s *TimestampedKeyValue[K, V]) Delete(k K, timestamp int64) error {
	if s.engine == nil {
		return s.fail("delete", ErrClosed)
	}
	key, err := s.encodeKey(k)
	if err != nil {
		return s.fail("delete: the key", err)
	}
	return s.put(key, nil, timestamp)
}

// All calls yield for each entry in the order of the encoded keys, until yield
// returns false. The store must not be written to meanwhile.
func (s *TimestampedKeyValue[K, V]) All(yield func(k K, v V, timestamp int64) bool) error {
	if s.engine == nil {
		return s.fail("all", ErrClosed)
	}
	it := s.engine.Range(nil, nil)
	defer it.Close()
	for it.Next() {
		k, err := s.keys.Decode(it.Key())
		if err != nil {
			return s.fail("all: a key", err)
		}
		timestamp, v, err := s.decode(it.Value())
		if err != nil {
			return s.fail("all: a value", err)
		}
		if !yield(k, v, timestamp) {
			return nil
		}
	}
	return s.fail("all", it.Err())
}

// Len is the number of entries.
func (s *TimestampedKeyValue[K, V]) Len() int {
	if s.engine == nil {
		return 0
	}
	return s.engine.Len()
}

// Restore implements [Store].
func (s *TimestampedKeyValue[K, V]) Restore(key, value []byte, timestamp int64) error {
	if s.engine == nil {
		return s.fail("restore", ErrClosed)
	}
	if value == nil {
		return s.fail("restore", s.engine.Put(key, nil))
	}
	s.value = append(binary.BigEndian.AppendUint64(s.value[:0], uint64(timestamp)), value...)
	return s.fail("restore", s.engine.Put(key, s.value))
}

// Flush implements [Store].
func (s *TimestampedKeyValue[K, V]) Flush() error {
	if s.engine == nil {
		return s.fail("flush", ErrClosed)
	}
	return s.fail("flush", s.engine.Flush())
}

// Close implements [Store].
func (s *TimestampedKeyValue[K, V]) Close() error {
	if s.engine == nil {
		return nil
	}
	err := s.engine.Close()
	s.engine, s.log = nil, nil
	return s.fail("close", err)
}

func (s *TimestampedKeyValue[K, V]) encodeKey(k K) ([]byte, error) {
	key, err := s.keys.Append(s.key[:0], k)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, errNullKey
	}
	s.key = key
	return key, nil
}

func (s *TimestampedKeyValue[K, V]) decode(raw []byte) (int64, V, error) {
	v, err := s.values.Decode(raw[timestampSize:])
	return int64(binary.BigEndian.Uint64(raw)), v, err
}

// put writes to the engine first: a change that the engine refuses must not be
// in the changelog.
func (s *TimestampedKeyValue[K, V]) put(key, stamped []byte, timestamp int64) error {
	if err := s.engine.Put(key, stamped); err != nil {
		return s.fail("put", err)
	}
	if s.log == nil {
		return nil
	}
	var value []byte
	if stamped != nil {
		value = stamped[timestampSize:]
	}
	return s.fail("append to the changelog", s.log.Append(key, value, timestamp))
}

func (s *TimestampedKeyValue[K, V]) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Store: s.name, Op: op, Err: err}
}
