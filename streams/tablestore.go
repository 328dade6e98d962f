package streams

import (
	"fmt"

	"github.com/odradek-go/odradek/state"
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
