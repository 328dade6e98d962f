package state

import "github.com/odradek-go/odradek/serde"

// Fetch walks over the windows of k that start from from to to, both included, in
// milliseconds, in the order of their times.
func (s *Window[K, V]) Fetch(k K, from, to int64, order Order) *WindowIterator[K, V] {
	it, err := scanKey(&s.backing, &s.codec, k, span{earliest: from, latest: to, order: order}, nil)
	return s.iterate("fetch", it, err)
}

// FetchRange walks over the windows of the keys within bounds that start from
// from to to, both included, in milliseconds. The windows of one key come in the
// order of their times; whole segments of time come one after the other.
func (s *Window[K, V]) FetchRange(bounds Bounds[K], from, to int64, order Order) *WindowIterator[K, V] {
	it, err := scanKeys(&s.backing, &s.codec, bounds, span{earliest: from, latest: to, order: order}, nil)
	return s.iterate("fetch", it, err)
}

// All walks over all windows, in the order of [Window.FetchRange].
func (s *Window[K, V]) All(order Order) *WindowIterator[K, V] {
	return s.FetchRange(Bounds[K]{}, 0, forever, order)
}

func (s *Window[K, V]) iterate(op string, it Iterator, err error) *WindowIterator[K, V] {
	return &WindowIterator[K, V]{
		walk: s.walk(op, it, err), decodeKey: s.decodeKey,
		decodeValue: s.codec.decodeTimestamped, decodeHeaders: s.codec.decodeHeaders,
	}
}

// scanKey walks over the windows of one key.
func scanKey[K, V any](b *backing, c *codec[K, V], k K, sp span, keep func([]byte) bool) (Iterator, error) {
	if b.engine == nil {
		return nil, ErrClosed
	}
	key, err := c.appendKey(make([]byte, 0, 32), k)
	if err != nil {
		return nil, err
	}
	sp.key = key
	return b.scanWindows(sp, keep), nil
}

// scanKeys walks over the windows of a range of keys.
func scanKeys[K, V any](b *backing, c *codec[K, V], bounds Bounds[K], sp span, keep func([]byte) bool) (_ Iterator, err error) {
	if b.engine == nil {
		return nil, ErrClosed
	}
	if sp.from, sp.to, err = c.encodeBounds(bounds); err != nil {
		return nil, err
	}
	return b.scanWindows(sp, keep), nil
}

// WindowIterator walks over entries of a [Window] or a [Session], in the way of a
// [KeyValueIterator], and must be closed.
type WindowIterator[K, V any] struct {
	walk
	decodeKey     func([]byte) (serde.Windowed[K], error)
	decodeValue   func([]byte) (int64, V, error)
	decodeHeaders func([]byte) ([]Header, error)
	key           serde.Windowed[K]
	value         V
	timestamp     int64
	headers       []Header
}

// Next moves to the next entry. It is false at the end, or on an error.
func (it *WindowIterator[K, V]) Next() bool {
	return it.next(func(key, value []byte) (err error) {
		if it.key, err = it.decodeKey(key); err == nil {
			it.timestamp, it.value, err = it.decodeValue(value)
		}
		if err == nil {
			it.headers, err = it.decodeHeaders(value)
		}
		return err
	})
}

// Key is the current entry's key and window.
func (it *WindowIterator[K, V]) Key() serde.Windowed[K] { return it.key }

// Value is the current entry's value.
func (it *WindowIterator[K, V]) Value() V { return it.value }

// Timestamp is the current value's timestamp in milliseconds, −1 in a session
// store, which has none.
func (it *WindowIterator[K, V]) Timestamp() int64 { return it.timestamp }

// Headers are those that the current value was put with, nil where there are none or
// where the store doesn't keep them.
func (it *WindowIterator[K, V]) Headers() []Header { return it.headers }
