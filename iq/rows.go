package iq

import (
	"io"
	"iter"
)

// Rows are the entries of an answer, read one by one. They must be closed.
type Rows struct {
	// Meta says where the entries come from. Of several partitions it is true of all
	// of them: Active where all are, Lag and Age the largest. Partition is then −1,
	// and Host the instance that put them together.
	Meta Meta

	next  func() (Entry, error) // io.EOF at the end
	close func()
	done  error
}

// NewRows returns rows, for a [Transport]: next returns one entry after the other,
// and then io.EOF; close, which may be nil, is called once.
func NewRows(meta Meta, next func() (Entry, error), close func()) *Rows {
	return &Rows{Meta: meta, next: next, close: close}
}

// Next returns the next entry, whose slices are the caller's, and io.EOF at the end.
// Any other error says that the answer is not whole.
func (r *Rows) Next() (e Entry, err error) {
	if r.done != nil {
		return e, r.done
	}
	if e, err = r.next(); err != nil {
		r.done = err
	}
	return e, err
}

// Close ends the reading.
func (r *Rows) Close() {
	if r.done == nil {
		r.done = io.ErrClosedPipe
	}
	if r.close != nil {
		r.close()
		r.close = nil
	}
}

// onClose has f called when the rows are closed.
func (r *Rows) onClose(f func()) {
	before := r.close
	r.close = func() {
		if before != nil {
			before()
		}
		f()
	}
}

// All yields the entries, or an error as the last, and closes the rows.
func (r *Rows) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		defer r.Close()
		for {
			e, err := r.Next()
			if err == io.EOF || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// rowsOf are rows that are there already.
func rowsOf(meta Meta, entries ...Entry) *Rows {
	return NewRows(meta, func() (e Entry, err error) {
		if len(entries) == 0 {
			return e, io.EOF
		}
		e, entries = entries[0], entries[1:]
		return e, nil
	}, nil)
}
