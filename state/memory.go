package state

import (
	"github.com/tidwall/btree"
)

// NewMemory returns an engine that keeps everything in memory and starts empty.
//
// A get or an overwrite costs one hash lookup and allocates nothing; the order
// of the keys is kept beside the values and changes only when a key comes or
// goes.
func NewMemory() KeyValue {
	return &memory{entries: make(map[string]*entry), order: btree.NewBTreeGOptions(
		func(a, b *entry) bool { return a.key < b.key },
		btree.Options{NoLocks: true},
	)}
}

type entry struct {
	key   string
	value []byte
}

type memory struct {
	entries map[string]*entry
	order   *btree.BTreeG[*entry]
	probe   entry // for deletions, so that they need no allocation
}

func (m *memory) Get(key []byte) ([]byte, error) {
	if e := m.entries[string(key)]; e != nil {
		return e.value, nil
	}
	return nil, nil
}

func (m *memory) Put(key, value []byte) error {
	e := m.entries[string(key)]
	switch {
	case value == nil && e == nil:
	case value == nil:
		delete(m.entries, e.key)
		m.probe.key = e.key
		m.order.Delete(&m.probe)
	case e == nil:
		e = &entry{key: string(key), value: append(make([]byte, 0, len(value)), value...)}
		m.entries[e.key] = e
		m.order.Set(e)
	default:
		e.value = append(e.value[:0], value...)
	}
	return nil
}

func (m *memory) Range(from, to []byte) Iterator {
	it := &memoryIterator{iter: m.order.Iter(), to: string(to), bounded: to != nil}
	it.advance = it.iter.Next
	if from != nil {
		pivot := &entry{key: string(from)}
		it.advance = func() bool { it.advance = it.iter.Next; return it.iter.Seek(pivot) }
	}
	return it
}

func (m *memory) Len() int     { return len(m.entries) }
func (m *memory) Flush() error { return nil }

func (m *memory) Close() error {
	m.entries = nil
	m.order = nil
	return nil
}

type memoryIterator struct {
	iter    btree.IterG[*entry]
	advance func() bool
	to      string
	bounded bool
	cur     *entry
}

func (it *memoryIterator) Next() bool {
	it.cur = nil
	if !it.advance() {
		return false
	}
	if e := it.iter.Item(); !it.bounded || e.key <= it.to {
		it.cur = e
		return true
	}
	it.advance = func() bool { return false }
	return false
}

func (it *memoryIterator) Key() []byte   { return []byte(it.cur.key) }
func (it *memoryIterator) Value() []byte { return it.cur.value }
func (it *memoryIterator) Err() error    { return nil }
func (it *memoryIterator) Close() error  { it.iter.Release(); return nil }
