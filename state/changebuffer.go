package state

import (
	"errors"
	"slices"

	"github.com/tidwall/btree"

	"github.com/odradek-go/odradek/internal/javahash"
	"github.com/odradek-go/odradek/serde"
)

// ChangeBuffer holds back changes of a table and gives them out in the order of
// times that they were given: the store of a suppression (KIP-328), Java's
// InMemoryTimeOrderedKeyValueChangeBuffer.
//
// Of each key there is one change, the latest, at the time of the first that was
// put. All is in memory. What has changed is logged when the buffer is flushed:
// see bufferedvalue.go for the encoding.
type ChangeBuffer[K, V any] struct {
	name   string
	keys   serde.Serde[K]
	values serde.Serde[V]

	headers bool // values before have their headers

	open bool
	log  Changelog
	key  []byte // reused

	held  map[string]*bufferedChange
	order *btree.BTreeG[*bufferedChange]
	size  int64

	dirty   []string // keys that were changed since the last flush, in the order of the first change
	isDirty map[string]bool
	table   javahash.Table // in which Java has them
}

// bufferedChange is what is held back of one key. Values are encodings, nil where
// there is none.
type bufferedChange struct {
	time int64
	key  string

	// prior is what the value was before the first of the changes, old before
	// the last.
	prior, old, new []byte

	// priorOrigin and oldOrigin are where those two came from, in a buffer with
	// headers: see appendOrigin.
	priorOrigin, oldOrigin []byte

	from RecordContext
}

// NewChangeBuffer returns a buffer, not yet open.
func NewChangeBuffer[K, V any](name string, keys serde.Serde[K], values serde.Serde[V]) *ChangeBuffer[K, V] {
	return &ChangeBuffer[K, V]{name: name, keys: keys, values: values}
}

// EnableHeaders makes the buffer keep the timestamps and the headers of the values
// before, too, as Java does for stores of that format (KIP-1271). It must be called
// before the buffer is opened.
func (s *ChangeBuffer[K, V]) EnableHeaders() { s.headers = true }

// Name implements [Store].
func (s *ChangeBuffer[K, V]) Name() string { return s.name }

// Open implements [Store]. It opens the buffer empty.
func (s *ChangeBuffer[K, V]) Open(ctx OpenContext) error {
	if s.open {
		return s.fail("open", errors.New("it is open"))
	}
	s.open, s.log, s.size = true, ctx.Changelog, 0
	s.held = make(map[string]*bufferedChange)
	s.order = btree.NewBTreeGOptions(func(a, b *bufferedChange) bool {
		return a.time < b.time || a.time == b.time && a.key < b.key
	}, btree.Options{NoLocks: true})
	s.dirty, s.isDirty, s.table = nil, make(map[string]bool), 0
	s.key = make([]byte, 0, 64)
	return nil
}

// Dirty implements [Store].
func (s *ChangeBuffer[K, V]) Dirty() bool { return len(s.dirty) > 0 }

// Len is the number of changes that are held back.
func (s *ChangeBuffer[K, V]) Len() int { return len(s.held) }

// Size is how many bytes they take, about, and as Java counts them.
func (s *ChangeBuffer[K, V]) Size() int64 { return s.size }

// Put holds a change back, in the place of an earlier one of its key, whose time
// stays. Timestamp, headers and record of the change don't count, but those that
// from has. The time is in milliseconds.
func (s *ChangeBuffer[K, V]) Put(time int64, c Change[K, V], from RecordContext) error {
	if !s.open {
		return s.fail("put", ErrClosed)
	}
	if err := s.encodeKey(c.Key); err != nil {
		return s.fail("put: the key", err)
	}
	change := &bufferedChange{time: time, key: string(s.key), from: from}
	var err error
	if change.new, err = s.encodeValue(c.New, c.HasNew); err != nil {
		return s.fail("put: the new value", err)
	}
	if change.old, err = s.encodeValue(c.Old, c.HasOld); err != nil {
		return s.fail("put: the old value", err)
	}
	before := s.held[change.key]
	if s.headers && change.old != nil {
		change.oldOrigin = appendOrigin(nil, before.origin())
	}
	change.prior, change.priorOrigin = change.old, change.oldOrigin
	if before != nil {
		change.prior, change.priorOrigin = before.prior, before.priorOrigin
	}
	s.hold(change)
	s.mark(change.key)
	return nil
}

// hold puts a change in its place, or in that of the one of its key that is there.
func (s *ChangeBuffer[K, V]) hold(change *bufferedChange) {
	if before := s.held[change.key]; before != nil {
		change.time = before.time
		s.size -= before.size(s.headers)
	}
	s.size += change.size(s.headers)
	s.held[change.key] = change
	s.order.Set(change)
}

func (s *ChangeBuffer[K, V]) release(change *bufferedChange) {
	s.size -= change.size(s.headers)
	delete(s.held, change.key)
	s.order.Delete(change)
}

func (s *ChangeBuffer[K, V]) mark(key string) {
	if s.log != nil && !s.isDirty[key] {
		s.isDirty[key] = true
		s.dirty = append(s.dirty, key)
	}
}

// MinTime is the time of the first change, in milliseconds; ok is false where there
// is none.
func (s *ChangeBuffer[K, V]) MinTime() (time int64, ok bool) {
	if !s.open {
		return 0, false
	}
	first, ok := s.order.Min()
	if !ok {
		return 0, false
	}
	return first.time, true
}

// First returns the first change by time, and of several by key, and where it came
// from. It stays in the buffer until [ChangeBuffer.DropFirst]. ok is false where
// there is none.
func (s *ChangeBuffer[K, V]) First() (c Change[K, V], from RecordContext, ok bool, err error) {
	if !s.open {
		return c, from, false, s.fail("first", ErrClosed)
	}
	first, ok := s.order.Min()
	if !ok {
		return c, from, false, nil
	}
	if c.Key, err = s.keys.Decode([]byte(first.key)); err != nil {
		return c, from, false, s.fail("first: the key", err)
	}
	if c.New, c.HasNew, err = s.decodeValue(first.new); err != nil {
		return c, from, false, s.fail("first: the new value", err)
	}
	if c.Old, c.HasOld, err = s.decodeValue(first.old); err != nil {
		return c, from, false, s.fail("first: the old value", err)
	}
	c.Timestamp, c.Headers = first.from.Timestamp, first.from.Headers
	return c, first.from, true, nil
}

// DropFirst takes the first change out of the buffer.
func (s *ChangeBuffer[K, V]) DropFirst() {
	if !s.open {
		return
	}
	if first, ok := s.order.Min(); ok {
		s.release(first)
		s.mark(first.key)
	}
}

// Prior returns what the value of k was before all changes of it that are held back:
// the value that those know who get the changes from here. exists is false where
// there was none, held where nothing is held back of k.
func (s *ChangeBuffer[K, V]) Prior(k K) (v V, exists, held bool, err error) {
	if !s.open {
		return v, false, false, s.fail("prior", ErrClosed)
	}
	if err := s.encodeKey(k); err != nil {
		return v, false, false, s.fail("prior: the key", err)
	}
	change := s.held[string(s.key)]
	if change == nil {
		return v, false, false, nil
	}
	if v, exists, err = s.decodeValue(change.prior); err != nil {
		return v, false, false, s.fail("prior: the value", err)
	}
	return v, exists, true, nil
}

// Flush implements [Store].
func (s *ChangeBuffer[K, V]) Flush() error {
	if !s.open {
		return s.fail("flush", ErrClosed)
	}
	javahash.Sort(&s.table, s.dirty, javahash.Bytes)
	for _, key := range s.dirty {
		if err := s.append(key); err != nil {
			return s.fail("flush", err)
		}
	}
	s.dirty = s.dirty[:0]
	clear(s.isDirty)
	return nil
}

// append logs what is held back of a key.
func (s *ChangeBuffer[K, V]) append(key string) error {
	change := s.held[key]
	s.key = append(s.key[:0], key...)
	if change == nil {
		return s.log.Append(s.key, nil, NoTimestamp, nil)
	}
	return s.log.Append(s.key, change.append(nil), NoTimestamp, change.headers(s.headers))
}

// Restore implements [Store], for a record that has the headers of a buffer's
// changelog.
func (s *ChangeBuffer[K, V]) Restore(key, value []byte, timestamp int64) error {
	return s.RestoreHeaders(key, value, timestamp, bufferHeaders)
}

// RestoreHeaders implements [HeaderRestorer].
func (s *ChangeBuffer[K, V]) RestoreHeaders(key, value []byte, _ int64, headers []Header) error {
	if !s.open {
		return s.fail("restore", ErrClosed)
	}
	var change *bufferedChange
	if value != nil {
		err := checkBufferVersion(headers)
		if err == nil {
			change, err = decodeBufferedChange(string(key), slices.Clone(value))
		}
		if err == nil && s.headers {
			change.setOrigins(headers)
		}
		if err != nil {
			return s.fail("restore", err)
		}
	}
	// The record has all of what it logs, its time too: what is there already may
	// have been given out before it was put.
	if before := s.held[string(key)]; before != nil {
		s.release(before)
	}
	if change != nil {
		s.hold(change)
	}
	return nil
}

// Checkpoint implements [Store].
func (s *ChangeBuffer[K, V]) Checkpoint(int64) error { return nil }

// Checkpointed implements [Store].
func (s *ChangeBuffer[K, V]) Checkpointed() (offset int64, ok bool) { return 0, false }

// Close implements [Store].
func (s *ChangeBuffer[K, V]) Close() error {
	s.open, s.log = false, nil
	s.held, s.order, s.size, s.dirty, s.isDirty = nil, nil, 0, nil, nil
	return nil
}

func (s *ChangeBuffer[K, V]) encodeKey(k K) error {
	key, err := s.keys.Append(s.key[:0], k)
	if err == nil && key == nil {
		err = ErrNullKey
	}
	if err == nil {
		s.key = key
	}
	return err
}

// encodeValue encodes a value into bytes of its own.
func (s *ChangeBuffer[K, V]) encodeValue(v V, ok bool) ([]byte, error) {
	if !ok {
		return nil, nil
	}
	return s.values.Append([]byte{}, v)
}

func (s *ChangeBuffer[K, V]) decodeValue(raw []byte) (v V, ok bool, err error) {
	if raw == nil {
		return v, false, nil
	}
	v, err = s.values.Decode(raw)
	return v, err == nil, err
}

func (s *ChangeBuffer[K, V]) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Store: s.name, Op: op, Err: err}
}
