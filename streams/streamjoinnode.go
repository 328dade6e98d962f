package streams

import (
	"fmt"
	"math"

	"github.com/odradek-go/odradek/state"
)

// addWindowed adds the node of one side that keeps its records.
func addWindowed[K, V any](t *Topology, name string, parents []string, store StateStore) {
	addNode[K, V, K, V](t, name, parents, func(ctx *taskContext) (_ running, err error) {
		n := &windowedNode[K, V]{}
		n.store, err = openWindow[K, V](ctx, store.Name)
		return n, err
	})
	t.shareStateStore(store, name)
}

func openWindow[K, V any](ctx *taskContext, name string) (*state.Window[K, V], error) {
	w, ok := ctx.Store(name).(*state.Window[K, V])
	if !ok {
		return nil, fmt.Errorf("state store %q is a %T", name, ctx.Store(name))
	}
	return w, nil
}

// windowedNode keeps records, after they have been joined: a record of a stream that
// is joined with itself doesn't find itself twice.
type windowedNode[K, V any] struct {
	emitter[K, V]
	store *state.Window[K, V]
}

func (n *windowedNode[K, V]) receive(r Record[K, V]) error {
	if err := n.forward(r); err != nil || r.KeyNull {
		return err
	}
	if r.ValueNull {
		return n.store.DeleteHeaders(r.Key, r.Timestamp, r.Timestamp, StoreHeaders(r.Headers))
	}
	return n.store.PutHeaders(r.Key, r.Timestamp, r.Value, r.Timestamp, StoreHeaders(r.Headers))
}

// joinTime is what the sides of one join in one task know of time, in milliseconds.
type joinTime struct {
	streamTime int64 // the highest time of a record yet, −1 before the first
	nextEmit   int64 // by the wall clock

	// oldest is the time of the unmatched record that was looked at last, or of an
	// older one that came since. As in Java, it decides whether there is need to
	// look again.
	oldest int64
}

// streamJoinNode joins the records of one side with those that the other has kept. V
// is this side's value and VOther the other's, whichever of VLeft and VRight they are.
//
// Of left and outer joins the nodes of both sides keep records that have found none,
// and send those of either side whose windows have closed.
type streamJoinNode[K, V, VOther, VLeft, VRight, VOut any] struct {
	emitter[K, VOut]
	before, after int64 // that the other's record can be, in ms
	alone         bool  // there are results without the other side
	left          bool
	join          func(K, V, VOther) VOut
	one           func(V) either[VLeft, VRight]

	ctx       *taskContext
	time      *joinTime
	other     *state.Window[K, VOther]
	unmatched unmatchedStore[K, VLeft, VRight] // nil in an inner join
	windows   JoinWindows
	joinBoth  func(K, VLeft, VRight) VOut
	isNil     func(VOut) bool
}

// openJoinSide completes a node of the join. The store is the other side's.
func openJoinSide[K, V, VOther, VLeft, VRight, VOut any](ctx *taskContext, n *streamJoinNode[K, V, VOther, VLeft, VRight, VOut], j *streamJoin[K, VLeft, VRight, VOut], store string) (err error) {
	n.ctx, n.windows, n.joinBoth, n.isNil = ctx, j.windows, j.f, nilCheck[VOut]()
	n.time = shared(ctx, j, func() *joinTime { return &joinTime{streamTime: -1, oldest: math.MaxInt64} })
	if n.other, err = openWindow[K, VOther](ctx, store); err != nil || j.kind == innerJoin {
		return err
	}
	s, ok := ctx.Store(j.unmatched.Name).(unmatchedStore[K, VLeft, VRight])
	if !ok {
		return fmt.Errorf("state store %q is a %T", j.unmatched.Name, ctx.Store(j.unmatched.Name))
	}
	n.unmatched = s
	return nil
}

func (n *streamJoinNode[K, V, VOther, VLeft, VRight, VOut]) receive(r Record[K, V]) error {
	n.time.streamTime = max(n.time.streamTime, r.Timestamp)
	var none VOther
	if r.ValueNull || r.KeyNull {
		if n.alone && !r.ValueNull {
			return n.send(r, none, r.Timestamp)
		}
		return nil
	}
	if n.unmatched != nil && r.Timestamp == n.time.streamTime {
		if err := n.sendUnmatched(r); err != nil {
			return err
		}
	}
	to := max(r.Timestamp+n.after, 0)
	matched, err := n.match(r, max(r.Timestamp-n.before, 0), to)
	switch {
	case err != nil || matched || !n.alone:
		return err
	case to < n.time.streamTime: // there is none to come
		return n.send(r, none, r.Timestamp)
	}
	n.time.oldest = min(n.time.oldest, r.Timestamp)
	return n.keepUnmatched(r)
}

// match joins a record with those of the other side in a span of time.
func (n *streamJoinNode[K, V, VOther, VLeft, VRight, VOut]) match(r Record[K, V], from, to int64) (matched bool, err error) {
	it := n.other.Fetch(r.Key, from, to, state.Forward)
	defer it.Close()
	for it.Next() {
		matched = true
		at := it.Key().Start
		if n.unmatched != nil {
			if err := n.dropUnmatched(unmatchedKey[K]{at, !n.left, r.Key}, r.Timestamp); err != nil {
				return true, err
			}
		}
		if err := n.send(r, it.Value(), max(r.Timestamp, at)); err != nil {
			return true, err
		}
	}
	return matched, it.Err()
}

func (n *streamJoinNode[K, V, VOther, VLeft, VRight, VOut]) send(r Record[K, V], other VOther, timestamp int64) error {
	out := withNullable(r, n.join(r.Key, r.Value, other), n.isNil)
	out.Timestamp = timestamp
	return n.forward(out)
}

func (n *streamJoinNode[K, V, VOther, VLeft, VRight, VOut]) keepUnmatched(r Record[K, V]) error {
	key := unmatchedKey[K]{r.Timestamp, n.left, r.Key}
	with, _, err := n.unmatched.Get(key)
	if err != nil {
		return err
	}
	return n.unmatched.Put(key, append(with, n.one(r.Value)), r.Timestamp)
}

func (n *streamJoinNode[K, V, VOther, VLeft, VRight, VOut]) dropUnmatched(key unmatchedKey[K], timestamp int64) error {
	if _, ok, err := n.unmatched.Get(key); err != nil || !ok {
		return err
	}
	return n.unmatched.Delete(key, timestamp)
}

// sendUnmatched sends unmatched records whose windows have closed, at the time of r
// and with its headers.
func (n *streamJoinNode[K, V, VOther, VLeft, VRight, VOut]) sendUnmatched(r Record[K, V]) error {
	time, grace := n.time, n.windows.Grace.Milliseconds()
	// Where nothing is known yet, after a start, the sum overflows: one looks.
	if time.oldest+n.after+grace >= time.streamTime {
		return nil
	}
	now := n.ctx.SystemTime()
	if now < time.nextEmit {
		return nil
	}
	time.nextEmit, time.oldest = now+n.ctx.EmitInterval, math.MaxInt64

	it := n.unmatched.Range(state.Bounds[unmatchedKey[K]]{}, state.Forward)
	defer it.Close()
	var sent *unmatchedKey[K] // and not deleted yet: Java does that late
	drop := func() error {
		if sent == nil {
			return nil
		}
		return n.unmatched.Delete(*sent, r.Timestamp)
	}
	leftOpen, rightOpen := false, false
	for it.Next() {
		key := it.Key()
		time.oldest = key.timestamp
		if leftOpen && rightOpen {
			break
		}
		if key.timestamp+n.laterThan(key)+grace >= time.streamTime {
			leftOpen, rightOpen = leftOpen || key.left, rightOpen || !key.left
			continue
		}
		for i, v := range it.Value() {
			out := Record[K, VOut]{Key: key.key, Value: n.joinBoth(key.key, v.left, v.right), Timestamp: key.timestamp, Headers: r.Headers}
			out.ValueNull = n.isNil != nil && n.isNil(out.Value)
			if err := n.forward(out); err != nil {
				return err
			}
			if i == 0 {
				if err := drop(); err != nil {
					return err
				}
			}
		}
		sent = &key
	}
	if err := it.Err(); err != nil {
		return err
	}
	return drop()
}

// laterThan is how much later the other record of an unmatched one can be.
func (n *streamJoinNode[K, V, VOther, VLeft, VRight, VOut]) laterThan(key unmatchedKey[K]) int64 {
	if key.left {
		return n.windows.After.Milliseconds()
	}
	return n.windows.Before.Milliseconds()
}
