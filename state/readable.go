package state

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Owner is the task that a readable store belongs to. Its methods are called with the
// task's gate held.
type Owner interface {
	// Active says whether the task is the running one of its kind, so that the
	// store is the truth; otherwise it is a copy that may be behind.
	Active() bool

	// Unconfirmed says whether the task would be active if its process had heard from
	// the group lately. Another process may run it by now.
	Unconfirmed() bool

	// Loading says whether the store is being filled in bulk, which a read would
	// put an end to.
	Loading() bool

	// Inputs yields how far the partitions of source topics that the task reads are
	// processed, as far as that is known.
	Inputs() iter.Seq[InputPosition]

	// Changelog returns the store's changelog topic, whose partition is the
	// store's, and the offset up to which the store has it. ok is false where it
	// has none, or isn't filled from it at the moment.
	Changelog() (topic string, next int64, ok bool)
}

// InputPosition is how far a partition of a source topic is processed.
type InputPosition struct {
	Topic     string
	Partition int32
	Offset    int64 // of the last record
}

// Readable is a store of one task that others can read.
type Readable struct {
	Name      string
	Partition int32
	Global    bool // it has all partitions of its topics, and is partition 0 of itself
	Owner     Owner
	Views     *Views
	Kind      Store // for its kind alone: it must not be read
}

// Registry is what can be read of an instance's tasks. Reading it takes no lock.
type Registry struct {
	mu     sync.Mutex
	stores atomic.Pointer[map[string][]*Readable] // by name, and then by partition
}

// Add makes stores known.
func (r *Registry) Add(stores ...*Readable) {
	r.change(func(all map[string][]*Readable) {
		for _, s := range stores {
			all[s.Name] = append(slices.Clone(all[s.Name]), s)
			slices.SortStableFunc(all[s.Name], func(a, b *Readable) int { return int(a.Partition) - int(b.Partition) })
		}
	})
}

// Remove makes stores unknown.
func (r *Registry) Remove(stores ...*Readable) {
	r.change(func(all map[string][]*Readable) {
		for _, s := range stores {
			all[s.Name] = slices.DeleteFunc(slices.Clone(all[s.Name]), func(o *Readable) bool { return o == s })
		}
	})
}

func (r *Registry) change(f func(map[string][]*Readable)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string][]*Readable)
	if now := r.stores.Load(); now != nil {
		maps.Copy(all, *now)
	}
	f(all)
	r.stores.Store(&all)
}

// All returns the stores of a name, by partition; nobody changes the slice.
func (r *Registry) All(name string) []*Readable {
	if all := r.stores.Load(); all != nil {
		return (*all)[name]
	}
	return nil
}

// Get returns the store of a name and partition, or nil. While a task moves between
// threads of the instance there may be two, and then it is the newer one.
func (r *Registry) Get(name string, partition int32) *Readable {
	stores := r.All(name)
	at, end := 0, len(stores) // by hand, since it is part of every query
	for at < end {
		if mid := (at + end) / 2; stores[mid].Partition <= partition {
			at = mid + 1
		} else {
			end = mid
		}
	}
	if at > 0 && stores[at-1].Partition == partition {
		return stores[at-1]
	}
	return nil
}

// Names yields the names of all stores that there are.
func (r *Registry) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		if all := r.stores.Load(); all != nil {
			for name, stores := range *all {
				if len(stores) > 0 && !yield(name) {
					return
				}
			}
		}
	}
}
