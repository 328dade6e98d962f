package streams

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/odradek-go/odradek/state"
)

// streamJoinPlan is a planned join of streams.
type streamJoinPlan struct {
	otherWindowed string // what keeps the other side's records
	self          bool   // it is a stream with itself, and has one store
}

// selfJoins lets streams that are joined with themselves have one store. As in Java,
// left and outer joins become inner ones: each record finds itself.
func (p *plan) selfJoins() {
	for _, n := range slices.Clone(p.nodes) {
		if n.streamJoin == nil || len(n.parents) != 1 {
			continue
		}
		parent := n.parents[0]
		for _, child := range slices.Clone(parent.children) {
			if child.name == n.streamJoin.otherWindowed {
				parent.removeChild(child)
				p.nodes = without(p.nodes, child)
			}
		}
		n.streamJoin.self = true
	}
}

// writeSelfJoin writes the only node of a stream's join with itself.
func (j *streamJoin[K, V, VOther, VOut]) writeSelfJoin(t *Topology) {
	addNode[K, V, K, VOut](t, j.merge, []string{j.thisWindowed}, func(ctx *taskContext) (_ running, err error) {
		// Both sides are the same stream, of one type.
		f, ok := any(j.f).(func(K, V, V) VOut)
		if !ok {
			return nil, fmt.Errorf("a stream of %v is joined with itself by a %T", reflect.TypeFor[V](), j.f)
		}
		n := &selfJoinNode[K, V, VOut]{join: f, windows: j.windows, streamTime: -1, isNil: nilCheck[VOut]()}
		n.store, err = openWindow[K, V](ctx, j.thisStore.Name)
		return n, err
	})
	t.shareStateStore(j.thisStore, j.merge)
}

// selfJoinNode joins the records of a stream with each other.
type selfJoinNode[K, V, VOut any] struct {
	emitter[K, VOut]
	join       func(K, V, V) VOut
	windows    JoinWindows
	store      *state.Window[K, V]
	streamTime int64 // the highest time of a record yet, −1 before the first
	isNil      func(VOut) bool
}

// receive joins a record with those before and with itself: first as the one of this
// side, then as the other one. With itself comes where it is in time among the latter.
func (n *selfJoinNode[K, V, VOut]) receive(r Record[K, V]) error {
	if r.KeyNull || r.ValueNull {
		return nil
	}
	n.streamTime = max(n.streamTime, r.Timestamp)
	before, after := n.windows.Before.Milliseconds(), n.windows.After.Milliseconds()
	if err := n.match(r, before, after, func(v V, at int64) error {
		return n.send(r, n.join(r.Key, r.Value, v), max(r.Timestamp, at))
	}); err != nil {
		return err
	}
	itself := r.Timestamp > n.streamTime-n.windows.retention().Milliseconds()+1 // else it is too late
	withItself := func() error {
		if !itself {
			return nil
		}
		itself = false
		return n.send(r, n.join(r.Key, r.Value, r.Value), r.Timestamp)
	}
	if err := n.match(r, after, before, func(v V, at int64) error {
		if at > r.Timestamp {
			if err := withItself(); err != nil {
				return err
			}
		}
		return n.send(r, n.join(r.Key, v, r.Value), max(r.Timestamp, at))
	}); err != nil {
		return err
	}
	return withItself()
}

// match calls f for each kept record that is from before earlier to after later.
func (n *selfJoinNode[K, V, VOut]) match(r Record[K, V], before, after int64, f func(v V, at int64) error) error {
	it := n.store.Fetch(r.Key, max(r.Timestamp-before, 0), max(r.Timestamp+after, 0), state.Forward)
	defer it.Close()
	for it.Next() {
		if err := f(it.Value(), it.Key().Start); err != nil {
			return err
		}
	}
	return it.Err()
}

func (n *selfJoinNode[K, V, VOut]) send(r Record[K, V], v VOut, timestamp int64) error {
	out := withNullable(r, v, n.isNil)
	out.Timestamp = timestamp
	return n.forward(out)
}
