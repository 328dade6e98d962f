package streams

import (
	"slices"

	"github.com/odradek-go/odradek/state"
)

// slidingAggregateNode aggregates sliding windows (KIP-450). Of each key it keeps, for
// each record, the window that ends with the record, and the one that begins a
// millisecond after it, if there is a record in it.
type slidingAggregateNode[K, V, VOut any] struct {
	timeOut[K, VOut]
	windowAggregation[K, V, VOut]
	found []slidingWindow[VOut] // reused
}

// slidingWindow is a window as it was before a record. Its timestamp is that of its
// latest record.
type slidingWindow[V any] struct {
	start     int64
	value     nullable[V]
	timestamp int64
}

func (n *slidingAggregateNode[K, V, VOut]) receive(r Record[K, V]) error {
	if r.KeyNull || r.ValueNull {
		n.ctx.DropRecord(n.node, "its key or its value is null")
		return nil
	}
	closeTime := n.closeTime(r.Timestamp)
	if end := r.Timestamp + n.size; end < closeTime {
		n.late(r.Timestamp, r.Timestamp, end, closeTime)
		return nil
	}
	if r.Timestamp < n.size {
		return n.receiveEarly(r, closeTime)
	}
	if err := n.receiveUsual(r, closeTime); err != nil {
		return err
	}
	return n.emitClosed(closeTime, r.Headers)
}

// receiveUsual takes a record whose window doesn't begin before 1970.
func (n *slidingAggregateNode[K, V, VOut]) receiveUsual(r Record[K, V], closeTime int64) error {
	ts := r.Timestamp
	// Of the windows that have ended before the record the latest is of interest.
	windows, err := n.find(r.Key, max(0, ts-2*n.size), ts+1, state.Backward, ts)
	if err != nil {
		return err
	}
	var left, right *slidingWindow[VOut]
	var leftExists, rightExists bool
	previous := int64(-1) // the time of the record before
	for i := range windows {
		w := &windows[i]
		end := w.start + n.size
		switch {
		case w.start == ts+1:
			rightExists = true
			continue
		case end < ts:
			left, previous = w, w.timestamp
			continue
		case end == ts:
			leftExists = true
		case right == nil:
			right = w
		}
		if err := n.update(r, *w, closeTime); err != nil {
			return err
		}
		if end == ts {
			if w.timestamp >= ts {
				return nil // there was a record of that time, and so all the windows
			}
			previous = w.timestamp
		}
	}
	if previous >= 0 && previous+1+n.size >= ts && !contains(windows, previous+1) {
		if err := n.update(r, n.empty(previous+1, ts), closeTime); err != nil {
			return err
		}
	}
	if !leftExists {
		w := n.empty(ts-n.size, ts)
		if previous >= ts-n.size {
			w.value = left.value
		}
		if err := n.update(r, w, closeTime); err != nil {
			return err
		}
	}
	return n.createRight(r, right, rightExists)
}

// receiveEarly takes a record less than the time difference after the beginning of
// 1970. The windows that would begin before it are one, from 1970 on.
func (n *slidingAggregateNode[K, V, VOut]) receiveEarly(r Record[K, V], closeTime int64) error {
	ts := r.Timestamp
	windows, err := n.find(r.Key, 0, ts+1, state.Forward, 0)
	if err != nil {
		return err
	}
	var combined, right *slidingWindow[VOut]
	var rightExists bool
	previous := int64(-1)
	for i := range windows {
		switch w := &windows[i]; {
		case w.start == 0:
			combined = w
			if w.timestamp < ts {
				previous = w.timestamp
			}
		case w.start == ts+1:
			rightExists = true
		default:
			right = w
			if err := n.update(r, *w, closeTime); err != nil {
				return err
			}
		}
	}
	if right == nil {
		right = combined
	}
	if err := n.createRight(r, right, rightExists); err != nil {
		return err
	}
	if previous >= 0 && !contains(windows, previous+1) {
		if err := n.update(r, n.empty(previous+1, ts), closeTime); err != nil {
			return err
		}
	}
	if combined == nil {
		combined = new(n.empty(0, ts))
	}
	return n.update(r, *combined, closeTime)
}

// createRight makes the window that begins right after the record, if there are
// records in it: those of right, whose first ones aren't later than this one.
func (n *slidingAggregateNode[K, V, VOut]) createRight(r Record[K, V], right *slidingWindow[VOut], exists bool) error {
	if exists || right == nil || right.timestamp <= r.Timestamp {
		return nil
	}
	return n.set(r.Key, r.Timestamp+1, change[VOut]{new: right.value}, right.timestamp, r.Timestamp, r.Headers)
}

// empty is a window without records.
func (n *slidingAggregateNode[K, V, VOut]) empty(start, timestamp int64) slidingWindow[VOut] {
	return slidingWindow[VOut]{start, n.initial(), timestamp}
}

// update adds the record to a window.
func (n *slidingAggregateNode[K, V, VOut]) update(r Record[K, V], w slidingWindow[VOut], closeTime int64) error {
	if end := w.start + n.size; end < closeTime {
		n.late(r.Timestamp, w.start, end, closeTime)
		return nil
	}
	timestamp := r.Timestamp
	if w.value.ok {
		timestamp = max(timestamp, w.timestamp)
	}
	c := change[VOut]{old: w.value, new: n.add(r.Key, nullable[V]{r.Value, true}, w.value)}
	return n.set(r.Key, w.start, c, timestamp, r.Timestamp, r.Headers)
}

// find returns the windows of a key that start from from to to, up to the first that
// has ended before the time upTo.
func (n *slidingAggregateNode[K, V, VOut]) find(k K, from, to int64, order state.Order, upTo int64) ([]slidingWindow[VOut], error) {
	n.found = n.found[:0]
	it := n.store.Fetch(k, from, to, order)
	err := walk(it, func() (more bool, err error) {
		start := it.Key().Start
		n.found = append(n.found, slidingWindow[VOut]{start, nullable[VOut]{it.Value(), true}, it.Timestamp()})
		return start+n.size >= upTo, nil
	})
	return n.found, err
}

func contains[V any](windows []slidingWindow[V], start int64) bool {
	return slices.ContainsFunc(windows, func(w slidingWindow[V]) bool { return w.start == start })
}

func (n *slidingAggregateNode[K, V, VOut]) emitClosed(closeTime int64, headers []Header) error {
	if n.final == nil || !n.final.due(closeTime, n.ctx.SystemTime()) {
		return nil
	}
	from, to := int64(0), closeTime-n.size-1
	if to < 0 {
		return nil
	}
	if n.final.last >= 0 {
		from = max(0, n.final.last-n.size)
	}
	return n.emit(from, to, closeTime, headers)
}
