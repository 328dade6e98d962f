package state

import (
	"bytes"
	"cmp"
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
	blocks  [][]byte // the keys and values; one slice that grows would take twice the memory
	now     int      // the block that is being filled
	size    int      // of what is in all
	entries []loadEntry
}

type loadEntry struct {
	head  uint64 // the key's first bytes, which tell most keys apart
	block int32  // that the key is in
	at    int32  // of it in there
	key   int32  // its length
	value int32  // that of the value, which follows; negative: a tombstone
}

const (
	// loadEntrySize is what an entry takes beside its bytes.
	loadEntrySize = 24

	loadBlock = 1 << 20
)

// add notes a change.
func (l *load) add(key, value []byte) {
	need := max(1, len(key)+len(value)) // no two entries are at one place
	for l.now < len(l.blocks) && len(l.blocks[l.now])+need > cap(l.blocks[l.now]) {
		l.now++
	}
	if l.now == len(l.blocks) {
		l.blocks = append(l.blocks, make([]byte, 0, max(loadBlock, need)))
	}
	block := l.blocks[l.now]
	entry := loadEntry{block: int32(l.now), at: int32(len(block)), key: int32(len(key)), value: int32(len(value))}
	if value == nil {
		entry.value = -1
	}
	var head [8]byte
	copy(head[:], key)
	entry.head = binary.BigEndian.Uint64(head[:])
	copy(block[len(block):len(block)+need], key)
	copy(block[len(block)+len(key):len(block)+need], value)
	l.blocks[l.now] = block[:len(block)+need]
	l.size += need
	l.entries = append(l.entries, entry)
}

// clear forgets what was written.
func (l *load) clear() {
	for i := range l.blocks {
		l.blocks[i] = l.blocks[i][:0]
	}
	l.now, l.size, l.entries = 0, 0, l.entries[:0]
}

func (l *load) key(e loadEntry) []byte { return l.blocks[e.block][e.at : e.at+e.key] }

// value is nil for a tombstone.
func (l *load) value(e loadEntry) []byte {
	if e.value < 0 {
		return nil
	}
	at := e.at + e.key
	return l.blocks[e.block][at : at+e.value : at+e.value]
}

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
	e.load.add(key, value)
	e.clean = false
	if e.loadFull(2) { // no checkpoint comes
		return e.spill()
	}
	return nil
}

// loadFull says whether so many times the memory is used that there is for a load.
func (e *persistent) loadFull(times int) bool {
	room := e.disk.options.LoadBuffer / int(max(1, e.disk.loading.Load()))
	return e.load.size+loadEntrySize*len(e.load.entries) >= times*room
}

// spill writes what was loaded to the files.
func (e *persistent) spill() error {
	if len(e.load.entries) == 0 {
		return nil
	}
	c := e.checkpointOrNil()
	err := e.await(func() error { return e.ingest(c) })
	e.load.clear()
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
		key := l.key(entry)
		if i > 0 && bytes.Equal(key, last) {
			continue // it was overwritten
		}
		last = key
		if value := l.value(entry); value == nil {
			err = w.Delete(e.fileKey(key))
		} else {
			err = w.Set(e.fileKey(key), value)
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
	return cmp.Or(bytes.Compare(l.key(a), l.key(b)), cmp.Compare(b.block, a.block), cmp.Compare(b.at, a.at))
}
