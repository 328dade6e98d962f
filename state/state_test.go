package state_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// TestMemoryModel runs random operations against an engine and a plain map.
func TestMemoryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kv := state.NewMemory()
		model := make(map[string]string)
		key := rapid.SliceOfN(rapid.ByteRange('a', 'd'), 0, 3)
		bound := rapid.OneOf(rapid.Just([]byte(nil)), key)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "value")
				if v == nil {
					v = []byte{}
				}
				if err := kv.Put(k, v); err != nil {
					t.Fatal(err)
				}
				model[string(k)] = string(v)
				clear(v) // the engine must have a copy
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if err := kv.Put(k, nil); err != nil {
					t.Fatal(err)
				}
				delete(model, string(k))
			},
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				got, err := kv.Get(k)
				want, ok := model[string(k)]
				if err != nil || (got != nil) != ok || string(got) != want {
					t.Fatalf("get %q: %q, %v; want %q, %v", k, got, err, want, ok)
				}
			},
			"range": func(t *rapid.T) {
				from, to := bound.Draw(t, "from"), bound.Draw(t, "to")
				var want []string
				for k, v := range model {
					if (from == nil || k >= string(from)) && (to == nil || k <= string(to)) {
						want = append(want, k+"="+v)
					}
				}
				slices.Sort(want)
				if got := entries(t, kv.Range(from, to)); !slices.Equal(got, want) {
					t.Fatalf("range %q to %q: %q, want %q", from, to, got, want)
				}
			},
			"": func(t *rapid.T) {
				if kv.Len() != len(model) {
					t.Fatalf("%d keys, want %d", kv.Len(), len(model))
				}
			},
		})
	})
}

func entries(t *rapid.T, it state.Iterator) []string {
	var got []string
	var keys [][]byte
	for it.Next() {
		got = append(got, string(it.Key())+"="+string(it.Value()))
		keys = append(keys, slices.Clone(it.Key()))
	}
	if it.Next() {
		t.Fatal("an iterator goes on after its end")
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Fatalf("keys out of order: %q", keys)
	}
	slices.Sort(got)
	return got
}

type logged struct {
	key, value string
	tombstone  bool
	timestamp  int64
}

type changelog struct {
	records []logged
	err     error
}

func (c *changelog) Append(key, value []byte, timestamp int64) error {
	c.records = append(c.records, logged{string(key), string(value), value == nil, timestamp})
	return c.err
}

func newCounts() *state.TimestampedKeyValue[string, int64] {
	return state.NewTimestampedKeyValue("counts", serde.String, serde.Int64, state.NewMemory)
}

// TestTimestampedChangelog checks the changelog's encoding, which is the value
// alone with the timestamp as the record's, and that it restores the store.
func TestTimestampedChangelog(t *testing.T) {
	log := &changelog{}
	s := newCounts()
	must(t, s.Open(log))
	must(t, s.Put("a", 1, 100))
	must(t, s.Put("b", 2, 200))
	must(t, s.Put("a", 3, 150))
	must(t, s.Delete("b", 300))

	want := []logged{
		{"a", "\x00\x00\x00\x00\x00\x00\x00\x01", false, 100},
		{"b", "\x00\x00\x00\x00\x00\x00\x00\x02", false, 200},
		{"a", "\x00\x00\x00\x00\x00\x00\x00\x03", false, 150},
		{"b", "", true, 300},
	}
	if !slices.Equal(log.records, want) {
		t.Fatalf("changelog %+v, want %+v", log.records, want)
	}

	again := newCounts()
	quiet := &changelog{}
	must(t, again.Open(quiet))
	for _, r := range log.records {
		value := []byte(r.value)
		if r.tombstone {
			value = nil
		}
		must(t, again.Restore([]byte(r.key), value, r.timestamp))
	}
	if len(quiet.records) > 0 {
		t.Errorf("restoring was logged: %+v", quiet.records)
	}
	for _, s := range []*state.TimestampedKeyValue[string, int64]{s, again} {
		if v, ts, ok, err := s.Get("a"); v != 3 || ts != 150 || !ok || err != nil {
			t.Errorf("a is %d at %d, %v, %v", v, ts, ok, err)
		}
		if _, _, ok, err := s.Get("b"); ok || err != nil {
			t.Errorf("b is there: %v", err)
		}
		if s.Len() != 1 {
			t.Errorf("%d entries", s.Len())
		}
	}
}

func TestTimestampedAll(t *testing.T) {
	s := newCounts()
	must(t, s.Open(nil))
	for i, k := range []string{"c", "a", "b"} {
		must(t, s.Put(k, int64(i), int64(10*i)))
	}
	var got []string
	must(t, s.All(func(k string, v, ts int64) bool {
		if ts != 10*v {
			t.Errorf("%s is %d at %d", k, v, ts)
		}
		got = append(got, k)
		return k != "b"
	}))
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("walked over %q", got)
	}
}

func TestStoreErrors(t *testing.T) {
	s := newCounts()
	_, _, _, getErr := s.Get("a")
	for op, err := range map[string]error{
		"get": getErr, "put": s.Put("a", 1, 1), "delete": s.Delete("a", 1), "flush": s.Flush(),
		"restore": s.Restore([]byte("a"), nil, 1), "all": s.All(func(string, int64, int64) bool { return true }),
	} {
		var se *state.Error
		if !errors.Is(err, state.ErrClosed) || !errors.As(err, &se) || se.Store != "counts" || se.Op != op {
			t.Errorf("%s of a store that is not open: %v", op, err)
		}
	}
	must(t, s.Close())

	full := errors.New("no room")
	must(t, s.Open(&changelog{err: full}))
	if err := s.Put("a", 1, 1); !errors.Is(err, full) {
		t.Errorf("put with a failing changelog: %v", err)
	}

	b := state.NewTimestampedKeyValue("bytes", serde.Bytes, serde.Bytes, state.NewMemory)
	must(t, b.Open(nil))
	if err := b.Put(nil, []byte("x"), 1); err == nil {
		t.Error("a null key was put")
	}
	must(t, b.Put([]byte("k"), []byte("x"), 1))
	must(t, b.Put([]byte("k"), nil, 2)) // a value that is null deletes
	if b.Len() != 0 {
		t.Error("a null value was put")
	}
}

func TestPutAllocatesNothing(t *testing.T) {
	s := newCounts()
	must(t, s.Open(nil))
	n := int64(0)
	if allocs := testing.AllocsPerRun(100, func() {
		n++
		must(t, s.Put("key", n, n))
		if v, _, _, _ := s.Get("key"); v != n {
			t.Fatal("lost a put")
		}
	}); allocs > 0 {
		t.Errorf("%v allocations to overwrite and read a value", allocs)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
