package state

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// Persistent opens an engine that keeps its data in files, in the directory of
// the context, with pebble.
//
// What is written is collected in memory and goes to the files at checkpoints,
// when there is enough of it, in one batch with the checkpoint itself. So a crash
// leaves the store at a checkpoint, and a key that changes often is written once.
// Where that much is written between two checkpoints that memory must be freed,
// the files are marked as belonging to none: after a crash the engine opens empty.
func Persistent(ctx OpenContext) (Engine, error) {
	disk, own := ctx.Disk, false
	if disk == nil {
		disk, own = NewDisk(DiskOptions{}), true
	}
	if disk.options.InMemory {
		return Memory(ctx)
	}
	e := &persistent{dir: ctx.Dir, disk: disk, ownDisk: own, pending: newSorted[struct{}](), recent: newSorted[struct{}](), open: make(map[*diskIterator]struct{})}
	e.failed.happened = make(chan struct{})
	if err := e.start(ctx.Fresh); err != nil {
		e.fail(err)
		if e.db != nil {
			e.abandon()
		}
		return nil, errors.Join(e.failure(), e.release())
	}
	return e, nil
}

// persistent is an engine of two layers: what is pending, in memory, over what is
// in the files.
//
// In the files a key has one byte before it: dataPrefix, or metaPrefix for the
// engine's own.
type persistent struct {
	dir     string
	disk    *Disk
	ownDisk bool
	lock    io.Closer
	db      *pebble.DB
	options *pebble.Options
	load    *load // nil: not loaded in bulk

	pending    *sorted[struct{}] // nil values delete
	size       int               // of pending, in bytes
	churn      int               // likewise, with what was overwritten
	unflushed  int               // the churn that a crash would undo in the files
	recent     *sorted[struct{}] // what was pending before, to be read from memory
	dropBefore []byte            // the keys before are to be deleted
	last       Checkpoint        // what pending belongs to, if clean
	clean      bool              // nothing was written since last
	marked     bool              // the files belong to a checkpoint
	stored     int64             // that checkpoint's offset

	found struct {
		Checkpoint
		ok bool
	}
	failed struct {
		err      atomic.Pointer[error]
		happened chan struct{} // closed then

		// abandoned says that pebble could not be ended, as after a call of
		// its that never returned.
		abandoned atomic.Bool
	}
	open  map[*diskIterator]struct{}
	key   []byte // reused
	value []byte
}

const (
	metaPrefix = 0
	dataPrefix = 1
)

const lockFile = "LOCK"

var checkpointKey = []byte{metaPrefix, 'c'}

func (e *persistent) start(fresh bool) (err error) {
	defer e.rescue(&err)
	fs := e.disk.options.FS
	if err := fs.MkdirAll(e.dir, 0o755); err != nil {
		return err
	}
	if e.lock, err = fs.Lock(fs.PathJoin(e.dir, lockFile)); err != nil {
		if opening := (*os.PathError)(nil); errors.As(err, &opening) {
			return err
		}
		return &DiskError{Dir: e.dir, Kind: ErrLocked, Err: err}
	}
	if fresh {
		if err := e.wipe(); err != nil {
			return err
		}
	}
	e.options = e.disk.pebbleOptions(e.dir, files{fs, &e.failed.err, &e.failed.abandoned}, e.fail)
	db, err := pebble.Open(e.dir, e.options)
	e.failed.abandoned.Store(err != nil)
	if system := syscall.Errno(0); err != nil && !errors.As(err, &system) {
		return &DiskError{Dir: e.dir, Kind: ErrCorrupt, Err: err}
	} else if err != nil {
		return err
	}
	e.db = db
	value, closer, err := e.db.Get(checkpointKey)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return e.clear()
	case err != nil:
		return err
	}
	defer closer.Close()
	if len(value) < 8 {
		return &DiskError{Dir: e.dir, Kind: ErrCorrupt, Err: io.ErrUnexpectedEOF}
	}
	e.found.Offset = int64(binary.BigEndian.Uint64(value))
	e.found.Note = append([]byte(nil), value[8:]...)
	e.found.ok, e.marked, e.stored = true, true, e.found.Offset
	return nil
}

// wipe removes the files, all but the lock.
func (e *persistent) wipe() error {
	fs := e.disk.options.FS
	names, err := fs.List(e.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != lockFile {
			if err := fs.RemoveAll(fs.PathJoin(e.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear empties files that belong to no checkpoint.
func (e *persistent) clear() error {
	it, err := e.db.NewIter(bounds(nil, nil))
	if err != nil {
		return err
	}
	empty := !it.First()
	if err := it.Close(); err != nil || empty {
		return err
	}
	return e.db.DeleteRange([]byte{dataPrefix}, []byte{dataPrefix + 1}, pebble.NoSync)
}

func (e *persistent) Get(key []byte) (_ []byte, err error) {
	if err := e.endLoad(); err != nil {
		return nil, err
	}
	if it := e.pending.get(key); it != nil {
		return it.value, nil
	}
	if it := e.recent.get(key); it != nil {
		return it.value, nil
	}
	if err := e.failure(); err != nil {
		return nil, err
	}
	defer e.rescue(&err)
	value, closer, err := e.db.Get(e.fileKey(key))
	switch {
	case err == pebble.ErrNotFound:
		return nil, nil
	case err != nil:
		return nil, e.met(err)
	}
	e.value = append(e.value[:0], value...)
	if err := closer.Close(); err != nil {
		return nil, e.met(err)
	}
	if e.value == nil { // an empty value is one
		e.value = []byte{}
	}
	return e.value, nil
}

// met is the error of a read. Damage ends the engine.
func (e *persistent) met(err error) error {
	err = diskError(e.dir, err)
	if errors.Is(err, ErrCorrupt) {
		e.fail(err)
	}
	return err
}

func (e *persistent) fileKey(key []byte) []byte {
	e.key = append(append(e.key[:0], dataPrefix), key...)
	return e.key
}

// itemOverhead is about what an entry costs in memory beside its bytes.
const itemOverhead = 100

func (e *persistent) Put(key, value []byte) error {
	if err := e.failure(); err != nil {
		return err
	}
	if e.load != nil {
		return e.loadPut(key, value)
	}
	e.clean = false
	if it := e.pending.get(key); it != nil {
		e.size -= len(it.value)
	} else {
		e.size += len(key) + itemOverhead
	}
	e.churn += len(key) + len(value) + itemOverhead
	e.pending.put(key, value)
	if e.size += len(value); e.size >= 2*e.disk.options.WriteBuffer {
		return e.write(nil)
	}
	return nil
}

func (e *persistent) DropBefore(key []byte) error {
	if err := e.endLoad(); err != nil {
		return err
	}
	e.clean = false
	e.dropBefore = append(e.dropBefore[:0], key...)
	e.churn += itemOverhead
	e.pending.removeBefore(key, func(it *item[struct{}]) { e.size -= len(it.key) + len(it.value) + itemOverhead })
	return e.failure()
}

// Len counts what is pending and estimates what is in the files.
func (e *persistent) Len() (n int, err error) {
	if err := errors.Join(e.endLoad(), e.failure()); err != nil {
		return 0, err
	}
	defer e.rescue(&err)
	levels, err := e.db.SSTables(pebble.WithProperties())
	if err != nil {
		return 0, e.met(err)
	}
	files := 0
	for _, level := range levels {
		for _, t := range level {
			files++
			n += int(t.Properties.NumEntries) - 2*int(t.Properties.NumDeletions)
		}
	}
	if files > 0 {
		return max(n, 0) + len(e.pending.items), nil
	}
	it := e.Scan(nil, nil, Forward)
	defer it.Close()
	for n = 0; it.Next(); n++ {
	}
	return n, it.Err()
}

func (e *persistent) Checkpointed() (Checkpoint, bool) { return e.found.Checkpoint, e.found.ok }
