package iq

import (
	"context"
	"io"
	"iter"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// Value is the answer to a query about one key.
type Value[V any] struct {
	Value V

	// OK is false where there is no value.
	OK bool

	// Timestamp is the value's, in milliseconds, −1 where the store has none.
	Timestamp int64

	// Meta says where the answer comes from. What is here is read without asking
	// for its Position.
	Meta Meta
}

// handle is what the handles to stores have in common. Handles are values: they can
// be copied, and used by any number of goroutines.
type handle[K, V any] struct {
	q      Querier
	store  string
	keys   serde.Serde[K]
	values serde.Serde[V]
	accept Accept
}

// value asks about one key.
func (h *handle[K, V]) value(ctx context.Context, k K, req Request) (v Value[V], err error) {
	v.Timestamp = -1
	if req.Key, err = h.key(&req, make([]byte, 0, 64), k); err != nil {
		return v, err
	}
	var e Entry
	if s, ok := h.q.(*Service); ok {
		o, e, found, err := s.here(ctx, &req)
		if o.View != nil {
			v.OK, v.Timestamp, v.Meta = found, e.Timestamp, o.meta
			if found {
				v.Value, err = h.decode(&req, e.Value)
			}
			o.Close()
			return v, err
		}
		if err != nil {
			return v, err
		}
	}
	rows, err := h.q.Query(ctx, &req)
	if err != nil {
		return v, err
	}
	defer rows.Close()
	v.Meta = rows.Meta
	switch e, err = rows.Next(); {
	case err == io.EOF:
		return v, nil
	case err != nil:
		return v, err
	}
	v.OK, v.Timestamp = true, e.Timestamp
	v.Value, err = h.decode(&req, e.Value)
	return v, err
}

func (h *handle[K, V]) request(kind Kind) Request {
	return Request{Store: h.store, Kind: kind, Partition: AllPartitions, Accept: h.accept}
}

func (h *handle[K, V]) key(req *Request, dst []byte, k K) ([]byte, error) {
	key, err := h.keys.Append(dst, k)
	if err == nil && key == nil {
		err = state.ErrNullKey
	}
	if err != nil {
		return nil, fail(ErrInvalidQuery, req, err)
	}
	return key, nil
}

func (h *handle[K, V]) decode(req *Request, value []byte) (V, error) {
	v, err := h.values.Decode(value)
	if err != nil {
		err = fail(nil, req, err)
	}
	return v, err
}

// bounds encodes the ends of a range.
func (h *handle[K, V]) bounds(req *Request, b state.Bounds[K]) (err error) {
	if b.From != nil {
		if req.From, err = h.key(req, []byte{}, *b.From); err != nil {
			return err
		}
	}
	if b.To != nil {
		req.To, err = h.key(req, []byte{}, *b.To)
	}
	return err
}

// Item is an entry of a store as a handle yields it. Start and End are those of a
// window or session, in milliseconds.
type Item[K, V any] struct {
	Key        K
	Start, End int64
	Value      V
	Timestamp  int64 // in milliseconds, −1 where the store has none
}

// many yields the answer to a query about many keys; an error is the last.
func (h *handle[K, V]) many(ctx context.Context, req Request, err error) iter.Seq2[Item[K, V], error] {
	return func(yield func(Item[K, V], error) bool) {
		var rows *Rows
		if err == nil {
			rows, err = h.q.Query(ctx, &req)
		}
		if err != nil {
			yield(Item[K, V]{}, err)
			return
		}
		for e, err := range rows.All() {
			item := Item[K, V]{Start: e.Start, End: e.End, Timestamp: e.Timestamp}
			if err == nil {
				if item.Key, err = h.keys.Decode(e.Key); err == nil {
					item.Value, err = h.values.Decode(e.Value)
				}
				if err != nil {
					err = fail(nil, &req, err)
				}
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// here reads a value that is on this instance, and is the truth. The view, which must
// be closed, is nil where it isn't.
func (s *Service) here(ctx context.Context, req *Request) (o opened, e Entry, ok bool, err error) {
	if err := s.check(req); err != nil {
		return o, e, false, err
	}
	route, err := s.find(req)
	if err != nil || s.cfg.Running() != nil {
		return o, e, false, nil
	}
	of := s.cfg.Registry.Get(req.Store, route.Partition)
	if of == nil || len(req.Accept.Position) > 0 {
		return o, e, false, nil
	}
	v, err := of.Views.Begin(ctx)
	if err != nil {
		return o, e, false, nil
	}
	if !of.Owner.Active() {
		v.Close()
		return o, e, false, nil
	}
	o = opened{v, of, Meta{Host: s.local.host, Partition: route.Partition, Active: true}}
	if e, ok, err = getPoint(v.Store, req); err != nil {
		v.Close()
		o.View = nil
		err = s.local.storeError(req, route.Partition, err)
	}
	return o, e, ok, err
}
