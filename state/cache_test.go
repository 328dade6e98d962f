package state_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// flushed notes what leaves the cache of a store of counts.
type flushed struct {
	*state.TimestampedKeyValue[string, int64]
	changes []string
	record  string
	log     *changelog
}

func newFlushed(t *testing.T, cache *state.Cache, wantOld bool) *flushed {
	f := &flushed{TimestampedKeyValue: state.NewTimestampedKeyValue("s", serde.String, serde.Int64, state.Memory), log: &changelog{}}
	f.EnableCache()
	f.OnFlush(wantOld, func(c state.Change[string, int64]) error {
		text := c.Key + ":"
		if c.HasOld {
			text += fmt.Sprintf(" %d@%d", c.Old, c.OldTimestamp)
		}
		if text += " ->"; c.HasNew {
			text += fmt.Sprintf(" %d", c.New)
		}
		f.changes = append(f.changes, text+fmt.Sprintf(" @%d of %v", c.Timestamp, c.Record))
		return nil
	})
	must(t, f.Open(state.OpenContext{Changelog: f.log, Cache: cache, Record: func() any { return f.record }}))
	return f
}

func (f *flushed) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(f.changes, want) {
		t.Errorf("flushed %q, want %q", f.changes, want)
	}
	if len(f.log.records) != len(want) {
		t.Errorf("logged %+v for %q", f.log.records, want)
	}
	f.changes, f.log.records = nil, nil
}

func (f *flushed) put(t *testing.T, record, key string, count, timestamp int64) {
	t.Helper()
	f.record = record
	must(t, f.Put(key, count, timestamp))
}

func TestCacheFlush(t *testing.T) {
	cache := state.NewCache(1 << 20)
	f := newFlushed(t, cache, true)
	f.put(t, "r1", "a", 1, 10)
	f.put(t, "r2", "b", 1, 11)
	f.put(t, "r3", "a", 2, 12) // changes go in the order of the latest
	f.put(t, "r4", "c", 1, 13)
	must(t, f.Delete("c", 14)) // came and went
	if v, ts, ok, err := f.Get("a"); v != 2 || ts != 12 || !ok || err != nil {
		t.Errorf("a is %d at %d, %v, %v", v, ts, ok, err)
	}
	if n, err := f.Len(); n != 2 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
	f.expect(t)
	if err := f.Checkpoint(1); err == nil {
		t.Error("a checkpoint was taken with changes in the cache")
	}
	must(t, f.Flush())
	f.expect(t, "b: -> 1 @11 of r2", "a: -> 2 @12 of r3")
	must(t, f.Checkpoint(1))
	must(t, f.Flush())
	f.expect(t)

	f.record = "r5"
	must(t, f.Delete("b", 20))
	f.put(t, "r6", "a", 3, 21)
	if _, _, ok, err := f.Get("b"); ok || err != nil {
		t.Errorf("b was not deleted: %v", err)
	}
	if n, err := f.Len(); n != 1 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
	must(t, f.Flush())
	f.expect(t, "b: 1@11 -> @20 of r5", "a: 2@12 -> 3 @21 of r6")
	must(t, f.Close())
	if cache.Size() != 0 {
		t.Errorf("%d bytes are left", cache.Size())
	}

	f = newFlushed(t, cache, false)
	f.put(t, "r1", "a", 1, 1)
	must(t, f.Flush())
	f.put(t, "r2", "a", 2, 2)
	must(t, f.Flush())
	f.expect(t, "a: -> 1 @1 of r1", "a: -> 2 @2 of r2")
	must(t, f.Close())
}

// TestCacheLimit checks that stores share the limit, that the one that writes
// gives way, and that a change that has to leave takes the others with it.
func TestCacheLimit(t *testing.T) {
	cache := state.NewCache(1000) // four entries
	a, b := newFlushed(t, cache, true), newFlushed(t, cache, true)
	a.put(t, "r", "x", 1, 1)
	b.put(t, "r", "y1", 1, 1)
	b.put(t, "r", "y2", 2, 1)
	b.put(t, "r", "y3", 3, 1)
	a.expect(t)
	b.expect(t)
	b.put(t, "r", "y4", 4, 1)
	a.expect(t)
	b.expect(t, "y1: -> 1 @1 of r", "y2: -> 2 @1 of r", "y3: -> 3 @1 of r", "y4: -> 4 @1 of r")
	if cache.Size() > 1000 {
		t.Errorf("%d bytes", cache.Size())
	}
	b.put(t, "r", "y5", 5, 1) // a clean entry makes room
	b.expect(t)
	if v, _, ok, err := b.Get("y1"); v != 1 || !ok || err != nil {
		t.Errorf("y1 is %d, %v, %v", v, ok, err)
	}
	must(t, errors.Join(a.Close(), b.Close()))

	none := newFlushed(t, state.NewCache(0), true)
	none.put(t, "r", "x", 1, 1)
	none.put(t, "r", "x", 2, 2)
	none.expect(t, "x: -> 1 @1 of r", "x: 1@1 -> 2 @2 of r")
	must(t, none.Close())
}

// TestCacheReentrant has the listener change the store that is being flushed.
func TestCacheReentrant(t *testing.T) {
	for _, limit := range []int64{0, 600, 1 << 20} {
		s := state.NewKeyValue("s", serde.String, serde.Int64, state.Memory)
		s.EnableCache()
		s.OnFlush(false, func(c state.Change[string, int64]) error {
			if c.New > 0 {
				return errors.Join(s.Put(c.Key, c.New-1, 1), s.Put("b", c.New-1, 1))
			}
			return nil
		})
		must(t, s.Open(state.OpenContext{Cache: state.NewCache(limit)}))
		must(t, s.Put("a", 5, 1))
		must(t, s.Flush())
		must(t, s.Checkpoint(1)) // nothing is left
		for _, k := range []string{"a", "b"} {
			if v, ok, err := s.Get(k); v != 0 || !ok || err != nil {
				t.Errorf("limit %d: %s is %d, %v, %v", limit, k, v, ok, err)
			}
		}
		must(t, s.Close())
	}
}

// TestCachedChangelog is what Java Kafka Streams 4.4.0 logged for sessions of a
// cached store, flushed after each record.
func TestCachedChangelog(t *testing.T) {
	log := &changelog{}
	s := state.NewSession("s", serde.String, serde.Int64, 1e9, state.Memory)
	s.EnableCache()
	s.OnFlush(true, func(state.Change[serde.Windowed[string], int64]) error { return nil })
	must(t, s.Open(state.OpenContext{Changelog: log, Cache: state.NewCache(1 << 20)}))
	w := func(start, end int64) serde.Windowed[string] {
		return serde.Windowed[string]{Key: "a", Start: start, End: end}
	}
	merge := func(from, to serde.Windowed[string], count, timestamp int64) {
		must(t, s.Remove(from, timestamp))
		must(t, s.Put(to, count, timestamp))
	}
	merge(w(1, 1), w(1, 1), 1, 1)
	merge(w(1, 1), w(1, 1), 2, 1)
	merge(w(1, 1), w(1, 1), 3, 1)
	must(t, s.Flush())
	merge(w(1, 1), w(1, 9), 4, 9)
	merge(w(1, 9), w(1, 9), 5, 9)
	must(t, s.Flush())
	suffix := func(end string) string {
		return "a\x00\x00\x00\x00\x00\x00\x00" + end + "\x00\x00\x00\x00\x00\x00\x00\x01"
	}
	want := []logged{
		{key: suffix("\x01"), value: "\x00\x00\x00\x00\x00\x00\x00\x03", timestamp: 1},
		{key: suffix("\x01"), tombstone: true, timestamp: 9},
		{key: suffix("\x09"), value: "\x00\x00\x00\x00\x00\x00\x00\x05", timestamp: 9},
	}
	if !slices.Equal(log.records, want) {
		t.Errorf("logged %+v, in Java %+v", log.records, want)
	}
	must(t, s.Close())
}

// TestCacheCleared: a store that has been written to shows what it is restored to.
func TestCacheCleared(t *testing.T) {
	for name, open := range map[string]func() (s state.CacheClearer, put func(int64) error, get func() (int64, error), view func(*state.View) ([]byte, error)){
		"key-value": func() (state.CacheClearer, func(int64) error, func() (int64, error), func(*state.View) ([]byte, error)) {
			s := state.NewKeyValue("s", serde.String, serde.Int64, state.Memory)
			return s, func(n int64) error { return s.Put("k", n, n) },
				func() (n int64, err error) { n, _, err = s.Get("k"); return n, err },
				func(v *state.View) (b []byte, err error) {
					b, _, err = v.Store.(*state.KeyValue[[]byte, []byte]).Get([]byte("k"))
					return b, err
				}
		},
		"timestamped": func() (state.CacheClearer, func(int64) error, func() (int64, error), func(*state.View) ([]byte, error)) {
			s := state.NewTimestampedKeyValue("s", serde.String, serde.Int64, state.Memory)
			return s, func(n int64) error { return s.Put("k", n, n) },
				func() (n int64, err error) { n, _, _, err = s.Get("k"); return n, err },
				func(v *state.View) (b []byte, err error) {
					b, _, _, err = v.Store.(*state.TimestampedKeyValue[[]byte, []byte]).Get([]byte("k"))
					return b, err
				}
		},
		"window": func() (state.CacheClearer, func(int64) error, func() (int64, error), func(*state.View) ([]byte, error)) {
			s := state.NewWindow("s", serde.String, serde.Int64, state.WindowOptions{Size: time.Second, Retention: time.Hour}, state.Memory)
			return s, func(n int64) error { return s.Put("k", 1000, n, n) },
				func() (n int64, err error) { n, _, _, err = s.Get("k", 1000); return n, err },
				func(v *state.View) (b []byte, err error) {
					b, _, _, err = v.Store.(*state.Window[[]byte, []byte]).Get([]byte("k"), 1000)
					return b, err
				}
		},
		"session": func() (state.CacheClearer, func(int64) error, func() (int64, error), func(*state.View) ([]byte, error)) {
			s := state.NewSession("s", serde.String, serde.Int64, time.Hour, state.Memory)
			at := serde.Windowed[string]{Key: "k", Start: 1000, End: 2000}
			return s, func(n int64) error { return s.Put(at, n, n) },
				func() (n int64, err error) { n, _, err = s.Get(at); return n, err },
				func(v *state.View) (b []byte, err error) {
					b, _, err = v.Store.(*state.Session[[]byte, []byte]).Get(serde.Windowed[[]byte]{Key: []byte("k"), Start: 1000, End: 2000})
					return b, err
				}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, put, get, view := open()
			s.(interface{ EnableCache() }).EnableCache()
			cache, log := state.NewCache(1<<20), &changelog{}
			must(t, s.Open(state.OpenContext{Cache: cache, Changelog: log}))
			defer func() { must(t, s.Close()) }()
			var gate state.Gate
			views := state.NewViews(s.(state.Viewable), &gate)
			must(t, put(1))
			if err := s.ClearCache(); err == nil {
				t.Error("a change that is not flushed is forgotten")
			}
			must(t, s.Flush())
			must(t, s.ClearCache())
			if cache.Size() != 0 {
				t.Errorf("%d bytes are left", cache.Size())
			}
			two, err := serde.Int64.Append(nil, 2)
			must(t, err)
			must(t, s.Restore([]byte(log.records[0].key), two, 2000))
			v := begin(t, views)
			seen, err := view(v)
			if n, _ := serde.Int64.Decode(seen); err != nil || n != 2 {
				t.Errorf("a view shows %d, %v, and not what was restored", n, err)
			}
			v.Close()
			if n, err := get(); err != nil || n != 2 {
				t.Errorf("it has %d, %v, and not what was restored", n, err)
			}
			must(t, put(3))
			if n, err := get(); err != nil || n != 3 {
				t.Errorf("it has %d, %v after a change", n, err)
			}
			must(t, s.Flush())
		})
	}
}
