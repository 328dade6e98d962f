package state

// Memory opens an engine that keeps everything in memory and starts empty.
//
// A get or an overwrite costs one hash lookup and allocates nothing; the order
// of the keys is kept beside the values and changes only when a key comes or
// goes.
func Memory(OpenContext) (Engine, error) { return &memory[struct{}]{newSorted[struct{}]()}, nil }

// memory is an engine whose entries carry a T besides.
type memory[T any] struct{ table *sorted[T] }

func (m *memory[T]) Get(key []byte) ([]byte, error) {
	if it := m.table.get(key); it != nil {
		return it.value, nil
	}
	return nil, nil
}

func (m *memory[T]) Put(key, value []byte) error {
	if value != nil {
		m.table.put(key, value)
	} else if it := m.table.get(key); it != nil {
		m.table.remove(it)
	}
	return nil
}

func (m *memory[T]) Scan(from, to []byte, order Order) Iterator { return m.table.scan(from, to, order) }

func (m *memory[T]) DropBefore(key []byte) error {
	m.table.removeBefore(key, nil)
	return nil
}

func (m *memory[T]) Len() (int, error) { return len(m.table.items), nil }

func (m *memory[T]) Checkpoint(Checkpoint) error          { return nil }
func (m *memory[T]) Checkpointed() (c Checkpoint, _ bool) { return c, false }

func (m *memory[T]) Close() error {
	open := m.table.walks
	m.table = newSorted[T]()
	return leaked(open)
}
