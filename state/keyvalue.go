package state

import (
	"github.com/odradek-go/odradek/serde"
)

// KeyValue is a key-value store.
//
// Its changelog has the encodings of key and value as they are.
type KeyValue[K, V any] struct {
	backing
	codec codec[K, V]
}

// NewKeyValue returns a store, not yet open, whose data is kept by the engine
// that open opens.
func NewKeyValue[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], open OpenEngine) *KeyValue[K, V] {
	return &KeyValue[K, V]{
		backing: backing{name: name, make: open},
		codec:   newCodec(keys, values),
	}
}

// EnableCache makes the store hold its changes back in the thread's cache. It
// must be called before the store is opened.
func (s *KeyValue[K, V]) EnableCache() { s.caching = true }

// OnFlush sets what is told of each change that leaves the cache, after it is in
// the store and in the changelog. Without wantOld old values aren't looked up.
func (s *KeyValue[K, V]) OnFlush(wantOld bool, listener func(Change[K, V]) error) {
	s.wantOld = wantOld
	s.onFlush = func(key, value, old []byte, it *cached) error {
		k, err := s.codec.keys.Decode(key)
		if err != nil {
			return err
		}
		c, err := newChange(k, value, old, it, s.codec.values.Decode)
		if err != nil {
			return err
		}
		return listener(c)
	}
}

// Get returns the value of k; ok is false where there is none.
func (s *KeyValue[K, V]) Get(k K) (v V, ok bool, err error) {
	if s.engine == nil {
		return v, false, s.fail("get", ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return v, false, s.fail("get: the key", err)
	}
	raw, err := s.get(key)
	if err != nil || raw == nil {
		return v, false, s.fail("get", err)
	}
	if v, err = s.codec.values.Decode(raw); err != nil {
		return v, false, s.fail("get: the value", err)
	}
	return v, true, nil
}

// Put sets the value of k. The timestamp, in milliseconds, is that of the record
// being processed and goes to the changelog only. A value that its serde makes
// null deletes k.
func (s *KeyValue[K, V]) Put(k K, v V, timestamp int64) error {
	if s.engine == nil {
		return s.fail("put", ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return s.fail("put: the key", err)
	}
	value, err := s.codec.encodeValue(s.codec.value[:0], v)
	if err != nil {
		return s.fail("put: the value", err)
	}
	return s.fail("put", s.put(key, value, timestamp, nil))
}

// Delete removes k and logs a tombstone whose timestamp, in milliseconds, is that
// of the record that made it go.
func (s *KeyValue[K, V]) Delete(k K, timestamp int64) error {
	if s.engine == nil {
		return s.fail("delete", ErrClosed)
	}
	key, err := s.codec.encodeKey(k)
	if err != nil {
		return s.fail("delete: the key", err)
	}
	return s.fail("delete", s.put(key, nil, timestamp, nil))
}

// Range walks over the entries within bounds.
func (s *KeyValue[K, V]) Range(bounds Bounds[K], order Order) *KeyValueIterator[K, V] {
	it, err := scanBounds(&s.backing, &s.codec, bounds, order)
	return &KeyValueIterator[K, V]{walk: s.walk("range", it, err), s: s}
}

// Prefix walks over the entries whose encoded keys begin with prefix.
func (s *KeyValue[K, V]) Prefix(prefix []byte, order Order) *KeyValueIterator[K, V] {
	it, err := s.scanPrefix(prefix, order)
	return &KeyValueIterator[K, V]{walk: s.walk("prefix", it, err), s: s}
}

func (b *backing) scanPrefix(prefix []byte, order Order) (Iterator, error) {
	if b.engine == nil {
		return nil, ErrClosed
	}
	return b.scan(append([]byte{}, prefix...), successor(prefix), order), nil
}

// Restore implements [Store].
func (s *KeyValue[K, V]) Restore(key, value []byte, timestamp int64) error {
	if s.engine == nil {
		return s.fail("restore", ErrClosed)
	}
	return s.fail("restore", s.engine.Put(key, value))
}

// KeyValueIterator walks over entries of a [KeyValue] and must be closed.
//
//	it := store.Range(state.Bounds[string]{From: new("a")}, state.Forward)
//	defer it.Close()
//	for it.Next() {
//		use(it.Key(), it.Value())
//	}
//	return it.Err()
//
// The store may be changed meanwhile; whether the iterator sees that is open.
type KeyValueIterator[K, V any] struct {
	walk
	s     *KeyValue[K, V]
	key   K
	value V
}

// Next moves to the next entry. It is false at the end, or on an error.
func (it *KeyValueIterator[K, V]) Next() bool {
	return it.next(func(key, value []byte) (err error) {
		if it.key, err = it.s.codec.keys.Decode(key); err == nil {
			it.value, err = it.s.codec.values.Decode(value)
		}
		return err
	})
}

// Key is the current entry's key.
func (it *KeyValueIterator[K, V]) Key() K { return it.key }

// Value is the current entry's value.
func (it *KeyValueIterator[K, V]) Value() V { return it.value }
