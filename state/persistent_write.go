package state

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// worthwhile says whether a checkpoint goes to the files: frequent commits must not
// become many small writes. It also bounds, in multiples of the write buffer, how
// far behind its changelog a store can be found after a crash.
func (e *persistent) worthwhile() bool {
	buffer := e.disk.options.WriteBuffer
	return !e.marked || e.size >= buffer/2 || e.churn >= 2*buffer
}

func (e *persistent) Checkpoint(c Checkpoint) error {
	if err := e.failure(); err != nil {
		return err
	}
	e.last.Offset, e.last.Note = c.Offset, append(e.last.Note[:0], c.Note...)
	e.clean = true
	if e.load != nil {
		if e.loadFull(1) {
			return e.spill()
		}
		return nil
	}
	if !e.worthwhile() {
		return nil
	}
	if err := e.write(&e.last); err != nil || e.unflushed < 4*e.disk.options.WriteBuffer {
		return err
	}
	e.unflushed = 0
	return e.await(func() error { _, err := e.db.AsyncFlush(); return err })
}

// write moves what is pending to the files, which then belong to c, or to no
// checkpoint where that is nil.
func (e *persistent) write(c *Checkpoint) error {
	batch := e.db.NewBatchWithSize(e.size + 64)
	if err := e.fill(batch, c); err != nil {
		return errors.Join(err, batch.Close())
	}
	if err := e.apply(batch); err != nil {
		return err
	}
	e.recent, e.pending = e.pending, newSorted[struct{}]()
	e.unflushed += e.churn
	e.size, e.churn, e.dropBefore, e.marked = 0, 0, e.dropBefore[:0], c != nil
	if c != nil {
		e.stored = c.Offset
	}
	return nil
}

func (e *persistent) fill(batch *pebble.Batch, c *Checkpoint) error {
	if len(e.dropBefore) > 0 {
		if err := batch.DeleteRange([]byte{dataPrefix}, e.fileKey(e.dropBefore), nil); err != nil {
			return err
		}
	}
	it := e.pending.scan(nil, nil, Forward)
	defer it.Close()
	for it.Next() {
		var err error
		if key := e.fileKey(it.Key()); it.Value() == nil {
			err = batch.Delete(key, nil)
		} else {
			err = batch.Set(key, it.Value(), nil)
		}
		if err != nil {
			return err
		}
	}
	if c == nil {
		return batch.Delete(checkpointKey, nil)
	}
	e.value = append(binary.BigEndian.AppendUint64(e.value[:0], uint64(c.Offset)), c.Note...)
	return batch.Set(checkpointKey, e.value, nil)
}

// apply commits a batch.
func (e *persistent) apply(batch *pebble.Batch) error {
	return e.await(func() error { return errors.Join(e.db.Apply(batch, pebble.NoSync), batch.Close()) })
}

// await runs a call that may have to wait for the files, which would be for ever
// where they can't be written: hence the goroutine, which ends with the wait.
func (e *persistent) await(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- e.protect(f) }()
	select {
	case err := <-done:
		if err != nil {
			e.fail(err)
		}
	case <-e.failed.happened:
		select {
		case <-done:
		case <-time.After(closePatience):
			e.failed.abandoned.Store(true)
		}
	}
	return e.failure()
}

// protect runs a call of pebble's.
func (e *persistent) protect(f func() error) (err error) {
	defer e.rescue(&err)
	return diskError(e.dir, f())
}

// closePatience is how long the end of an engine that has failed may take.
const closePatience = time.Second

func (e *persistent) Close() error {
	errs := []error{leaked(len(e.open))}
	for it := range e.open {
		errs = append(errs, it.Close())
	}
	if e.failure() == nil && e.clean {
		errs = append(errs, e.endLoad())
	}
	if e.failure() == nil && e.clean && (e.size > 0 || len(e.dropBefore) > 0 || e.last.Offset != e.stored) {
		errs = append(errs, e.write(&e.last))
	}
	if e.failure() == nil {
		e.await(e.db.Flush)
	}
	if err := e.failure(); err != nil {
		e.abandon()
		errs = append(errs, err)
	} else {
		errs = append(errs, e.await(e.db.Close))
	}
	return errors.Join(append(errs, e.release())...)
}

// abandon ends pebble after a failure. Where it is stuck, it is left behind, with
// goroutines that wait until the process ends.
func (e *persistent) abandon() {
	if e.failed.abandoned.Load() {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.protect(e.db.Close) // what it says is known already
	}()
	select {
	case <-done:
	case <-time.After(closePatience):
		e.failed.abandoned.Store(true)
	}
}

func (e *persistent) release() error {
	var errs []error
	if e.load != nil {
		e.load = nil
		e.disk.loading.Add(-1)
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
		e.lock = nil
	}
	if e.ownDisk {
		errs = append(errs, e.disk.Close())
		e.ownDisk = false
	}
	return errors.Join(errs...)
}
