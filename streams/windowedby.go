package streams

import (
	"github.com/odradek-go/odradek/serde"
)

// EmitStrategy says when the results of windows are sent on (KIP-825).
type EmitStrategy int8

const (
	// OnWindowUpdate sends a window's result on whenever it changes.
	OnWindowUpdate EmitStrategy = iota

	// OnWindowClose sends a window's result on once, when no record can change
	// it any more. It looks for windows that have closed when a record comes, and
	// no more than once a second.
	//
	// A window whose retention has passed at the next look is lost, as in Java:
	// where stream time makes leaps, such as after a pause of the input, a longer
	// retention ([Materialized]) keeps results from being lost.
	OnWindowClose
)

// TimeWindowedKStream is a grouped stream whose records are aggregated for each
// window of time that they are in, as well as for each key. Make one with
// [WindowedBy].
//
// Records that come after the end of their window and its grace period are dropped.
// Time is that of the records of the task.
type TimeWindowedKStream[K, V any] struct{ windowed[K, V] }

// SessionWindowedKStream is a grouped stream whose records are aggregated for each
// session that they belong to. Make one with [SessionWindowedBy].
//
// Records that come after the end of their session and its grace period are dropped.
// Time is that of the records of the task.
type SessionWindowedKStream[K, V any] struct{ windowed[K, V] }

// windowed is what both have.
type windowed[K, V any] struct {
	of   *KGroupedStream[K, V]
	by   windowing
	emit EmitStrategy
}

// WindowedBy divides the groups into windows of time, [TimeWindows] or
// [SlidingWindows].
func WindowedBy[K, V any](g *KGroupedStream[K, V], w Windows) *TimeWindowedKStream[K, V] {
	return &TimeWindowedKStream[K, V]{windowed[K, V]{of: g, by: g.from.b.windowing("WindowedBy", w)}}
}

// SessionWindowedBy divides the groups into sessions.
func SessionWindowedBy[K, V any](g *KGroupedStream[K, V], w SessionWindows) *SessionWindowedKStream[K, V] {
	return &SessionWindowedKStream[K, V]{windowed[K, V]{of: g, by: g.from.b.windowing("SessionWindowedBy", w)}}
}

func (p *plan) windowing(operator string, w Windows) windowing {
	of, err := w.windowing()
	if err != nil {
		p.errorf("%s: %w", operator, err)
	}
	return of
}

// EmitStrategy returns the stream with that way of sending on results.
func (w *TimeWindowedKStream[K, V]) EmitStrategy(s EmitStrategy) *TimeWindowedKStream[K, V] {
	of := *w
	of.emit = s
	return &of
}

// EmitStrategy returns the stream with that way of sending on results.
func (w *SessionWindowedKStream[K, V]) EmitStrategy(s EmitStrategy) *SessionWindowedKStream[K, V] {
	of := *w
	of.emit = s
	return &of
}

// Count is the table of how many records there are of each key in each window.
// Records with a null key are not counted, and in sliding windows those with a null
// value aren't. A count's time is that of its latest record.
func (w *TimeWindowedKStream[K, V]) Count(options ...Materialized[K, int64]) *KTable[serde.Windowed[K], int64] {
	return countWindows(&w.windowed, options)
}

// Count is the table of how many records there are in each session of each key.
// Records with a null key are not counted. A count's time is the session's end.
func (w *SessionWindowedKStream[K, V]) Count(options ...Materialized[K, int64]) *KTable[serde.Windowed[K], int64] {
	return countWindows(&w.windowed, options)
}

// Reduce is the table of what the values of each key in each window come to: the
// first one, and then what f returns for the value so far and the next one. Nil
// deletes the window. Records with a null key are skipped, and in sliding windows
// those with a null value are. A value's time is that of its latest record.
func (w *TimeWindowedKStream[K, V]) Reduce(f func(aggregate, value V) V, options ...Materialized[K, V]) *KTable[serde.Windowed[K], V] {
	return reduceWindows(&w.windowed, f, options)
}

// Reduce is the table of what the values in each session of each key come to: the
// first one, and then what f returns for the value so far and the next one, or that
// of a session that is merged. Nil deletes the session. Records with a null key are
// skipped. A value's time is the session's end.
func (w *SessionWindowedKStream[K, V]) Reduce(f func(aggregate, value V) V, options ...Materialized[K, V]) *KTable[serde.Windowed[K], V] {
	return reduceWindows(&w.windowed, f, options)
}

// WindowedAggregate is the table of what the records of each key in each window come
// to: what add returns for the key, the value and the aggregate so far, which is
// initializer's at first. Nil deletes the window. Records with a null key are
// skipped, and in sliding windows those with a null value are. An aggregate's time is
// that of its latest record.
func WindowedAggregate[K, V, VOut any](w *TimeWindowedKStream[K, V], initializer func() VOut, add func(key K, value V, aggregate VOut) VOut, options ...Materialized[K, VOut]) *KTable[serde.Windowed[K], VOut] {
	m := only(w.of.from.b, "WindowedAggregate", options)
	w.of.from.b.needs("WindowedAggregate", w.of.from.node, initializer, add)
	return aggregateWindows(&w.windowed, aggregatePrefix, m, initializedWindows(initializer, add, nil))
}

// SessionAggregate is the table of what the records in each session of each key come
// to: what add returns for the key, the value and the aggregate so far, which is
// initializer's at first, and what merge returns for the aggregates of two sessions
// that become one. Nil deletes the session. Records with a null key are skipped. An
// aggregate's time is the session's end.
func SessionAggregate[K, V, VOut any](w *SessionWindowedKStream[K, V], initializer func() VOut, add func(key K, value V, aggregate VOut) VOut, merge func(key K, a, b VOut) VOut, options ...Materialized[K, VOut]) *KTable[serde.Windowed[K], VOut] {
	m := only(w.of.from.b, "SessionAggregate", options)
	w.of.from.b.needs("SessionAggregate", w.of.from.node, initializer, add, merge)
	return aggregateWindows(&w.windowed, aggregatePrefix, m, initializedWindows(initializer, add, merge))
}

func countWindows[K, V any](w *windowed[K, V], options []Materialized[K, int64]) *KTable[serde.Windowed[K], int64] {
	m := only(w.of.from.b, "Count", options)
	if m.given() && m.Name == "" && w.by.kind != slidingWindows {
		w.of.from.b.generateStore(aggregatePrefix) // as in Java, which names the store twice
	}
	return aggregateWindows(w, aggregatePrefix, m, initializedWindows(
		func() int64 { return 0 },
		func(_ K, _ V, count int64) int64 { return count + 1 },
		func(_ K, a, b int64) int64 { return a + b },
	))
}

func reduceWindows[K, V any](w *windowed[K, V], f func(aggregate, value V) V, options []Materialized[K, V]) *KTable[serde.Windowed[K], V] {
	m := only(w.of.from.b, "Reduce", options)
	w.of.from.b.needs("Reduce", w.of.from.node, f)
	m.Value = firstOf(m.Value, w.of.from.values)
	known := nullableOf[V]()
	reduce := func(aggregate, value nullable[V]) nullable[V] {
		if !aggregate.ok {
			return value
		}
		return known(f(aggregate.v, value.v))
	}
	return aggregateWindows(w, reducePrefix, m, windowAggregation[K, V, V]{
		initial: func() nullable[V] { return nullable[V]{} },
		add:     func(_ K, v, aggregate nullable[V]) nullable[V] { return reduce(aggregate, v) },
		merge:   func(_ K, a, b nullable[V]) nullable[V] { return reduce(a, b) },
	})
}

// windowAggregation is what an aggregation of windows computes.
type windowAggregation[K, V, VOut any] struct {
	initial func() nullable[VOut]
	add     func(k K, v nullable[V], aggregate nullable[VOut]) nullable[VOut]
	merge   func(k K, a, b nullable[VOut]) nullable[VOut] // of sessions
}

func initializedWindows[K, V, VOut any](initializer func() VOut, add func(K, V, VOut) VOut, merge func(K, VOut, VOut) VOut) windowAggregation[K, V, VOut] {
	known := nullableOf[VOut]()
	return windowAggregation[K, V, VOut]{
		initial: func() nullable[VOut] { return known(initializer()) },
		add: func(k K, v nullable[V], aggregate nullable[VOut]) nullable[VOut] {
			return known(add(k, v.v, aggregate.v))
		},
		merge: func(k K, a, b nullable[VOut]) nullable[VOut] { return known(merge(k, a.v, b.v)) },
	}
}

func aggregateWindows[K, V, VOut any](w *windowed[K, V], prefix string, m Materialized[K, VOut], a windowAggregation[K, V, VOut]) *KTable[serde.Windowed[K], VOut] {
	b := w.of.from.b
	m.storeName(&b.plan, prefix)
	m.Key, m.Value = firstOf(m.Key, w.of.from.keys), serdeOr(m.Value)
	name := b.name(m.Processor, prefix)
	kind := newWindowedTable(&b.plan, name, m, w.by, w.emit)
	s := w.of.stream(m.Name)
	n := b.add(name, func(n *planNode, t *Topology) {
		addWindowAggregate(t, name, n.parentNames(), kind, a)
		t.AddStateStore(kind.stateStore(), name)
	}, s.node)
	n.grace, n.versioning = new(w.by.closing()), unversioned
	return &KTable[serde.Windowed[K], VOut]{b: b, node: n, sources: s.sources, keys: kind.keys(), values: m.Value, kind: kind}
}
