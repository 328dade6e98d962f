package taskmgr

import (
	"iter"

	"github.com/odradek-go/odradek/state"
)

// publish lets others read the task's stores (KIP-67), which are open.
func (t *task) publish() {
	if t.storage.readable == nil {
		return
	}
	for _, s := range t.stores {
		if viewable, ok := s.Store.(state.Viewable); ok {
			t.readable = append(t.readable, &state.Readable{
				Name: s.Name(), Partition: t.id.Partition, Kind: s.Store,
				Owner: owner{t, s}, Views: state.NewViews(viewable, &t.gate),
			})
		}
	}
	t.storage.readable.Add(t.readable...)
}

// withdraw ends that, apart from reads that have begun: these find the stores closed.
func (t *task) withdraw() {
	if t.storage.readable != nil {
		t.storage.readable.Remove(t.readable...)
	}
}

// owner tells those who read a store about its task. It is used with the task's gate
// held.
type owner struct {
	task  *task
	store *taskStore
}

// Active implements [state.Owner]. A process that was stopped for a while may have
// lost the task to another without knowing.
func (o owner) Active() bool { return o.task.active && o.task.storage.confirmed() }

// Unconfirmed implements [state.Owner].
func (o owner) Unconfirmed() bool { return o.task.active && !o.task.storage.confirmed() }

// Loading implements [state.Owner].
func (o owner) Loading() bool { return o.store.bulk }

// Inputs implements [state.Owner].
func (o owner) Inputs() iter.Seq[state.InputPosition] {
	return func(yield func(state.InputPosition) bool) {
		for _, in := range o.task.inputs {
			if in.next > 0 && !yield(state.InputPosition{Topic: in.topic, Partition: in.partition, Offset: in.next - 1}) {
				return
			}
		}
	}
}

// Changelog implements [state.Owner].
func (o owner) Changelog() (topic string, next int64, ok bool) {
	if o.store.log == nil || o.store.source || o.task.active {
		return "", 0, false
	}
	return o.store.log.Topic, max(0, o.store.position), true
}

// readables are the global stores for others to read.
func (g *GlobalState) readables() (all []*state.Readable) {
	for _, s := range g.stores {
		if viewable, ok := s.(state.Viewable); ok {
			all = append(all, &state.Readable{
				Name: s.Name(), Global: true, Kind: s, Owner: globalOwner{g}, Views: state.NewViews(viewable, &g.gate),
			})
		}
	}
	return all
}

// globalOwner is the owner of global stores, which are complete.
type globalOwner struct{ state *GlobalState }

func (globalOwner) Active() bool                     { return true }
func (globalOwner) Unconfirmed() bool                { return false }
func (globalOwner) Loading() bool                    { return false }
func (globalOwner) Changelog() (string, int64, bool) { return "", 0, false }

// Inputs implements [state.Owner].
func (o globalOwner) Inputs() iter.Seq[state.InputPosition] {
	return func(yield func(state.InputPosition) bool) {
		for topic, partitions := range o.state.positions {
			for partition, next := range partitions {
				if next > 0 && !yield(state.InputPosition{Topic: topic, Partition: partition, Offset: next - 1}) {
					return
				}
			}
		}
	}
}
