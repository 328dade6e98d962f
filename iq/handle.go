package iq

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"
	"sync"

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
	at     place
	store  string
	keys   serde.Serde[K]
	values serde.Serde[V]
	accept Accept
}

func newHandle[K, V any](q Querier, store string, keys serde.Serde[K], values serde.Serde[V], kind Kind) handle[K, V] {
	h := handle[K, V]{q: q, store: store, keys: keys, values: values}
	if service, ok := q.(*Service); ok {
		h.at = service.place(&Request{Store: store, Kind: kind})
	}
	return h
}

// place is where a service has a store that can answer queries of a kind, so that its
// name needn't be looked up each time. The service is nil where there is none.
type place struct {
	service *Service
	index   int // in the router's list
	stores  *state.Named
}

func (s *Service) place(req *Request) place {
	index := slices.IndexFunc(s.router.stores, func(info StoreInfo) bool { return info.Name == req.Store })
	if index < 0 || kindOf(s.router.stores[index].Kind, req) != nil {
		return place{}
	}
	return place{s, index, s.cfg.Registry.Of(req.Store)}
}

// scratch is what a query about one key needs for a moment. It is kept, because what is
// here is read without allocating.
type scratch struct {
	req Request
	key []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// value asks about one key.
func (h *handle[K, V]) value(ctx context.Context, k K, kind Kind, earliest, latest int64) (v Value[V], err error) {
	v.Timestamp = -1
	s := scratches.Get().(*scratch)
	req := &s.req
	req.Store, req.Kind, req.Earliest, req.Latest = h.store, kind, earliest, latest
	req.Partition, req.Accept = AllPartitions, h.accept
	known := false
	if req.Key, err = h.key(req, s.key[:0], k); err == nil {
		s.key = req.Key
		known, err = h.here(ctx, req, &v)
		if !known && err == nil {
			asked := *req // for good: whoever is asked may still be at it when there is an answer
			asked.Key = bytes.Clone(req.Key)
			err = h.elsewhere(ctx, &asked, &v)
		}
	}
	scratches.Put(s)
	return v, err
}

// here takes a value from this instance, if that has the truth.
func (h *handle[K, V]) here(ctx context.Context, req *Request, v *Value[V]) (known bool, err error) {
	view := h.at.here(req, &v.Meta)
	if view == nil {
		return false, nil
	}
	defer view.Close() // whatever a serde does
	e, ok, err := getPoint(view.Store, req)
	if err != nil {
		return false, h.at.service.local.storeError(ctx, req, v.Meta.Partition, err)
	}
	if v.OK, v.Timestamp = ok, e.Timestamp; ok {
		v.Value, err = h.decode(req, e.Value)
	}
	return true, err
}

// elsewhere asks for a value wherever it is.
func (h *handle[K, V]) elsewhere(ctx context.Context, req *Request, v *Value[V]) error {
	rows, err := h.q.Query(ctx, req)
	if err != nil {
		return err
	}
	defer rows.Close()
	v.Meta = rows.Meta
	e, err := rows.Next()
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	}
	v.OK, v.Timestamp = true, e.Timestamp
	v.Value, err = h.decode(req, e.Value)
	return err
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

// here begins a view of the store that has the truth about a key, if it is on this
// instance. It is nil where a query has to find out more, or has more to say, and must be
// closed otherwise.
func (p *place) here(req *Request, meta *Meta) (v *state.View) {
	s := p.service
	if s == nil || req.Accept.check() != nil || len(req.Accept.Position) > 0 || s.cfg.Running() != nil {
		return nil
	}
	of := s.router.Snapshot().list[p.index]
	if len(of.byPartition) == 0 {
		return nil
	}
	partition, err := of.partition(req.Key)
	if err != nil {
		return nil
	}
	readable := p.stores.Get(partition)
	if readable == nil {
		return nil
	}
	v, err = readable.Views.TryLook() // a query knows how long to wait
	if v == nil || err != nil {
		return nil
	}
	if !readable.Owner.Active() {
		v.Close()
		return nil
	}
	meta.Host, meta.Partition, meta.Active = s.local.host, partition, true
	return v
}
