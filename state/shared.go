package state

import (
	"encoding/binary"
	"errors"
	"sync"
)

// Shared is an engine that one store writes and other stores read, on goroutines of
// their own, as global stores need it: [Shared.Writer] and [Shared.Reader] open
// engines for them.
//
// A reader sees each change as soon as it is made. What it gets is a copy, and its
// iterators see the store as it is from one run of entries to the next.
type Shared struct {
	mu     sync.Mutex
	engine Engine // nil: not open

	// note is what the user wants to find again with a checkpoint.
	note []byte
}

// Writer opens the engine with open. There is one writer at a time.
func (s *Shared) Writer(open OpenEngine) OpenEngine {
	return func(ctx OpenContext) (Engine, error) {
		engine, err := open(ctx)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.engine = engine
		c, _ := engine.Checkpointed()
		s.note, _ = splitNote(c.Note)
		return sharedWriter{s}, nil
	}
}

// Reader opens an engine on what the writer writes, which refuses to be written.
// It need not be closed.
func (s *Shared) Reader() OpenEngine {
	return func(OpenContext) (Engine, error) { return &sharedReader{s: s}, nil }
}

// SetNote sets what is kept with the checkpoints that follow.
func (s *Shared) SetNote(note []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note = append(s.note[:0], note...)
}

// Note is what was kept with the checkpoint that the engine was found at, or nil.
func (s *Shared) Note() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note
}

// lock calls f with the engine, alone.
func (s *Shared) lock(f func(Engine) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil {
		return ErrClosed
	}
	return f(s.engine)
}

// A checkpoint's note is the user's, its length before it, and then the store's.
func joinNote(user, store []byte) []byte {
	note := binary.AppendUvarint(nil, uint64(len(user)))
	return append(append(note, user...), store...)
}

func splitNote(note []byte) (user, store []byte) {
	n, size := binary.Uvarint(note)
	if size <= 0 || n > uint64(len(note)-size) {
		return nil, nil
	}
	return note[size : size+int(n)], note[size+int(n):]
}

// sharedWriter is the writer's engine. Its reads need no copies, because nobody
// else writes, but they need the lock: engines are used by one goroutine at a time.
type sharedWriter struct{ *Shared }

func (s sharedWriter) Get(key []byte) (value []byte, err error) {
	err = s.lock(func(e Engine) (err error) {
		value, err = e.Get(key)
		value = copied(nil, value)
		return err
	})
	return value, err
}

func (s sharedWriter) Put(key, value []byte) error {
	return s.lock(func(e Engine) error { return e.Put(key, value) })
}

func (s sharedWriter) Scan(from, to []byte, order Order) Iterator {
	return newSharedScan(s.Shared, from, to, order)
}

func (s sharedWriter) DropBefore(key []byte) error {
	return s.lock(func(e Engine) error { return e.DropBefore(key) })
}

func (s sharedWriter) Len() (n int, err error) {
	err = s.lock(func(e Engine) (err error) { n, err = e.Len(); return err })
	return n, err
}

func (s sharedWriter) Checkpoint(c Checkpoint) error {
	return s.lock(func(e Engine) error {
		c.Note = joinNote(s.note, c.Note)
		return e.Checkpoint(c)
	})
}

func (s sharedWriter) Checkpointed() (c Checkpoint, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil {
		return c, false
	}
	c, ok = s.engine.Checkpointed()
	_, c.Note = splitNote(c.Note)
	return c, ok
}

func (s sharedWriter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	engine := s.engine
	s.engine = nil
	return engine.Close()
}

// sharedReader is a reader's engine.
type sharedReader struct {
	s     *Shared
	value []byte // reused
}

func (r *sharedReader) Get(key []byte) (value []byte, err error) {
	err = r.s.lock(func(e Engine) error {
		found, err := e.Get(key)
		if value = copied(r.value[:0], found); value != nil {
			r.value = value
		}
		return err
	})
	return value, err
}

func (r *sharedReader) Scan(from, to []byte, order Order) Iterator {
	return newSharedScan(r.s, from, to, order)
}

func (r *sharedReader) Len() (n int, err error) { return sharedWriter{r.s}.Len() }

func (r *sharedReader) Put([]byte, []byte) error    { return ErrReadOnly }
func (r *sharedReader) DropBefore([]byte) error     { return ErrReadOnly }
func (r *sharedReader) Checkpoint(Checkpoint) error { return ErrReadOnly }
func (r *sharedReader) Close() error                { return nil }
func (r *sharedReader) Checkpointed() (c Checkpoint, ok bool) {
	return sharedWriter{r.s}.Checkpointed()
}

// copied appends b to what dst begins with; nil stays nil.
func copied(dst, b []byte) []byte {
	if b == nil {
		return nil
	}
	if dst == nil {
		dst = make([]byte, 0, len(b))
	}
	return append(dst, b...)
}

// sharedScan reads an engine a run of entries at a time, so that nobody waits for
// whoever walks over it.
type sharedScan struct {
	s        *Shared
	from, to []byte
	order    Order
	run      []entry
	at       int // of the current entry in the run
	last     bool
	err      error
}

type entry struct{ key, value []byte }

// scanRun is how many entries are read at a time.
const scanRun = 128

func newSharedScan(s *Shared, from, to []byte, order Order) *sharedScan {
	return &sharedScan{s: s, from: copied(nil, from), to: copied(nil, to), order: order, at: -1}
}

func (it *sharedScan) Next() bool {
	if it.at+1 < len(it.run) {
		it.at++
		return true
	}
	if it.last || it.err != nil {
		return false
	}
	it.run, it.at = it.run[:0], 0
	it.err = it.s.lock(func(e Engine) error {
		in := e.Scan(it.from, it.to, it.order)
		for len(it.run) < scanRun && in.Next() {
			it.run = append(it.run, entry{copied(nil, in.Key()), copied(nil, in.Value())})
		}
		return errors.Join(in.Err(), in.Close())
	})
	if it.last = len(it.run) < scanRun; len(it.run) == 0 || it.err != nil {
		return false
	}
	if end := it.run[len(it.run)-1].key; it.order == Forward {
		it.from = append(end[:len(end):len(end)], 0) // what is next after it
	} else {
		it.to = end
	}
	return true
}

func (it *sharedScan) Key() []byte   { return it.run[it.at].key }
func (it *sharedScan) Value() []byte { return it.run[it.at].value }
func (it *sharedScan) Err() error    { return it.err }

func (it *sharedScan) Close() error {
	it.last, it.run = true, nil
	return nil
}
