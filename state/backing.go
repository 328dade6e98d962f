package state

import (
	"errors"
	"slices"
)

// backing is what a typed store stands on: an engine, a changelog and, where
// caching is on, a part of the thread's cache. It knows keys and values as the
// engine has them; their first bytes may be the engine's alone.
type backing struct {
	name     string
	make     OpenEngine
	cutKey   int  // how many bytes of a key don't go to the changelog
	cutValue int  // how many bytes of a value don't
	headers  bool // values have their headers before them, which don't either
	caching  bool
	windows  *segments

	ctx       OpenContext
	engine    Engine
	section   *section // nil: not caching
	iterators int      // that are open

	onFlush func(key, value, old []byte, it *cached) error
	wantOld bool
	old     []byte // reused
	keys    []byte // reused
}

// Name implements [Store].
func (b *backing) Name() string { return b.name }

// Open implements [Store].
func (b *backing) Open(ctx OpenContext) (err error) {
	if b.engine != nil {
		return b.fail("open", errors.New("it is open"))
	}
	if b.engine, err = b.make(ctx); err != nil {
		b.engine = nil
		return b.fail("open", err)
	}
	if found, ok := b.engine.Checkpointed(); !b.recall(found.Note) && ok {
		err := b.engine.Close()
		b.engine = nil
		if ctx.Fresh || err != nil {
			return b.fail("open", err)
		}
		ctx.Fresh = true
		return b.Open(ctx)
	}
	b.ctx = ctx
	if b.caching && ctx.Cache != nil {
		b.section = newSection(ctx.Cache, b.writeBack)
	}
	return nil
}

// Flush implements [Store].
func (b *backing) Flush() error {
	if b.engine == nil {
		return b.fail("flush", ErrClosed)
	}
	if b.section != nil {
		if err := b.section.flushAll(); err != nil {
			return b.fail("flush", err)
		}
	}
	if b.ctx.Changelog == nil { // there is nothing that it must agree with
		return b.Checkpoint(0)
	}
	return nil
}

// Dirty implements [Store].
func (b *backing) Dirty() bool { return b.section != nil && b.section.first != nil }

// ClearCache implements [CacheClearer].
func (b *backing) ClearCache() error {
	if b.Dirty() {
		return b.fail("clear the cache", errUnflushed)
	}
	if b.section != nil {
		b.section.close()
	}
	return nil
}

var errUnflushed = errors.New("there are changes in the cache: it must be flushed first")

// Checkpoint implements [Store].
func (b *backing) Checkpoint(offset int64) error {
	if b.engine == nil {
		return b.fail("checkpoint", ErrClosed)
	}
	if b.Dirty() {
		return b.fail("checkpoint", errUnflushed)
	}
	return b.fail("checkpoint", b.engine.Checkpoint(Checkpoint{Offset: offset, Note: b.note()}))
}

// Checkpointed implements [Store].
func (b *backing) Checkpointed() (offset int64, ok bool) {
	if b.engine == nil {
		return 0, false
	}
	c, ok := b.engine.Checkpointed()
	return c.Offset, ok
}

// Close implements [Store].
func (b *backing) Close() error {
	if b.engine == nil {
		return nil
	}
	if b.section != nil {
		b.section.close()
	}
	err := b.engine.Close()
	if b.iterators > 0 && !errors.Is(err, ErrIteratorLeak) {
		err = errors.Join(leaked(b.iterators), err)
	}
	b.engine, b.section, b.iterators, b.ctx = nil, nil, 0, OpenContext{}
	return b.fail("close", err)
}

// Cached says whether changes are held back in a cache. Then they are passed on
// by the flush listener; otherwise whoever makes a change passes it on.
func (b *backing) Cached() bool { return b.section != nil }

// Len is the number of entries, in the engine and in the cache; those of a
// persistent store are estimated.
func (b *backing) Len() (int, error) {
	if b.engine == nil {
		return 0, b.fail("len", ErrClosed)
	}
	n, err := b.engine.Len()
	if b.windows != nil && b.windows.indexed {
		n /= 2
	}
	if err == nil && b.section != nil {
		for it := b.section.first; it != nil && err == nil; it = it.extra.next {
			var in []byte
			in, err = b.engine.Get([]byte(it.key))
			switch {
			case in == nil && it.value != nil:
				n++
			case in != nil && it.value == nil:
				n--
			}
		}
	}
	return n, b.fail("len", err)
}

func (b *backing) get(key []byte) ([]byte, error) {
	if b.section != nil {
		if it := b.section.get(key); it != nil {
			return it.value, nil
		}
	}
	if b.windows != nil && b.windows.time(key) <= b.windows.expired() {
		return nil, nil
	}
	return b.engine.Get(key)
}

// put makes a change. A nil value deletes.
func (b *backing) put(key, value []byte, timestamp int64, headers []Header) error {
	if b.section == nil {
		return b.write(key, value, timestamp, headers)
	}
	if b.windows != nil {
		b.windows.cached(key)
	}
	var record any
	if b.ctx.Record != nil {
		record = b.ctx.Record()
	}
	return b.section.put(key, value, timestamp, headers, record)
}

// write makes a change in the engine first: one that the engine refuses must not
// be in the changelog.
func (b *backing) write(key, value []byte, timestamp int64, headers []Header) error {
	if err := b.store(key, value); err != nil {
		return err
	}
	return b.log(key, value, timestamp, headers)
}

// store makes a change in the engine, unless it comes too late.
func (b *backing) store(key, value []byte) error {
	if b.windows != nil {
		live, before := b.windows.admit(key)
		if before != nil {
			if err := b.engine.DropBefore(before); err != nil {
				return err
			}
		}
		if !live {
			return nil
		}
		if b.windows.indexed {
			if err := b.putIndex(key, value); err != nil {
				return err
			}
		}
	}
	return b.engine.Put(key, value)
}

func (b *backing) log(key, value []byte, timestamp int64, headers []Header) error {
	if b.ctx.Changelog == nil {
		return nil
	}
	if value != nil && b.headers {
		var err error
		if _, value, err = cutHeaders(value); err != nil {
			return err
		}
	}
	if value != nil {
		value = value[b.cutValue:]
	}
	return b.ctx.Changelog.Append(key[b.cutKey:], value, timestamp, headers)
}

// writeBack takes a change out of the cache.
func (b *backing) writeBack(it *cachedItem) error {
	b.keys = append(b.keys[:0], it.key...)
	change := it.extra
	it.extra.headers, it.extra.record = nil, nil
	if b.onFlush == nil {
		return b.write(b.keys, it.value, change.timestamp, change.headers)
	}
	var old []byte
	if it.value == nil || b.wantOld {
		found, err := b.engine.Get(b.keys)
		if err != nil {
			return err
		}
		if it.value == nil && found == nil {
			return nil // it came and went within the cache
		}
		if found != nil && b.wantOld {
			b.old = append(b.old[:0], found...)
			old = b.old[:len(found):len(found)]
			if old == nil {
				old = []byte{}
			}
		}
	}
	if err := b.write(b.keys, it.value, change.timestamp, change.headers); err != nil {
		return err
	}
	return b.onFlush(b.keys, it.value, old, &change)
}

// scan walks over what the engine and the cache have.
func (b *backing) scan(from, to []byte, order Order) Iterator {
	it := b.engine.Scan(from, to, order)
	if b.section != nil {
		it = merge(b.section.items.scan(from, to, order), it, order)
	}
	return it
}

func (b *backing) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return b.wrap(op, err) // apart, since it allocates
}

func (b *backing) wrap(op string, err error) error {
	if known := (*Error)(nil); errors.As(err, &known) && known.Store == b.name {
		return err
	}
	return &Error{Store: b.name, Op: op, Err: err}
}

// successor is the first key behind all that begin with prefix, nil for none.
func successor(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := slices.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
