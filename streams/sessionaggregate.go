package streams

import (
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// sessionOut is the output side of a node that keeps an aggregate for each key and
// session.
type sessionOut[K, V any] struct {
	windowOut[K, V]
	store *state.Session[K, V]
}

// open has the changes that leave the store's cache sent.
func (o *sessionOut[K, V]) open() error {
	if o.final == nil && o.store.Cached() {
		o.store.OnFlush(o.old, func(c state.Change[serde.Windowed[K], V]) error { return sendFlushed(&o.windowOut, c, c.Key.End) })
	}
	return nil
}

// set stores what the aggregate of a session is and sends the change on. record is
// the timestamp of the record that makes it.
func (o *sessionOut[K, V]) set(w serde.Windowed[K], c change[V], record int64, headers []Header) error {
	o.ctx.SetHeaders(headers)
	var err error
	if c.new.ok {
		err = o.store.Put(w, c.new.v, record)
	} else {
		err = o.store.RemoveHeaders(w, record, o.ctx.tombstone(headers))
	}
	if err != nil || o.final != nil || o.store.Cached() {
		return err
	}
	if !o.old {
		c.old = nullable[V]{}
	}
	// As in Java, without the record's headers.
	return o.forward(Record[serde.Windowed[K], change[V]]{Key: w, Value: c, Timestamp: w.End})
}

// sessionAggregateNode aggregates sessions.
type sessionAggregateNode[K, V, VOut any] struct {
	sessionOut[K, VOut]
	windowAggregation[K, V, VOut]
	found []session[K, VOut] // reused
}

type session[K, V any] struct {
	key   serde.Windowed[K]
	value nullable[V]
}

func (n *sessionAggregateNode[K, V, VOut]) receive(r Record[K, V]) error {
	if r.KeyNull {
		n.ctx.DropRecord(n.node, "its key is null")
		return nil
	}
	closeTime := n.closeTime(r.Timestamp)
	if err := n.find(r.Key, r.Timestamp-n.size, r.Timestamp+n.size); err != nil {
		return err
	}
	alone := serde.Windowed[K]{Key: r.Key, Start: r.Timestamp, End: r.Timestamp}
	whole, aggregate := alone, n.initial()
	for _, s := range n.found {
		aggregate = n.merge(r.Key, aggregate, s.value)
		whole.Start, whole.End = min(whole.Start, s.key.Start), max(whole.End, s.key.End)
	}
	if whole.End < closeTime {
		n.late(r.Timestamp, whole.Start, whole.End, closeTime)
		return n.emitClosed(closeTime, r.Headers)
	}
	if whole.Start != alone.Start || whole.End != alone.End {
		for _, s := range n.found {
			if err := n.set(s.key, change[VOut]{old: s.value}, r.Timestamp, r.Headers); err != nil {
				return err
			}
		}
	}
	aggregate = n.add(r.Key, valueIf(r.Value, !r.ValueNull), aggregate)
	if err := n.set(whole, change[VOut]{new: aggregate}, r.Timestamp, r.Headers); err != nil {
		return err
	}
	return n.emitClosed(closeTime, r.Headers)
}

// find finds the sessions of a key that end at earliestEnd or later and start at
// latestStart or earlier.
func (n *sessionAggregateNode[K, V, VOut]) find(k K, earliestEnd, latestStart int64) error {
	n.found = n.found[:0]
	it := n.store.Find(k, earliestEnd, latestStart, state.Forward)
	return walk(it, func() (more bool, err error) {
		n.found = append(n.found, session[K, VOut]{it.Key(), nullable[VOut]{it.Value(), true}})
		return true, nil
	})
}

func (n *sessionAggregateNode[K, V, VOut]) emitClosed(closeTime int64, headers []Header) error {
	if n.final == nil || !n.final.due(closeTime, n.ctx.SystemTime()) {
		return nil
	}
	from, to := max(0, n.final.last), closeTime-1
	if to < from {
		return nil
	}
	end := func(it *state.WindowIterator[K, VOut]) int64 { return it.Key().End }
	return emitFinal(&n.windowOut, n.store.FindEnds(from, to, state.Forward), end, closeTime, headers)
}
