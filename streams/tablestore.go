package streams

import (
	"fmt"

	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/taskmgr"
)

// tableStore is the store of a table, with null as it is in records.
type tableStore[K, V any] struct {
	kv *state.TimestampedKeyValue[K, V]
}

// openTable finds the store of that name.
func openTable[K, V any](ctx *taskContext, name string) (tableStore[K, V], error) {
	kv, ok := ctx.Store(name).(*state.TimestampedKeyValue[K, V])
	if !ok {
		return tableStore[K, V]{}, fmt.Errorf("state store %q is a %T", name, ctx.Store(name))
	}
	return tableStore[K, V]{kv}, nil
}

func (s tableStore[K, V]) get(k K) (v nullable[V], timestamp int64, err error) {
	v.v, timestamp, v.ok, err = s.kv.Get(k)
	return v, timestamp, err
}

func (s tableStore[K, V]) put(k K, v nullable[V], timestamp int64) error {
	if !v.ok {
		return s.kv.Delete(k, timestamp)
	}
	return s.kv.Put(k, v.v, timestamp)
}

// storeView looks values up in a store.
func storeView[K, V any](name string) view[K, V] {
	return view[K, V]{stores: []string{name}, open: func(ctx *taskContext) (getter[K, V], error) {
		s, err := openTable[K, V](ctx, name)
		if err != nil {
			return nil, err
		}
		return s.kv.Get, nil
	}}
}

// storeHeaders are the headers of a record as a store's changelog takes them.
func storeHeaders(headers []Header) []state.Header {
	if len(headers) == 0 {
		return nil
	}
	out := make([]state.Header, len(headers))
	for i, h := range headers {
		out[i] = state.Header(h)
	}
	return out
}

// tableOut is the output side of a node that sends the changes of a table, which
// embeds it. The changes are stored first where the table has a store; where that
// has a cache, they are sent when they leave it (KIP-63).
type tableOut[K, V any] struct {
	emitter[K, change[V]]
	store tableStore[K, V]
	keeps bool // there is a store
	old   bool // changes carry old values
	ctx   *taskContext
}

// newTableOut returns the output side of a node; an empty store is none.
func newTableOut[K, V any](ctx *taskContext, store string, old bool) (tableOut[K, V], error) {
	o := tableOut[K, V]{keeps: store != "", old: old, ctx: ctx}
	var err error
	if o.keeps {
		o.store, err = openTable[K, V](ctx, store)
	}
	return o, err
}

// open has the changes that leave the store's cache sent.
func (o *tableOut[K, V]) open() error {
	if !o.keeps || !o.store.kv.Cached() {
		return nil
	}
	o.store.kv.OnFlush(o.old, func(c state.Change[K, V]) error {
		return flushed(o.ctx, c.Record, func(headers []Header) error {
			r := Record[K, change[V]]{Key: c.Key, Timestamp: c.Timestamp, Headers: headers}
			r.Value.new, r.Value.old = nullable[V]{c.New, c.HasNew}, nullable[V]{c.Old, c.HasOld}
			return o.forward(r)
		})
	})
	return nil
}

// send stores a change and sends it on.
func (o *tableOut[K, V]) send(r Record[K, change[V]]) error {
	if o.keeps {
		o.ctx.SetHeaders(r.Headers)
		if err := o.store.put(r.Key, r.Value.new, r.Timestamp); err != nil {
			return err
		}
		if o.store.kv.Cached() {
			return nil
		}
	}
	return o.forward(r)
}

// flushed calls send for a change that leaves a cache, as it would have been called
// when the change was made: of is what was then being processed.
func flushed(ctx *taskContext, of any, send func(headers []Header) error) error {
	made, ok := of.(*taskmgr.Moment)
	if !ok {
		return fmt.Errorf("a change in a cache was made during a %T", of)
	}
	defer ctx.Resume(made)()
	return send(made.Headers)
}
