package state

// walk is what the iterators of typed stores have in common.
type walk struct {
	b    *backing
	in   Engine   // that it walks over
	it   Iterator // nil: closed
	op   string
	err  error
	done bool
}

func (b *backing) walk(op string, it Iterator, err error) walk {
	if err != nil {
		return walk{b: b, op: op, err: err, done: true}
	}
	b.iterators++
	return walk{b: b, in: b.engine, op: op, it: it}
}

// next moves to the next entry and lets it be decoded.
func (w *walk) next(decode func(key, value []byte) error) bool {
	if w.done || w.it == nil {
		return false
	}
	if w.b.engine != w.in {
		w.err, w.done = ErrClosed, true
		return false
	}
	if !w.it.Next() {
		w.err, w.done = w.it.Err(), true
		return false
	}
	if err := decode(w.it.Key(), w.it.Value()); err != nil {
		w.err, w.done = err, true
		return false
	}
	return true
}

// Err is what ended the walk early, or nil.
func (w *walk) Err() error { return w.b.fail(w.op, w.err) }

// Close ends the walk. It may be called again.
func (w *walk) Close() error {
	if w.it == nil {
		return nil
	}
	it := w.it
	w.it, w.done = nil, true
	if w.b.engine == w.in {
		w.b.iterators--
	}
	return w.b.fail(w.op, it.Close())
}
