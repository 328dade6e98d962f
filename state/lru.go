package state

// LRU returns what opens an engine like [Memory] that keeps at most so many entries: of
// more it forgets the ones that were least recently read or written. A walk over
// entries does not count as reading them.
func LRU(maxEntries int) OpenEngine {
	return func(OpenContext) (Engine, error) {
		return &lru{memory: memory[lruLinks]{newSorted[lruLinks]()}, most: maxEntries}, nil
	}
}

type lru struct {
	memory[lruLinks]
	most           int
	newest, oldest *lruItem // by use
}

type lruItem = item[lruLinks]

type lruLinks struct{ newer, older *lruItem }

func (l *lru) Get(key []byte) ([]byte, error) {
	it := l.table.get(key)
	if it == nil {
		return nil, nil
	}
	l.unlink(it)
	l.link(it)
	return it.value, nil
}

func (l *lru) Put(key, value []byte) error {
	it := l.table.get(key)
	if it != nil {
		l.unlink(it)
	}
	if value == nil {
		if it != nil {
			l.table.remove(it)
		}
		return nil
	}
	l.link(l.table.put(key, value))
	if len(l.table.items) > l.most {
		eldest := l.oldest
		l.unlink(eldest)
		l.table.remove(eldest)
	}
	return nil
}

func (l *lru) DropBefore(key []byte) error {
	l.table.removeBefore(key, l.unlink)
	return nil
}

func (l *lru) Close() error {
	l.newest, l.oldest = nil, nil
	return l.memory.Close()
}

func (l *lru) link(it *lruItem) {
	if it.extra.older = l.newest; l.newest != nil {
		l.newest.extra.newer = it
	} else {
		l.oldest = it
	}
	l.newest = it
}

func (l *lru) unlink(it *lruItem) {
	x := &it.extra
	if x.newer != nil {
		x.newer.extra.older = x.older
	} else {
		l.newest = x.older
	}
	if x.older != nil {
		x.older.extra.newer = x.newer
	} else {
		l.oldest = x.newer
	}
	x.newer, x.older = nil, nil
}
