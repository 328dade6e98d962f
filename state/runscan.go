package state

import "errors"

// runScan reads an engine that others use too, a run of entries at a time, so that
// nobody waits for whoever walks over it.
type runScan struct {
	// read calls use with the engine's Scan, alone with the engine.
	read     func(use func(scan scanFunc) error) error
	from, to []byte
	order    Order
	run      []entry
	at       int // of the current entry in the run
	last     bool
	err      error
}

type scanFunc func(from, to []byte, order Order) Iterator

type entry struct{ key, value []byte }

// scanRun is how many entries are read at a time.
const scanRun = 128

func newRunScan(from, to []byte, order Order, read func(use func(scan scanFunc) error) error) *runScan {
	return &runScan{read: read, from: copied(nil, from), to: copied(nil, to), order: order, at: -1}
}

func (it *runScan) Next() bool {
	if it.at+1 < len(it.run) {
		it.at++
		return true
	}
	if it.last || it.err != nil {
		return false
	}
	it.run, it.at = it.run[:0], 0
	it.err = it.read(func(scan scanFunc) error {
		in := scan(it.from, it.to, it.order)
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

func (it *runScan) Key() []byte   { return it.run[it.at].key }
func (it *runScan) Value() []byte { return it.run[it.at].value }
func (it *runScan) Err() error    { return it.err }

func (it *runScan) Close() error {
	it.last, it.run = true, nil
	return nil
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

// readOnly is what engines have in common that nobody writes to.
type readOnly struct{}

func (readOnly) Put([]byte, []byte) error    { return ErrReadOnly }
func (readOnly) DropBefore([]byte) error     { return ErrReadOnly }
func (readOnly) Checkpoint(Checkpoint) error { return ErrReadOnly }
func (readOnly) Close() error                { return nil }
