package state

import (
	"iter"
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
type Registry struct{ names sync.Map } // string → *Named

// Named are the stores of one name that are here.
type Named struct {
	mu     sync.Mutex
	stores atomic.Pointer[[]*Readable] // by partition
}

// Of returns the stores of a name, that are here or will be.
func (r *Registry) Of(name string) *Named {
	if found, ok := r.names.Load(name); ok {
		return found.(*Named)
	}
	found, _ := r.names.LoadOrStore(name, &Named{})
	return found.(*Named)
}

// Add makes stores known.
func (r *Registry) Add(stores ...*Readable) {
	for _, s := range stores {
		r.Of(s.Name).change(func(all []*Readable) []*Readable {
			all = append(all, s)
			slices.SortStableFunc(all, func(a, b *Readable) int { return int(a.Partition) - int(b.Partition) })
			return all
		})
	}
}

// Remove makes stores unknown.
func (r *Registry) Remove(stores ...*Readable) {
	for _, s := range stores {
		r.Of(s.Name).change(func(all []*Readable) []*Readable {
			return slices.DeleteFunc(all, func(o *Readable) bool { return o == s })
		})
	}
}

// change has f change a copy of the stores.
func (n *Named) change(f func([]*Readable) []*Readable) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := f(slices.Clone(n.All()))
	n.stores.Store(&all)
}

// All returns the stores by partition; nobody changes the slice.
func (n *Named) All() []*Readable {
	if all := n.stores.Load(); all != nil {
		return *all
	}
	return nil
}

// Get returns the store of a partition, or nil. While a task moves between threads of
// the instance there may be two, and then it is the newer one.
func (n *Named) Get(partition int32) *Readable {
	stores := n.All()
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

// All yields all stores that are here, by name in any order, and then by partition.
func (r *Registry) All() iter.Seq[*Readable] {
	return func(yield func(*Readable) bool) {
		r.names.Range(func(_, named any) bool {
			for _, s := range named.(*Named).All() {
				if !yield(s) {
					return false
				}
			}
			return true
		})
	}
}
