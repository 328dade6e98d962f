package iq

import (
	"context"
	"iter"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// KeyValue is a handle to a key-value or timestamped store, such as a table's.
type KeyValue[K, V any] struct{ h handle[K, V] }

// NewKeyValue returns a handle with the store's serdes.
func NewKeyValue[K, V any](q Querier, store string, keys serde.Serde[K], values serde.Serde[V]) KeyValue[K, V] {
	return KeyValue[K, V]{newHandle(q, store, keys, values, Get)}
}

// Accepting returns a handle whose answers may be that stale.
func (s KeyValue[K, V]) Accepting(a Accept) KeyValue[K, V] { s.h.accept = a; return s }

// Get asks for the value of k.
func (s KeyValue[K, V]) Get(ctx context.Context, k K) (Value[V], error) {
	return s.h.value(ctx, k, Get, 0, 0)
}

// Range yields the entries within bounds, of all partitions, in the order of the
// encoded keys. An error is the last that is yielded.
func (s KeyValue[K, V]) Range(ctx context.Context, bounds state.Bounds[K], order state.Order) iter.Seq2[Item[K, V], error] {
	req := s.h.request(Range)
	req.Backward = bool(order)
	err := s.h.bounds(&req, bounds)
	return s.h.many(ctx, req, err)
}

// All yields all entries, like Range.
func (s KeyValue[K, V]) All(ctx context.Context) iter.Seq2[Item[K, V], error] {
	return s.Range(ctx, state.Bounds[K]{}, state.Forward)
}

// Prefix yields the entries whose encoded keys begin with prefix, like Range.
func (s KeyValue[K, V]) Prefix(ctx context.Context, prefix []byte, order state.Order) iter.Seq2[Item[K, V], error] {
	req := s.h.request(Prefix)
	req.Key, req.Backward = append([]byte{}, prefix...), bool(order)
	return s.h.many(ctx, req, nil)
}

// Versioned is a handle to a versioned store.
type Versioned[K, V any] struct{ h handle[K, V] }

// NewVersioned returns a handle with the store's serdes.
func NewVersioned[K, V any](q Querier, store string, keys serde.Serde[K], values serde.Serde[V]) Versioned[K, V] {
	return Versioned[K, V]{newHandle(q, store, keys, values, GetAsOf)}
}

// Accepting returns a handle whose answers may be that stale.
func (s Versioned[K, V]) Accepting(a Accept) Versioned[K, V] { s.h.accept = a; return s }

// Get asks for the latest value of k.
func (s Versioned[K, V]) Get(ctx context.Context, k K) (Value[V], error) {
	return s.h.value(ctx, k, Get, 0, 0)
}

// GetAsOf asks for the value of k that was valid at a time, in milliseconds.
func (s Versioned[K, V]) GetAsOf(ctx context.Context, k K, asOf int64) (Value[V], error) {
	return s.h.value(ctx, k, GetAsOf, 0, asOf)
}

// Window is a handle to a window store.
type Window[K, V any] struct{ h handle[K, V] }

// NewWindow returns a handle with the store's serdes, that of the key within.
func NewWindow[K, V any](q Querier, store string, keys serde.Serde[K], values serde.Serde[V]) Window[K, V] {
	return Window[K, V]{newHandle(q, store, keys, values, GetWindow)}
}

// Accepting returns a handle whose answers may be that stale.
func (s Window[K, V]) Accepting(a Accept) Window[K, V] { s.h.accept = a; return s }

// Get asks for the value of k in the window that starts at start, in milliseconds.
func (s Window[K, V]) Get(ctx context.Context, k K, start int64) (Value[V], error) {
	return s.h.value(ctx, k, GetWindow, start, 0)
}

// Fetch yields the windows of k that start from from to to, both included, in
// milliseconds, in the order of their times. An error is the last that is yielded.
func (s Window[K, V]) Fetch(ctx context.Context, k K, from, to int64, order state.Order) iter.Seq2[Item[K, V], error] {
	return s.h.fetch(ctx, k, from, to, order)
}

// FetchRange is Fetch for the keys within bounds, of one partition after the other,
// each in the store's own order.
func (s Window[K, V]) FetchRange(ctx context.Context, bounds state.Bounds[K], from, to int64, order state.Order) iter.Seq2[Item[K, V], error] {
	return s.h.fetchRange(ctx, bounds, from, to, order)
}

// Session is a handle to a session store.
type Session[K, V any] struct{ h handle[K, V] }

// NewSession returns a handle with the store's serdes, that of the key within.
func NewSession[K, V any](q Querier, store string, keys serde.Serde[K], values serde.Serde[V]) Session[K, V] {
	return Session[K, V]{newHandle(q, store, keys, values, GetWindow)}
}

// Accepting returns a handle whose answers may be that stale.
func (s Session[K, V]) Accepting(a Accept) Session[K, V] { s.h.accept = a; return s }

// Get asks for the value of a session.
func (s Session[K, V]) Get(ctx context.Context, w serde.Windowed[K]) (Value[V], error) {
	return s.h.value(ctx, w.Key, GetWindow, w.Start, w.End)
}

// Fetch yields all sessions of k, in the order of their ends. An error is the last
// that is yielded.
func (s Session[K, V]) Fetch(ctx context.Context, k K, order state.Order) iter.Seq2[Item[K, V], error] {
	return s.h.fetch(ctx, k, 0, Forever, order)
}

// Find is Fetch for the sessions that end at earliestEnd or later and start at
// latestStart or earlier, in milliseconds.
func (s Session[K, V]) Find(ctx context.Context, k K, earliestEnd, latestStart int64, order state.Order) iter.Seq2[Item[K, V], error] {
	return s.h.fetch(ctx, k, earliestEnd, latestStart, order)
}

// FindRange is Find for the keys within bounds, of one partition after the other, each
// in the store's own order.
func (s Session[K, V]) FindRange(ctx context.Context, bounds state.Bounds[K], earliestEnd, latestStart int64, order state.Order) iter.Seq2[Item[K, V], error] {
	return s.h.fetchRange(ctx, bounds, earliestEnd, latestStart, order)
}

func (h *handle[K, V]) fetch(ctx context.Context, k K, earliest, latest int64, order state.Order) iter.Seq2[Item[K, V], error] {
	req := h.request(Fetch)
	req.Earliest, req.Latest, req.Backward = earliest, latest, bool(order)
	var err error
	req.Key, err = h.key(&req, []byte{}, k)
	return h.many(ctx, req, err)
}

func (h *handle[K, V]) fetchRange(ctx context.Context, bounds state.Bounds[K], earliest, latest int64, order state.Order) iter.Seq2[Item[K, V], error] {
	req := h.request(FetchRange)
	req.Earliest, req.Latest, req.Backward = earliest, latest, bool(order)
	err := h.bounds(&req, bounds)
	return h.many(ctx, req, err)
}
