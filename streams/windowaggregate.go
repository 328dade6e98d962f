package streams

import (
	"cmp"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

func addWindowAggregate[K, V, VOut any](t *Topology, name string, parents []string, kind *windowedTable[K, VOut], a windowAggregation[K, V, VOut]) {
	old := kind.old
	addNode[K, V, serde.Windowed[K], change[VOut]](t, name, parents, func(ctx *taskContext) (running, error) {
		out := windowOut[K, VOut]{ctx: ctx, node: name, windowing: kind.by, old: old, streamTime: -1}
		if kind.emit == OnWindowClose {
			out.final = newFinalEmission(ctx, kind.Name)
		}
		if kind.by.kind == sessionWindows {
			s, err := openStore[*state.Session[K, VOut]](ctx, kind.Name)
			return &sessionAggregateNode[K, V, VOut]{sessionOut: sessionOut[K, VOut]{out, s}, windowAggregation: a}, err
		}
		s, err := openStore[*state.Window[K, VOut]](ctx, kind.Name)
		times := timeOut[K, VOut]{out, s}
		if kind.by.kind == slidingWindows {
			return &slidingAggregateNode[K, V, VOut]{timeOut: times, windowAggregation: a}, err
		}
		return &timeAggregateNode[K, V, VOut]{times, a}, err
	})
}

// windowOut is what every node has that aggregates windows.
type windowOut[K, V any] struct {
	emitter[serde.Windowed[K], change[V]]
	windowing
	ctx        *taskContext
	node       string
	old        bool           // changes carry old values
	final      *finalEmission // nil: results are sent on as they change
	streamTime int64          // that the node has seen
}

// closeTime is the time up to which windows have closed, as of a record.
func (o *windowOut[K, V]) closeTime(record int64) int64 {
	o.streamTime = max(o.streamTime, record)
	return o.streamTime - o.closing()
}

// late drops a record for a window that has closed.
func (o *windowOut[K, V]) late(timestamp, start, end, closeTime int64) {
	o.ctx.DropRecord(o.node, "its window has closed", "timestamp", timestamp, "start", start, "end", end,
		"closed", closeTime, "streamTime", o.streamTime)
}

// timeOut is the output side of a node that keeps an aggregate for each key and
// window of time.
type timeOut[K, V any] struct {
	windowOut[K, V]
	store *state.Window[K, V]
}

// open has the changes that leave the store's cache sent.
func (o *timeOut[K, V]) open() error {
	if o.final == nil && o.store.Cached() {
		o.store.OnFlush(o.old, func(c state.Change[serde.Windowed[K], V]) error { return sendFlushed(&o.windowOut, c, c.Timestamp) })
	}
	return nil
}

func sendFlushed[K, V any](o *windowOut[K, V], c state.Change[serde.Windowed[K], V], timestamp int64) error {
	return flushed(o.ctx, c.Record, func(headers []Header) error {
		r := Record[serde.Windowed[K], change[V]]{Key: c.Key, Timestamp: timestamp, Headers: headers}
		r.Value.new, r.Value.old = nullable[V]{c.New, c.HasNew}, nullable[V]{c.Old, c.HasOld}
		return o.forward(r)
	})
}

// set stores what the aggregate of a key is in the window that starts at start, and
// sends the change on. record is the timestamp of the record that makes it.
func (o *timeOut[K, V]) set(k K, start int64, c change[V], timestamp, record int64, headers []Header) error {
	o.ctx.SetHeaders(headers)
	var err error
	if c.new.ok {
		err = o.store.Put(k, start, c.new.v, timestamp)
	} else {
		err = o.store.DeleteHeaders(k, start, record, o.ctx.tombstone(headers))
	}
	if err != nil || o.final != nil || o.store.Cached() {
		return err
	}
	if !o.old {
		c.old = nullable[V]{}
	}
	w := serde.Windowed[K]{Key: k, Start: start, End: start + o.size}
	return o.forward(Record[serde.Windowed[K], change[V]]{Key: w, Value: c, Timestamp: timestamp, Headers: headers})
}

// emit sends on what there is of the windows that start from from to to.
func (o *timeOut[K, V]) emit(from, to, closeTime int64, headers []Header) error {
	it := o.store.FetchRange(state.Bounds[K]{}, from, to, state.Forward)
	return emitFinal(&o.windowOut, it, (*state.WindowIterator[K, V]).Timestamp, closeTime, headers)
}

// emitFinal sends on what an iterator has, as the results of windows that have closed
// up to a time, and closes it.
func emitFinal[K, V any](o *windowOut[K, V], it *state.WindowIterator[K, V], timestamp func(*state.WindowIterator[K, V]) int64, closeTime int64, headers []Header) error {
	err := walk(it, func() (more bool, err error) {
		r := Record[serde.Windowed[K], change[V]]{Key: it.Key(), Timestamp: timestamp(it), Headers: headers}
		r.Value.new = nullable[V]{it.Value(), true}
		return true, o.forward(r)
	})
	if err == nil {
		o.final.emitted(closeTime)
	}
	return err
}

// walk calls each for the entries of an iterator, until it says that no more are
// needed or returns an error, and closes the iterator.
func walk[K, V any](it *state.WindowIterator[K, V], each func() (more bool, err error)) (err error) {
	for more := true; more && err == nil && it.Next(); {
		more, err = each()
	}
	err = cmp.Or(err, it.Err())
	return cmp.Or(err, it.Close())
}

// timeAggregateNode aggregates tumbling and hopping windows.
type timeAggregateNode[K, V, VOut any] struct {
	timeOut[K, VOut]
	windowAggregation[K, V, VOut]
}

func (n *timeAggregateNode[K, V, VOut]) receive(r Record[K, V]) error {
	if r.KeyNull {
		n.ctx.DropRecord(n.node, "its key is null")
		return nil
	}
	closeTime := n.closeTime(r.Timestamp)
	value := valueIf(r.Value, !r.ValueNull)
	for start := n.first(r.Timestamp); start <= r.Timestamp; start += n.advance {
		if end := start + n.size; end <= closeTime {
			n.late(r.Timestamp, start, end, closeTime)
			continue
		}
		var c change[VOut]
		timestamp := r.Timestamp
		v, before, ok, err := n.store.Get(r.Key, start)
		if err != nil {
			return err
		}
		if c.old = (nullable[VOut]{v, ok}); ok {
			timestamp = max(timestamp, before)
		} else {
			c.old = n.initial()
		}
		c.new = n.add(r.Key, value, c.old)
		if err := n.set(r.Key, start, c, timestamp, r.Timestamp, r.Headers); err != nil {
			return err
		}
	}
	return n.emitClosed(closeTime, r.Headers)
}

func (n *timeAggregateNode[K, V, VOut]) emitClosed(closeTime int64, headers []Header) error {
	if n.final == nil || !n.final.due(closeTime, n.ctx.SystemTime()) {
		return nil
	}
	from, to := int64(0), closeTime-n.size
	if to < 0 {
		return nil
	}
	if last := n.final.last; last >= 0 {
		from = max(0, last-n.size) + 1
		if n.sameWindows(to, from-1) {
			return nil
		}
	}
	return n.emit(from, to, closeTime, headers)
}
