package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// BulkLoader is a store that can be restored faster while nobody reads it.
type BulkLoader interface {
	// BulkLoad says whether much is going to be restored and nothing read. A read
	// ends it.
	BulkLoad(on bool) error
}

// BulkLoad implements [BulkLoader].
func (b *backing) BulkLoad(on bool) error {
	if b.engine == nil {
		return b.fail("bulk load", ErrClosed)
	}
	if e, ok := b.engine.(BulkLoader); ok {
		return b.fail("bulk load", e.BulkLoad(on))
	}
	return nil
}

// load is what an engine collects while it is loaded in bulk: changes in the order
// in which they were made, to be sorted and written to a file of their own. That
// spares the table in memory, and most of the merging of small files.
type load struct {
	data    []byte // the keys and values
	entries []loadEntry
}

type loadEntry struct {
	head  uint64 // the key's first bytes, which tell most keys apart
	at    int    // of the key in data
	key   int32  // its length
	value int32  // that of the value, which follows; negative: a tombstone
}

// loadEntrySize is what an entry takes beside its bytes.
const loadEntrySize = 24

const loadFile = "load.sst"

// BulkLoad implements [BulkLoader].
func (e *persistent) BulkLoad(on bool) error {
	if err := e.failure(); err != nil {
		return err
	}
	if !on {
		return e.endLoad()
	}
	if e.load != nil {
		return nil
	}
	// What is not in the files yet must not be overtaken: a crash would leave a
	// later checkpoint without it.
	if err := e.write(e.checkpointOrNil()); err != nil {
		return err
	}
	if err := e.await(e.db.Flush); err != nil {
		return err
	}
	e.unflushed, e.recent = 0, newSorted[struct{}]()
	e.load = &load{}
	e.disk.loading.Add(1)
	return nil
}

// checkpointOrNil is the checkpoint that all that was written belongs to, if it does.
func (e *persistent) checkpointOrNil() *Checkpoint {
	if e.clean {
		return &e.last
	}
	return nil
}

// endLoad writes what was loaded and goes on as usual.
func (e *persistent) endLoad() error {
	if e.load == nil {
		return nil
	}
	err := e.spill()
	e.load = nil
	e.disk.loading.Add(-1)
	return err
}

func (e *persistent) loadPut(key, value []byte) error {
	l := e.load
	entry := loadEntry{at: len(l.data), key: int32(len(key)), value: int32(len(value))}
	var head [8]byte
	copy(head[:], key)
	entry.head = binary.BigEndian.Uint64(head[:])
	if value == nil {
		entry.value = -1
	}
	l.data = append(append(l.data, key...), value...)
	l.entries = append(l.entries, entry)
	e.clean = false
	if e.loadFull(2) { // no checkpoint comes
		return e.spill()
	}
	return nil
}

// loadFull says whether so many times the memory is used that there is for a load.
func (e *persistent) loadFull(times int) bool {
	room := e.disk.options.LoadBuffer / int(max(1, e.disk.loading.Load()))
	return len(e.load.data)+loadEntrySize*len(e.load.entries) >= times*room
}

// spill writes what was loaded to the files.
func (e *persistent) spill() error {
	if len(e.load.entries) == 0 {
		return nil
	}
	c := e.checkpointOrNil()
	err := e.await(func() error { return e.ingest(c) })
	e.load.data, e.load.entries = e.load.data[:0], e.load.entries[:0]
	if e.marked = c != nil; e.marked {
		e.stored = c.Offset
	}
	return err
}

// ingest sorts what was loaded into a file, along with the checkpoint that it belongs
// to, and makes it one of pebble's.
func (e *persistent) ingest(c *Checkpoint) (err error) {
	fs := e.options.FS
	path := fs.PathJoin(e.dir, loadFile)
	file, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(file), e.options.MakeWriterOptions(0, e.db.TableFormat()))
	if err := errors.Join(e.writeLoad(w, c), w.Close()); err != nil {
		return err
	}
	return e.db.Ingest(context.Background(), []string{path})
}

func (e *persistent) writeLoad(w *sstable.Writer, c *Checkpoint) error {
	var err error
	if c == nil {
		err = w.Delete(checkpointKey)
	} else {
		err = w.Set(checkpointKey, append(binary.BigEndian.AppendUint64(nil, uint64(c.Offset)), c.Note...))
	}
	if err != nil {
		return err
	}
	l := e.load
	slices.SortFunc(l.entries, l.compare)
	var last []byte
	for i, entry := range l.entries {
		key := l.data[entry.at : entry.at+int(entry.key)]
		if i > 0 && bytes.Equal(key, last) {
			continue // it was overwritten
		}
		last = key
		if entry.value < 0 {
			err = w.Delete(e.fileKey(key))
		} else {
			at := entry.at + int(entry.key)
			err = w.Set(e.fileKey(key), l.data[at:at+int(entry.value)])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare orders entries by key, and the latest of a key first.
func (l *load) compare(a, b loadEntry) int {
	switch {
	case a.head < b.head:
		return -1
	case a.head > b.head:
		return 1
	}
	if c := bytes.Compare(l.data[a.at:a.at+int(a.key)], l.data[b.at:b.at+int(b.key)]); c != 0 {
		return c
	}
	return b.at - a.at
}
