package streams

import "github.com/odradek-go/odradek/serde"

// TimeWindowedCogroupedKStream is several grouped streams that are aggregated into
// one table for each window of time. Make one with [CogroupedKStream.WindowedBy].
// Results are sent on as they change.
type TimeWindowedCogroupedKStream[K, VOut any] struct{ windowedCogroup[K, VOut] }

// SessionWindowedCogroupedKStream is several grouped streams that are aggregated into
// one table for each session. Make one with [CogroupedKStream.SessionWindowedBy].
// Results are sent on as they change.
type SessionWindowedCogroupedKStream[K, VOut any] struct{ windowedCogroup[K, VOut] }

// windowedCogroup is what both have.
type windowedCogroup[K, VOut any] struct {
	of *CogroupedKStream[K, VOut]
	by windowing
}

// WindowedBy divides the groups into windows of time, [TimeWindows] or
// [SlidingWindows].
func (c *CogroupedKStream[K, VOut]) WindowedBy(w Windows) *TimeWindowedCogroupedKStream[K, VOut] {
	return &TimeWindowedCogroupedKStream[K, VOut]{windowedCogroup[K, VOut]{c, c.b.windowing("WindowedBy", w)}}
}

// SessionWindowedBy divides the groups into sessions.
func (c *CogroupedKStream[K, VOut]) SessionWindowedBy(w SessionWindows) *SessionWindowedCogroupedKStream[K, VOut] {
	return &SessionWindowedCogroupedKStream[K, VOut]{windowedCogroup[K, VOut]{c, c.b.windowing("SessionWindowedBy", w)}}
}

// Aggregate is the table of what the records of each key in each window come to, in
// all streams, beginning with what initializer returns. See [WindowedAggregate].
func (w *TimeWindowedCogroupedKStream[K, VOut]) Aggregate(initializer func() VOut, options ...Materialized[K, VOut]) *KTable[serde.Windowed[K], VOut] {
	return w.aggregate(initializer, nil, options)
}

// Aggregate is the table of what the records in each session of each key come to, in
// all streams, beginning with what initializer returns. See [SessionAggregate].
func (w *SessionWindowedCogroupedKStream[K, VOut]) Aggregate(initializer func() VOut, merge func(key K, a, b VOut) VOut, options ...Materialized[K, VOut]) *KTable[serde.Windowed[K], VOut] {
	w.of.b.needs("Aggregate", w.of.parts[0].behind, merge)
	return w.aggregate(initializer, merge, options)
}

func (w *windowedCogroup[K, VOut]) aggregate(initializer func() VOut, merge func(K, VOut, VOut) VOut, options []Materialized[K, VOut]) *KTable[serde.Windowed[K], VOut] {
	m := w.of.materialized("Aggregate", options)
	w.of.b.needs("Aggregate", w.of.parts[0].behind, initializer)
	kind := newWindowedTable(&w.of.b.plan, "Aggregate", m, w.by, OnWindowUpdate)
	return aggregateCogroup(w.of, m, cogroupTable[K, serde.Windowed[K], VOut]{
		kind: kind, keys: kind.keys(), store: kind.stateStore, grace: new(w.by.closing()),
		write: func(part *cogroupPart[K, VOut], t *Topology, name string, parents []string) {
			part.writeWindows(t, name, parents, kind, initializer, merge)
		},
	})
}
