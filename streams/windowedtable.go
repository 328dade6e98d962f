package streams

import (
	"fmt"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// windowedTable is the tableKind of an aggregation of windows, which always has a
// store.
type windowedTable[K, V any] struct {
	Materialized[K, V]
	by        windowing
	emit      EmitStrategy
	retention time.Duration
	old       bool // changes carry old values
}

func newWindowedTable[K, V any](p *plan, name string, m Materialized[K, V], by windowing, emit EmitStrategy) *windowedTable[K, V] {
	k := &windowedTable[K, V]{Materialized: m, by: by, emit: emit, retention: m.Retention}
	least := time.Duration(by.retention()) * time.Millisecond
	switch {
	case k.retention == 0:
		k.retention = least
	case k.retention < least:
		p.errorf("%q: the Retention of its store %q is %v: its windows with their grace period need %v", name, m.Name, m.Retention, least)
	}
	if m.HistoryRetention != 0 {
		p.errorf("%q: its store %q has a HistoryRetention: a table with windows can't be versioned", name, m.Name)
	}
	return k
}

func (k *windowedTable[K, V]) sendOld(bool) bool { k.old = true; return true }

// keys is the serde of the table's keys, as it is in topics.
func (k *windowedTable[K, V]) keys() serde.Serde[serde.Windowed[K]] {
	switch {
	case k.Key == nil:
		return nil
	case k.by.kind == sessionWindows:
		return serde.SessionWindowed(k.Key)
	}
	return serde.TimeWindowed(k.Key, time.Duration(k.by.size)*time.Millisecond)
}

// stateStore describes the store.
func (k *windowedTable[K, V]) stateStore() StateStore {
	if k.by.kind == sessionWindows {
		return k.settle(k.laidOut(NewSessionStore(k.Name, k.Key, k.Value, k.retention)))
	}
	return k.settle(k.laidOut(NewWindowStore(k.Name, k.Key, k.Value, state.WindowOptions{
		Size: time.Duration(k.by.size) * time.Millisecond, Retention: k.retention,
	})))
}

// laidOut is a store in whose order windows that close can be found. Tumbling and
// hopping windows are looked up one by one otherwise, others by key.
func (k *windowedTable[K, V]) laidOut(s StateStore) StateStore {
	if k.emit != OnWindowClose {
		return s
	}
	plain := s.make
	s.make = func(engine state.OpenEngine) state.Store {
		made := plain(engine)
		if k.by.kind == timeWindows {
			made.(interface{ OrderByTime() }).OrderByTime()
		} else {
			made.(interface{ IndexByTime() }).IndexByTime()
		}
		return made
	}
	return s
}

func (k *windowedTable[K, V]) view() view[serde.Windowed[K], V] {
	return view[serde.Windowed[K], V]{stores: []string{k.Name}, open: func(ctx *taskContext) (getter[serde.Windowed[K], V], error) {
		if k.by.kind == sessionWindows {
			s, err := openStore[*state.Session[K, V]](ctx, k.Name)
			return func(w serde.Windowed[K]) (V, int64, bool, error) {
				v, ok, err := s.Get(w)
				return v, w.End, ok, err
			}, err
		}
		s, err := openStore[*state.Window[K, V]](ctx, k.Name)
		return func(w serde.Windowed[K]) (V, int64, bool, error) { return s.Get(w.Key, w.Start) }, err
	}}
}

// openStore finds the store of that name.
func openStore[S state.Store](ctx *taskContext, name string) (S, error) {
	s, ok := ctx.Store(name).(S)
	if !ok {
		return s, fmt.Errorf("state store %q is a %T", name, ctx.Store(name))
	}
	return s, nil
}
