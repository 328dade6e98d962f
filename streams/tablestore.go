package streams

import (
	"fmt"

	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/taskmgr"
)

// tableStore is the store of a table, with null as it is in records. It is one of two
// kinds.
type tableStore[K, V any] struct {
	kv        *state.TimestampedKeyValue[K, V]
	versioned *state.Versioned[K, V]
}

// openTable finds the store of that name.
func openTable[K, V any](ctx *taskContext, name string) (s tableStore[K, V], err error) {
	switch store := ctx.Store(name).(type) {
	case *state.TimestampedKeyValue[K, V]:
		s.kv = store
	case *state.Versioned[K, V]:
		s.versioned = store
	default:
		err = fmt.Errorf("state store %q is a %T", name, store)
	}
	return s, err
}

// get returns the latest value.
func (s tableStore[K, V]) get(k K) (v nullable[V], timestamp int64, err error) {
	v.v, timestamp, v.ok, err = s.lookUp(k)
	return v, timestamp, err
}

func (s tableStore[K, V]) lookUp(k K) (v V, timestamp int64, ok bool, err error) {
	if s.versioned == nil {
		return s.kv.Get(k)
	}
	found, ok, err := s.versioned.Get(k)
	return found.Value, found.Timestamp, ok, err
}

func (s tableStore[K, V]) lookUpAsOf(k K, asOf int64) (v V, timestamp int64, ok bool, err error) {
	found, ok, err := s.versioned.GetAsOf(k, asOf)
	return found.Value, found.Timestamp, ok, err
}

// put sets a value; tombstone are the headers of one. It returns until when that is valid: state.ValidToUndefined,
// unless the store is versioned and knows better.
func (s tableStore[K, V]) put(k K, v nullable[V], timestamp int64, tombstone []state.Header) (validTo int64, err error) {
	switch {
	case s.versioned != nil && v.ok:
		return s.versioned.Put(k, v.v, timestamp)
	case s.versioned != nil:
		return s.versioned.PutNull(k, timestamp)
	case v.ok:
		return state.ValidToUndefined, s.kv.Put(k, v.v, timestamp)
	}
	return state.ValidToUndefined, s.kv.DeleteHeaders(k, timestamp, tombstone)
}

// cached says whether changes are held back in a cache.
func (s tableStore[K, V]) cached() bool { return s.kv != nil && s.kv.Cached() }

// storeView looks values up in a store.
func storeView[K, V any](name string) view[K, V] {
	return view[K, V]{
		stores: []string{name},
		open: func(ctx *taskContext) (getter[K, V], error) {
			s, err := openTable[K, V](ctx, name)
			return s.lookUp, err
		},
		openAsOf: func(ctx *taskContext) (asOfGetter[K, V], error) {
			s, err := openTable[K, V](ctx, name)
			if err != nil || s.versioned == nil {
				return nil, err
			}
			return s.lookUpAsOf, nil
		},
	}
}

// tombstone are the headers of the tombstones in the changelogs of the DSL's stores
// that come of a record with headers.
func (c *taskContext) tombstone(headers []Header) []state.Header {
	if c.format != HeadersFormat {
		return nil
	}
	return StoreHeaders(headers)
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
	if !o.keeps || !o.store.cached() {
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
		validTo, err := o.store.put(r.Key, r.Value.new, r.Timestamp, o.ctx.tombstone(r.Headers))
		if err != nil || o.store.cached() || validTo == state.NotPut {
			return err
		}
		r.Value.outOfOrder = validTo != state.ValidToUndefined
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
