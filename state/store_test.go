package state_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

func isErr(err, target error) bool {
	var se *state.Error
	return errors.Is(err, target) && errors.As(err, &se) && se.Store == "s"
}

func TestStoreErrors(t *testing.T) {
	s := state.NewTimestampedKeyValue("s", serde.String, serde.Int64, state.Memory)
	_, _, _, getErr := s.Get("a")
	_, lenErr := s.Len()
	for op, err := range map[string]error{
		"get": getErr, "put": s.Put("a", 1, 1), "delete": s.Delete("a", 1), "flush": s.Flush(), "len": lenErr,
		"restore": s.Restore([]byte("a"), nil, 1), "checkpoint": s.Checkpoint(1),
		"range": s.All(func(string, int64, int64) bool { return true }),
	} {
		var se *state.Error
		if !isErr(err, state.ErrClosed) || !errors.As(err, &se) || se.Op != op {
			t.Errorf("%s of a store that is not open: %v", op, err)
		}
	}
	must(t, s.Close())

	full := errors.New("no room")
	must(t, s.Open(state.OpenContext{Changelog: &changelog{err: full}}))
	if err := s.Put("a", 1, 1); !errors.Is(err, full) {
		t.Errorf("put with a failing changelog: %v", err)
	}
	if err := s.Open(state.OpenContext{}); err == nil {
		t.Error("opened twice")
	}

	b := state.NewKeyValue("s", serde.Bytes, serde.Bytes, state.Memory)
	must(t, b.Open(state.OpenContext{}))
	if err := b.Put(nil, []byte("x"), 1); !isErr(err, state.ErrNullKey) {
		t.Errorf("a null key was put: %v", err)
	}
	w := state.NewWindow("s", serde.String, serde.String, state.WindowOptions{Retention: 1e9}, state.Memory)
	must(t, w.Open(state.OpenContext{}))
	if err := w.Put("k", -1, "v", 1); !isErr(err, state.ErrNegativeTime) {
		t.Errorf("a window before 1970 was put: %v", err)
	}
}

// TestIteratorLeak checks that an iterator that was left open is reported, and
// is of no use afterwards.
func TestIteratorLeak(t *testing.T) {
	for name, open := range engines {
		openEngine, ctx, end := open()
		s := state.NewKeyValue("s", serde.String, serde.Int64, openEngine)
		must(t, s.Open(ctx))
		must(t, s.Put("a", 1, 1))
		must(t, s.Flush())
		it := s.Range(state.Bounds[string]{}, state.Forward)
		closed := s.Range(state.Bounds[string]{}, state.Forward)
		if !closed.Next() || closed.Key() != "a" || closed.Value() != 1 || closed.Close() != nil || closed.Next() {
			t.Errorf("%s: an iterator that was closed goes on, or has the wrong entry", name)
		}
		if err := s.Close(); !isErr(err, state.ErrIteratorLeak) {
			t.Errorf("%s: a leaked iterator was not reported: %v", name, err)
		}
		if it.Next() || it.Close() != nil {
			t.Errorf("%s: an iterator goes on after its store", name)
		}
		must(t, s.Open(ctx))
		must(t, s.Close())
		must(t, end())
	}
}

func TestRangeAndPrefix(t *testing.T) {
	s := state.NewTimestampedKeyValue("s", serde.String, serde.Int64, state.Memory)
	must(t, s.Open(state.OpenContext{}))
	for i, k := range []string{"b", "a", "ba", "bb", "c", "b\u00ff", ""} {
		must(t, s.Put(k, int64(i), int64(10*i)))
	}
	keys := func(it *state.TimestampedIterator[string, int64]) []string {
		defer it.Close()
		var got []string
		for it.Next() {
			if it.Timestamp() != 10*it.Value() {
				t.Errorf("%q is %d at %d", it.Key(), it.Value(), it.Timestamp())
			}
			got = append(got, it.Key())
		}
		must(t, it.Err())
		return got
	}
	for _, c := range []struct {
		it   *state.TimestampedIterator[string, int64]
		want []string
	}{
		{s.Range(state.Bounds[string]{From: new("a"), To: new("ba")}, state.Forward), []string{"a", "b", "ba"}},
		{s.Range(state.Bounds[string]{From: new("a"), To: new("ba")}, state.Backward), []string{"ba", "b", "a"}},
		{s.Range(state.Bounds[string]{To: new("a")}, state.Forward), []string{"", "a"}},
		{s.Range(state.Bounds[string]{From: new("bc")}, state.Backward), []string{"c", "b\u00ff"}},
		{s.Range(state.Bounds[string]{From: new("c"), To: new("a")}, state.Forward), nil},
		{s.Prefix([]byte("b"), state.Forward), []string{"b", "ba", "bb", "b\u00ff"}},
		{s.Prefix([]byte("b\xc3"), state.Backward), []string{"b\u00ff"}},
		{s.Prefix(nil, state.Forward), []string{"", "a", "b", "ba", "bb", "b\u00ff", "c"}},
	} {
		if got := keys(c.it); !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	var all []string
	must(t, s.All(func(k string, v, ts int64) bool {
		all = append(all, k)
		return k != "a"
	}))
	if !slices.Equal(all, []string{"", "a"}) {
		t.Errorf("walked over %q", all)
	}
	must(t, s.Close())
}

func TestPutAllocatesNothing(t *testing.T) {
	for _, cached := range []bool{false, true} {
		s := state.NewTimestampedKeyValue("counts", serde.String, serde.Int64, state.Memory)
		s.EnableCache()
		ctx := state.OpenContext{}
		if cached {
			ctx.Cache = state.NewCache(1 << 20)
		}
		must(t, s.Open(ctx))
		if s.Cached() != cached {
			t.Fatalf("cached: %v", s.Cached())
		}
		n := int64(0)
		if allocs := testing.AllocsPerRun(100, func() {
			n++
			must(t, s.Put("key", n, n))
			if v, _, _, _ := s.Get("key"); v != n {
				t.Fatal("lost a put")
			}
		}); allocs > 0 {
			t.Errorf("%v allocations to overwrite and read a value, cached %v", allocs, cached)
		}
	}
}

// TestLayoutChanges: a store whose data on disk is laid out in another way begins
// anew, from its changelog.
func TestLayoutChanges(t *testing.T) {
	layouts := map[string]func(*state.Window[string, string]){
		"plain": func(*state.Window[string, string]) {}, "by time": (*state.Window[string, string]).OrderByTime, "indexed": (*state.Window[string, string]).IndexByTime,
	}
	for before, layBefore := range layouts {
		for after, layAfter := range layouts {
			openEngine, ctx, end := engines["persistent"]()
			open := func(lay func(*state.Window[string, string])) *state.Window[string, string] {
				s := state.NewWindow("s", serde.String, serde.String, state.WindowOptions{Retention: 1e9}, openEngine)
				lay(s)
				must(t, s.Open(ctx))
				return s
			}
			s := open(layBefore)
			must(t, s.Put("k", 5, "v", 1))
			must(t, s.Checkpoint(1))
			must(t, s.Close())
			s = open(layAfter)
			_, _, there, err := s.Get("k", 5)
			must(t, err)
			if _, ok := s.Checkpointed(); ok != (before == after) || there != ok {
				t.Errorf("%s after %s: found with its data %v, checkpointed %v", after, before, there, ok)
			}
			must(t, s.Close())
			must(t, end())
		}
	}
}
