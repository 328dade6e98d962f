package state

import (
	"cmp"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

func (e *persistent) Scan(from, to []byte, order Order) Iterator {
	it := &diskIterator{e: e, backward: bool(order)}
	if it.err = cmp.Or(e.endLoad(), e.failure()); it.err == nil {
		it.err = e.protect(func() (err error) { it.iter, err = e.db.NewIter(bounds(from, to)); return err })
	}
	e.open[it] = struct{}{}
	return merge(e.pending.scan(from, to, order), it, order)
}

func bounds(from, to []byte) *pebble.IterOptions {
	o := &pebble.IterOptions{
		LowerBound: append([]byte{dataPrefix}, from...),
		UpperBound: []byte{dataPrefix + 1},
	}
	if to != nil {
		o.UpperBound = append([]byte{dataPrefix}, to...)
	}
	return o
}

// diskIterator walks over the files.
type diskIterator struct {
	e        *persistent
	iter     *pebble.Iterator // nil where it could not be made
	backward bool
	begun    bool
	err      error
}

func (it *diskIterator) Next() (ok bool) {
	if it.err != nil || it.iter == nil {
		return false
	}
	if it.err = it.e.failure(); it.err != nil {
		return false
	}
	err := it.e.protect(func() error {
		begun := it.begun
		it.begun = true
		switch {
		case !begun && it.backward:
			ok = it.iter.Last()
		case !begun:
			ok = it.iter.First()
		case it.backward:
			ok = it.iter.Prev()
		default:
			ok = it.iter.Next()
		}
		return it.iter.Error()
	})
	if err != nil {
		it.err = it.e.met(err)
	}
	return ok && err == nil
}

func (it *diskIterator) Key() []byte   { return it.iter.Key()[1:] }
func (it *diskIterator) Value() []byte { return it.iter.Value() }
func (it *diskIterator) Err() error    { return it.err }

func (it *diskIterator) Close() error {
	if _, open := it.e.open[it]; !open {
		return nil
	}
	delete(it.e.open, it)
	if it.iter == nil {
		return nil
	}
	iter := it.iter
	it.iter = nil
	if err := it.e.protect(iter.Close); err != nil {
		return errors.Join(it.e.met(err))
	}
	return nil
}
