package streams

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/taskmgr"
)

// newRecordBuffer describes the store in which the records of a join of that name wait.
func newRecordBuffer[K, V, VTable any](p *plan, join string, keys serde.Serde[K], values serde.Serde[V], j Joined[K, V, VTable]) *StateStore {
	name := join + "-Buffer"
	p.generated[name] = j.Name == ""
	s := newStateStore(name, keys, values, func(keys serde.Serde[K], values serde.Serde[V], engine state.OpenEngine) state.Store {
		return state.NewRecordBuffer(name, keys, values, *j.Grace, engine)
	})
	s.require(*j.Grace >= 0, "the grace period %v is negative", *j.Grace)
	return &s
}

// requireHistory notes a table whose history is shorter than a join's grace period.
func (t *Topology) requireHistory(join string, grace time.Duration, stores []string) {
	for _, s := range t.stores {
		if slices.Contains(stores, s.Name) && s.history < grace {
			t.errorf("%q has a grace period of %v, but the table's store %q a history of %v only", join, grace, s.Name, s.history)
		}
	}
}

// graceJoinNode joins the records of a stream with a table when their grace period has
// ended.
type graceJoinNode[K, V, VTable, VOut any] struct {
	*streamTableJoinNode[K, V, VTable, VOut]
	ctx    *taskContext
	buffer *state.RecordBuffer[K, V]
}

func newGraceJoinNode[K, V, VTable, VOut any](ctx *taskContext, join *streamTableJoinNode[K, V, VTable, VOut], buffer string) (running, error) {
	n := &graceJoinNode[K, V, VTable, VOut]{streamTableJoinNode: join, ctx: ctx}
	var ok bool
	if n.buffer, ok = ctx.Store(buffer).(*state.RecordBuffer[K, V]); !ok {
		return nil, fmt.Errorf("state store %q is a %T", buffer, ctx.Store(buffer))
	}
	return n, nil
}

func (n *graceJoinNode[K, V, VTable, VOut]) receive(r Record[K, V]) error {
	if r.KeyNull || r.ValueNull {
		return n.streamTableJoinNode.receive(r) // it isn't kept waiting
	}
	from := recordContext(n.ctx.Context)
	held, err := n.buffer.Put(r.Key, r.Value, state.RecordContext{
		Topic: from.Topic, Partition: from.Partition, Offset: from.Offset,
		Timestamp: r.Timestamp, Headers: StoreHeaders(r.Headers),
	})
	if err != nil {
		return err
	}
	if !held { // it is late
		return n.streamTableJoinNode.receive(r)
	}
	return n.buffer.Evict(n.join)
}

// join joins a record that has waited, as if it came now from where it did.
func (n *graceJoinNode[K, V, VTable, VOut]) join(k K, v V, from state.RecordContext) error {
	r := Record[K, V]{Key: k, Value: v, Timestamp: from.Timestamp}
	for _, h := range from.Headers {
		r.Headers = append(r.Headers, Header(h))
	}
	moment := &taskmgr.Moment{Headers: r.Headers}
	if from.Topic != "" {
		moment.Record = &kgo.Record{
			Topic: from.Topic, Partition: from.Partition, Offset: from.Offset,
			Timestamp: time.UnixMilli(from.Timestamp), Headers: r.Headers,
		}
	}
	defer n.ctx.Resume(moment)()
	return n.streamTableJoinNode.receive(r)
}
