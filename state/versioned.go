package state

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/odradek-go/odradek/serde"
)

// Versioned is a key-value store that keeps the versions of each value, told by
// their timestamps, and can be asked for the one that was valid at a time
// (KIP-889, KIP-914). Versions may come out of order.
//
// A version is kept until time, as the store has seen it, is the history
// retention past the moment from which another one, or a tombstone, was valid. The
// latest version of a key is kept for ever. What is put with a timestamp before
// the retention isn't stored, but logged, as in Java. Versioned stores aren't
// cached.
//
// In the changelog each version is a record: the encodings of key and value as
// they are, and the timestamp from which on it is valid.
type Versioned[K, V any] struct {
	backing
	codec     codec[K, V]
	retention int64
	observed  int64 // the highest timestamp yet, −1 before the first
	due       int64 // nothing expires before observed − retention reaches this
	history   history
}

// VersionedRecord is a version of a value.
type VersionedRecord[V any] struct {
	Value     V
	Timestamp int64 // from which on it is valid, in milliseconds
}

// What [Versioned.Put] returns instead of a timestamp, with Java's values.
const (
	ValidToUndefined int64 = -1            // the version is the latest
	NotPut           int64 = math.MinInt64 // the version came too late to be stored
)

// NewVersioned returns a store, not yet open, whose data is kept by the engine
// that open opens. The history retention is the grace period, too.
func NewVersioned[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], historyRetention time.Duration, open OpenEngine) *Versioned[K, V] {
	return &Versioned[K, V]{
		backing: backing{name: name, make: open}, codec: newCodec(keys, values),
		retention: historyRetention.Milliseconds(),
	}
}

// Open implements [Store].
func (s *Versioned[K, V]) Open(ctx OpenContext) error {
	if err := s.backing.Open(ctx); err != nil {
		return err
	}
	s.observed, s.due, s.history.engine = -1, math.MinInt64, s.engine
	if c, ok := s.engine.Checkpointed(); ok {
		if len(c.Note) != 8 {
			return s.fail("open", errors.Join(ErrCorrupt, s.Close()))
		}
		s.observed = int64(binary.BigEndian.Uint64(c.Note))
	}
	return nil
}

// Checkpoint implements [Store].
func (s *Versioned[K, V]) Checkpoint(offset int64) error {
	if s.engine == nil {
		return s.fail("checkpoint", ErrClosed)
	}
	note := binary.BigEndian.AppendUint64(nil, uint64(s.observed))
	return s.fail("checkpoint", s.engine.Checkpoint(Checkpoint{Offset: offset, Note: note}))
}

// Flush implements [Store].
func (s *Versioned[K, V]) Flush() error {
	if s.engine == nil {
		return s.fail("flush", ErrClosed)
	}
	if s.ctx.Changelog == nil {
		return s.Checkpoint(0)
	}
	return nil
}

// Len is the number of keys that have a latest version or a tombstone that has
// not expired.
func (s *Versioned[K, V]) Len() (int, error) {
	if s.engine == nil {
		return 0, s.fail("len", ErrClosed)
	}
	n, err := s.history.len()
	return n, s.fail("len", err)
}

// Get returns the latest version of k; ok is false where there is none or where
// it is a tombstone.
func (s *Versioned[K, V]) Get(k K) (v VersionedRecord[V], ok bool, err error) {
	return s.find("get", k, func(key []byte) (version, error) { return s.history.latest(key) })
}

// GetAsOf returns the version of k that was valid at a time, in milliseconds; ok
// is false where there was none, and where the time is before the retention and
// the latest version isn't it.
func (s *Versioned[K, V]) GetAsOf(k K, asOf int64) (v VersionedRecord[V], ok bool, err error) {
	return s.find("get", k, func(key []byte) (version, error) { return s.asOf(key, asOf) })
}

func (s *Versioned[K, V]) asOf(key []byte, asOf int64) (version, error) {
	found, err := s.history.latest(key)
	switch {
	case err != nil || !found.exists || found.timestamp <= asOf:
		return found, err
	case asOf < s.observed-s.retention:
		return version{}, nil
	}
	return s.history.before(key, asOf)
}

func (s *Versioned[K, V]) find(op string, k K, find func(key []byte) (version, error)) (v VersionedRecord[V], ok bool, err error) {
	if s.engine == nil {
		return v, false, s.fail(op, ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return v, false, s.fail(op+": the key", err)
	}
	found, err := find(key)
	if err != nil || !found.exists || found.value == nil {
		return v, false, s.fail(op, err)
	}
	if v.Value, err = s.codec.values.Decode(found.value); err != nil {
		return v, false, s.fail(op+": the value", err)
	}
	v.Timestamp = found.timestamp
	return v, true, nil
}

// Put adds a version of k that is valid from timestamp on, in milliseconds, or
// replaces the one that was. It returns the time until which it is valid,
// [ValidToUndefined] or [NotPut]. A value that its serde makes null is a
// tombstone.
func (s *Versioned[K, V]) Put(k K, v V, timestamp int64) (validTo int64, err error) {
	if s.engine == nil {
		return NotPut, s.fail("put", ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return NotPut, s.fail("put: the key", err)
	}
	value, err := s.codec.encodeValue(s.codec.value[:0], v)
	if err != nil {
		return NotPut, s.fail("put: the value", err)
	}
	validTo, err = s.add(key, value, timestamp)
	if err == nil {
		err = s.log(key, value, timestamp, nil)
	}
	return validTo, s.fail("put", err)
}

// PutNull adds a tombstone from timestamp on, in milliseconds, as [Versioned.Put] adds
// a value, and returns what that returns.
func (s *Versioned[K, V]) PutNull(k K, timestamp int64) (validTo int64, err error) {
	if s.engine == nil {
		return NotPut, s.fail("put", ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return NotPut, s.fail("put: the key", err)
	}
	if validTo, err = s.add(key, nil, timestamp); err == nil {
		err = s.log(key, nil, timestamp, nil)
	}
	return validTo, s.fail("put", err)
}

// Delete adds a tombstone from timestamp on, in milliseconds, and returns the
// version that was valid then.
func (s *Versioned[K, V]) Delete(k K, timestamp int64) (v VersionedRecord[V], ok bool, err error) {
	if s.engine != nil && timestamp >= s.observed-s.retention {
		if v, ok, err = s.GetAsOf(k, timestamp); err != nil {
			return v, ok, err
		}
	}
	if s.engine == nil {
		return v, false, s.fail("delete", ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return v, false, s.fail("delete: the key", err)
	}
	if _, err = s.add(key, nil, timestamp); err == nil {
		err = s.log(key, nil, timestamp, nil)
	}
	return v, ok, s.fail("delete", err)
}

// Restore implements [Store].
func (s *Versioned[K, V]) Restore(key, value []byte, timestamp int64) error {
	if s.engine == nil {
		return s.fail("restore", ErrClosed)
	}
	_, err := s.add(key, value, timestamp)
	return s.fail("restore", err)
}

// add stores a version and lets expire what does.
func (s *Versioned[K, V]) add(key, value []byte, timestamp int64) (int64, error) {
	if timestamp < s.observed-s.retention {
		return NotPut, nil
	}
	s.observed = max(s.observed, timestamp)
	validTo, due, err := s.history.add(key, value, timestamp)
	if err != nil {
		return NotPut, err
	}
	s.due = min(s.due, due)
	if cutoff := s.observed - s.retention; s.due <= cutoff {
		s.due, err = s.history.expire(cutoff)
	}
	return validTo, err
}
