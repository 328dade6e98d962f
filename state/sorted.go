package state

import (
	"github.com/tidwall/btree"
)

// sorted is a table of keys and values that finds a key by hash and walks over
// the keys in order. A nil value is an entry like any other: a tombstone. T is
// what else an entry carries.
type sorted[T any] struct {
	items map[string]*item[T]
	order *btree.BTreeG[*item[T]]
	probe item[T] // for deletions, so that they need no allocation
	walks int     // iterators that are open

	// walked says that the tree may be under an iterator and must be copied
	// before its next change. Copies are lazy: nodes are copied as they change.
	walked bool
}

type item[T any] struct {
	extra T // first, since a field without size costs a word at the end
	key   string
	value []byte
}

func newSorted[T any]() *sorted[T] {
	return &sorted[T]{items: make(map[string]*item[T]), order: btree.NewBTreeGOptions(
		func(a, b *item[T]) bool { return a.key < b.key },
		btree.Options{NoLocks: true},
	)}
}

func (s *sorted[T]) get(key []byte) *item[T] { return s.items[string(key)] }

// put sets a value, which is copied, and returns its item.
func (s *sorted[T]) put(key, value []byte) *item[T] {
	it := s.items[string(key)]
	if it == nil {
		it = &item[T]{key: string(key)}
		s.items[it.key] = it
		s.changing()
		s.order.Set(it)
	}
	switch {
	case value == nil:
		it.value = nil
	case it.value == nil || s.walks > 0: // an iterator may have lent the old one
		it.value = append(make([]byte, 0, len(value)), value...)
	default:
		it.value = append(it.value[:0], value...)
	}
	return it
}

func (s *sorted[T]) remove(it *item[T]) {
	delete(s.items, it.key)
	s.changing()
	s.probe.key = it.key
	s.order.Delete(&s.probe)
}

// removeBefore removes the keys before key and tells which.
func (s *sorted[T]) removeBefore(key []byte, removed func(*item[T])) {
	for {
		it, ok := s.order.Min()
		if !ok || it.key >= string(key) {
			return
		}
		s.remove(it)
		if removed != nil {
			removed(it)
		}
	}
}

func (s *sorted[T]) changing() {
	if s.walked && s.walks > 0 {
		s.order = s.order.Copy()
	}
	s.walked = false
}

// scan is [Engine.Scan], tombstones included.
func (s *sorted[T]) scan(from, to []byte, order Order) *sortedIterator[T] {
	s.walks++
	s.walked = true
	it := &sortedIterator[T]{in: s, iter: s.order.Iter(), backward: bool(order)}
	bounds := append(append(make([]byte, 0, len(from)+len(to)), from...), to...)
	if from != nil {
		it.from = bounds[:len(from):len(from)]
	}
	if to != nil {
		it.to = bounds[len(from):]
	}
	return it
}

type sortedIterator[T any] struct {
	in       *sorted[T]
	iter     btree.IterG[*item[T]]
	from, to []byte
	backward bool
	begun    bool
	done     bool
	cur      *item[T]
	key      []byte
}

func (it *sortedIterator[T]) Next() bool {
	if it.done || !it.move() {
		it.done = true
		return false
	}
	cur := it.iter.Item()
	if it.from != nil && cur.key < string(it.from) || it.to != nil && cur.key >= string(it.to) {
		it.done = true
		return false
	}
	it.cur, it.key = cur, append(it.key[:0], cur.key...)
	return true
}

func (it *sortedIterator[T]) move() bool {
	begun := it.begun
	it.begun = true
	switch {
	case begun && it.backward:
		return it.iter.Prev()
	case begun:
		return it.iter.Next()
	case !it.backward && it.from == nil:
		return it.iter.First()
	case !it.backward:
		return it.iter.Seek(&item[T]{key: string(it.from)})
	case it.to != nil && it.iter.Seek(&item[T]{key: string(it.to)}):
		return it.iter.Prev()
	}
	return it.iter.Last()
}

func (it *sortedIterator[T]) Key() []byte   { return it.key }
func (it *sortedIterator[T]) Value() []byte { return it.cur.value }
func (it *sortedIterator[T]) Err() error    { return nil }

func (it *sortedIterator[T]) Close() error {
	if it.in != nil {
		it.iter.Release()
		it.in.walks--
		it.in, it.done = nil, true
	}
	return nil
}
