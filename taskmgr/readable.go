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
func (o owner) Inputs() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, in := range o.task.inputs {
			if in.next > 0 && !yield(in.topic, in.next-1) {
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
