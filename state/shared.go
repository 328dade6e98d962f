package state

import (
	"encoding/binary"
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

// scan walks over the engine a run at a time, so that nobody waits for whoever does.
func (s *Shared) scan(from, to []byte, order Order) Iterator {
	return newRunScan(from, to, order, func(use func(scan scanFunc) error) error {
		return s.lock(func(e Engine) error { return use(e.Scan) })
	})
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
	return s.Shared.scan(from, to, order)
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
	readOnly
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
	return r.s.scan(from, to, order)
}

func (r *sharedReader) Len() (n int, err error) { return sharedWriter{r.s}.Len() }

func (r *sharedReader) Checkpointed() (c Checkpoint, ok bool) {
	return sharedWriter{r.s}.Checkpointed()
}
