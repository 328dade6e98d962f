package state

// Cache is the memory in which the stores of a thread hold back their latest
// changes, so that several of one key become one (KIP-63). It belongs to the
// thread's goroutine.
//
// A change stays in the cache until the store is flushed, before a commit, or
// until the cache grows beyond its limit. Only then does it go to the store, to
// the changelog, and to the store's flush listener. Reads see it at once.
//
// What was only read isn't kept: the engines have memory of their own.
//
// Where the limit is exceeded, as in Java, the store that wrote last gives up
// what it used least recently, and if that was a change all its changes are
// flushed. A limit of 0 is legal: then each change is passed on at once.
type Cache struct {
	limit int64
	size  int64
}

// NewCache returns a cache of so many bytes, Java's statestore.cache.max.bytes
// divided by the number of threads.
func NewCache(limit int64) *Cache { return &Cache{limit: limit} }

// Size is how many bytes the cache holds.
func (c *Cache) Size() int64 { return c.size }

// cached is what the cache holds of one entry of a store.
type cached struct {
	newer, older *cachedItem // in order of use
	dirty        bool        // it is a change that is not in the store
	before, next *cachedItem // in order of change, of those that are dirty
	timestamp    int64
	headers      []Header
	record       any
}

type cachedItem = item[cached]

// cachedOverhead is about what an item takes beside its bytes.
const cachedOverhead = 220

func cachedSize(it *cachedItem) int64 { return int64(len(it.key)+len(it.value)) + cachedOverhead }

// section is the part of a cache that one store has.
type section struct {
	cache *Cache
	items *sorted[cached]

	newest, oldest *cachedItem // by use
	first, last    *cachedItem // of the dirty ones

	// flush takes one change out of the cache.
	flush func(*cachedItem) error
}

func newSection(c *Cache, flush func(*cachedItem) error) *section {
	return &section{cache: c, items: newSorted[cached](), flush: flush}
}

// get returns the item of a key, its value nil for a tombstone, or nil.
func (s *section) get(key []byte) *cachedItem {
	it := s.items.get(key)
	if it != nil && it != s.newest {
		s.unlink(it)
		s.link(it)
	}
	return it
}

// put keeps a change.
func (s *section) put(key, value []byte, timestamp int64, headers []Header, record any) error {
	it := s.set(key, value)
	s.clean(it)
	x := &it.extra
	x.timestamp, x.headers, x.record, x.dirty = timestamp, headers, record, true
	if x.before = s.last; s.last != nil {
		s.last.extra.next = it
	} else {
		s.first = it
	}
	s.last = it
	return s.evict()
}

func (s *section) set(key, value []byte) *cachedItem {
	if it := s.items.get(key); it != nil {
		s.cache.size -= cachedSize(it)
		s.unlink(it)
	}
	it := s.items.put(key, value)
	s.cache.size += cachedSize(it)
	s.link(it)
	return it
}

// evict makes the cache keep its limit, at this store's expense.
func (s *section) evict() error {
	for s.cache.size > s.cache.limit && s.oldest != nil {
		it := s.oldest
		s.drop(it)
		if !it.extra.dirty {
			continue
		}
		s.clean(it)
		if err := s.flush(it); err != nil {
			return err
		}
		if err := s.flushAll(); err != nil {
			return err
		}
	}
	return nil
}

// flushAll takes all changes out of the cache, in the order in which they were
// made. A flush may change the store again: that is flushed as well.
func (s *section) flushAll() error {
	for s.first != nil {
		it := s.first
		s.clean(it)
		if err := s.flush(it); err != nil {
			return err
		}
		if it.value == nil && !it.extra.dirty && s.items.items[it.key] == it {
			s.drop(it)
		}
	}
	return nil
}

// clean takes an item from the list of the dirty ones.
func (s *section) clean(it *cachedItem) {
	x := &it.extra
	if !x.dirty {
		return
	}
	if x.before != nil {
		x.before.extra.next = x.next
	} else {
		s.first = x.next
	}
	if x.next != nil {
		x.next.extra.before = x.before
	} else {
		s.last = x.before
	}
	x.before, x.next, x.dirty = nil, nil, false
}

// drop forgets an item.
func (s *section) drop(it *cachedItem) {
	s.unlink(it)
	s.items.remove(it)
	s.cache.size -= cachedSize(it)
}

func (s *section) link(it *cachedItem) {
	if it.extra.older = s.newest; s.newest != nil {
		s.newest.extra.newer = it
	} else {
		s.oldest = it
	}
	s.newest = it
}

func (s *section) unlink(it *cachedItem) {
	x := &it.extra
	if x.newer != nil {
		x.newer.extra.older = x.older
	} else {
		s.newest = x.older
	}
	if x.older != nil {
		x.older.extra.newer = x.newer
	} else {
		s.oldest = x.newer
	}
	x.newer, x.older = nil, nil
}

// close forgets everything, changes too, and gives the memory back.
func (s *section) close() {
	for it := s.oldest; it != nil; it = it.extra.newer {
		s.cache.size -= cachedSize(it)
	}
	s.items, s.newest, s.oldest, s.first, s.last = newSorted[cached](), nil, nil, nil, nil
}
