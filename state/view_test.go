package state_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// viewed opens a store in memory, with a cache, and returns views of it.
func viewed(t *testing.T, s state.Viewable, gate *state.Gate) *state.Views {
	t.Helper()
	if c, ok := s.(interface{ EnableCache() }); ok {
		c.EnableCache()
	}
	if err := s.Open(state.OpenContext{Cache: state.NewCache(4000)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return state.NewViews(s, gate)
}

func begin(t *testing.T, vs *state.Views) *state.View {
	t.Helper()
	v, err := vs.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestViewKeyValue: a view has what the store has, in the cache or not.
func TestViewKeyValue(t *testing.T) {
	var gate state.Gate
	s := state.NewTimestampedKeyValue("s", serde.String, serde.Int64, state.Memory)
	views := viewed(t, s, &gate)
	for n := range 500 {
		must(t, s.Put(fmt.Sprintf("%03d", n), int64(n), int64(n)))
	}
	must(t, s.Delete("123", 1000))
	v := begin(t, views)
	of := v.Store.(*state.TimestampedKeyValue[[]byte, []byte])
	for _, n := range []int{0, 250, 499} {
		raw, timestamp, ok, err := of.Get(fmt.Appendf(nil, "%03d", n))
		if value, _ := serde.Int64.Decode(raw); err != nil || !ok || value != int64(n) || timestamp != int64(n) {
			t.Errorf("%d: %d, %d, %v, %v", n, value, timestamp, ok, err)
		}
	}
	if _, _, ok, err := of.Get([]byte("123")); ok || err != nil {
		t.Errorf("a key that was deleted: %v, %v", ok, err)
	}
	if err := of.Put([]byte("k"), []byte("v"), 0); !errors.Is(err, state.ErrReadOnly) {
		t.Errorf("writing a view: %v", err)
	}
	v.Release()
	for _, order := range []state.Order{state.Forward, state.Backward} {
		it := of.Range(state.Bounds[[]byte]{}, order)
		var keys [][]byte // valid for good
		for it.Next() {
			keys = append(keys, it.Key())
		}
		must(t, it.Err())
		must(t, it.Close())
		if len(keys) != 499 {
			t.Errorf("a walk has %d entries", len(keys))
		}
		for i := 1; i < len(keys); i++ {
			if up := string(keys[i-1]) < string(keys[i]); up == bool(order) {
				t.Fatalf("%s and then %s", keys[i-1], keys[i])
			}
		}
	}
	v.Close()
}

// TestViewWindows: a view of windows knows what has expired since it was made.
func TestViewWindows(t *testing.T) {
	var gate state.Gate
	const size = 10 * time.Second
	windows := state.NewWindow("w", serde.String, serde.Int64, state.WindowOptions{Size: size, Retention: 2 * size}, state.Memory)
	sessions := state.NewSession("s", serde.String, serde.Int64, 2*size, state.Memory)
	windowViews, sessionViews := viewed(t, windows, &gate), viewed(t, sessions, &gate)
	begin(t, windowViews).Close()
	begin(t, sessionViews).Close()
	for n := range int64(10) {
		start := n * size.Milliseconds()
		must(t, windows.Put("k", start, n, start))
		must(t, sessions.Put(serde.Windowed[string]{Key: "k", Start: start, End: start + 5}, n, start))
	}
	must(t, windows.Flush())
	must(t, sessions.Flush())
	same := func(what string, view, store *int, err error) {
		t.Helper()
		if err != nil || *view != *store || *store == 0 {
			t.Errorf("%s: the view has %d, the store %d, %v", what, *view, *store, err)
		}
	}
	v := begin(t, windowViews)
	w := v.Store.(*state.Window[[]byte, []byte])
	in, out := 0, 0
	own, seen := windows.Fetch("k", 0, 1<<62, state.Forward), w.Fetch([]byte("k"), 0, 1<<62, state.Forward)
	for own.Next() {
		out++
	}
	for seen.Next() {
		if in++; string(seen.Key().Key) != "k" || seen.Key().End-seen.Key().Start != size.Milliseconds() {
			t.Errorf("window %+v", seen.Key())
		}
	}
	same("windows", &in, &out, errors.Join(seen.Err(), own.Close(), seen.Close()))
	if _, _, ok, err := w.Get([]byte("k"), 0); ok || err != nil {
		t.Errorf("an expired window: %v, %v", ok, err)
	}
	v.Close()
	v = begin(t, sessionViews)
	in, out = 0, 0
	own2, seen2 := sessions.Fetch("k", state.Backward), v.Store.(*state.Session[[]byte, []byte]).Fetch([]byte("k"), state.Backward)
	for own2.Next() {
		out++
	}
	for seen2.Next() {
		in++
	}
	same("sessions", &in, &out, errors.Join(seen2.Err(), own2.Close(), seen2.Close()))
	v.Close()
}

func TestViewVersioned(t *testing.T) {
	var gate state.Gate
	s := state.NewVersioned("v", serde.String, serde.String, time.Minute, state.Memory)
	views := viewed(t, s, &gate)
	for n, value := range []string{"a", "b", "c"} {
		_, err := s.Put("k", value, int64(n)*1000)
		must(t, err)
	}
	v := begin(t, views)
	defer v.Close()
	of := v.Store.(*state.Versioned[[]byte, []byte])
	for asOf, want := range map[int64]string{0: "a", 999: "a", 1000: "b", 5000: "c"} {
		if got, ok, err := of.GetAsOf([]byte("k"), asOf); err != nil || !ok || string(got.Value) != want {
			t.Errorf("as of %d: %s, %v, %v; want %s", asOf, got.Value, ok, err, want)
		}
	}
}

// TestViewClosed: a store that ends while it is walked over says so.
func TestViewClosed(t *testing.T) {
	var gate state.Gate
	s := state.NewKeyValue("s", serde.Int64, serde.Int64, state.Memory)
	must(t, s.Open(state.OpenContext{}))
	views := state.NewViews(s, &gate)
	for n := range int64(1000) {
		must(t, s.Put(n, n, 0))
	}
	v := begin(t, views)
	it := v.Store.(*state.KeyValue[[]byte, []byte]).Range(state.Bounds[[]byte]{}, state.Forward)
	v.Release()
	if !it.Next() {
		t.Fatal(it.Err())
	}
	must(t, s.Close())
	n := 1
	for it.Next() {
		n++
	}
	if n == 1000 || !errors.Is(it.Err(), state.ErrClosed) {
		t.Errorf("%d entries, and then %v", n, it.Err())
	}
	v.Close()
	if _, err := views.Begin(t.Context()); !errors.Is(err, state.ErrClosed) {
		t.Errorf("a new view: %v", err)
	}
}

// TestViewBesideTask: views are made and used while the task is at work, which the race
// detector watches.
func TestViewBesideTask(t *testing.T) {
	const size = time.Second
	keyValue := state.NewKeyValue("k", serde.String, serde.Int64, state.Memory)
	timestamped := state.NewTimestampedKeyValue("t", serde.String, serde.Int64, state.Memory)
	versioned := state.NewVersioned("v", serde.String, serde.Int64, size, state.Memory)
	window := state.NewWindow("w", serde.String, serde.Int64, state.WindowOptions{Size: size, Retention: 100 * size}, state.Memory)
	session := state.NewSession("s", serde.String, serde.Int64, 100*size, state.Memory)
	for store, put := range map[state.Viewable]func(n int64) error{
		keyValue:    func(n int64) error { return keyValue.Put("key", n, n) },
		timestamped: func(n int64) error { return timestamped.Put("key", n, n) },
		versioned:   func(n int64) error { _, err := versioned.Put("key", n, n); return err },
		window:      func(n int64) error { return window.Put("key", n*size.Milliseconds(), n, n) },
		session: func(n int64) error {
			at := n * size.Milliseconds()
			return session.Put(serde.Windowed[string]{Key: "key", Start: at, End: at}, n, n)
		},
	} {
		t.Run(store.Name(), func(t *testing.T) {
			var gate state.Gate
			views := viewed(t, store, &gate)
			const puts = 2000
			var owner, readers sync.WaitGroup
			owner.Go(func() {
				gate.Lock()
				defer gate.Unlock()
				for n := range int64(puts) {
					if err := put(n); err != nil {
						t.Error(err)
						return
					}
					gate.Yield()
				}
			})
			stop := make(chan struct{})
			look := func(context.Context) (*state.View, error) {
				for {
					if v, err := views.TryLook(); v != nil || err != nil {
						return v, err
					}
					runtime.Gosched()
				}
			}
			for _, begin := range []func(context.Context) (*state.View, error){views.Begin, views.Look, look} {
				readers.Go(func() {
					last := int64(-1)
					for done := false; !done; {
						select {
						case <-stop:
							done = true
						default:
						}
						v, err := begin(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						now, err := latest(v.Store)
						if v.Close(); err != nil || now < last {
							t.Errorf("%d after %d: %v", now, last, err)
							return
						}
						last = now
					}
					if last != puts-1 {
						t.Errorf("the last is %d", last)
					}
				})
			}
			owner.Wait()
			close(stop)
			readers.Wait()
		})
	}
}

// latest is the last value that was put into a view's store; −1 for none.
func latest(s state.Store) (int64, error) {
	key := []byte("key")
	var value []byte
	var err error
	switch s := s.(type) {
	case *state.KeyValue[[]byte, []byte]:
		value, _, err = s.Get(key)
	case *state.TimestampedKeyValue[[]byte, []byte]:
		value, _, _, err = s.Get(key)
	case *state.Versioned[[]byte, []byte]:
		var found state.VersionedRecord[[]byte]
		found, _, err = s.Get(key)
		value = found.Value
	case *state.Window[[]byte, []byte]:
		it := s.Fetch(key, 0, 1<<62, state.Backward)
		if it.Next() {
			value = it.Value()
		}
		err = errors.Join(it.Err(), it.Close())
	case *state.Session[[]byte, []byte]:
		it := s.Fetch(key, state.Backward)
		if it.Next() {
			value = it.Value()
		}
		err = errors.Join(it.Err(), it.Close())
	}
	if value == nil || err != nil {
		return -1, err
	}
	return serde.Int64.Decode(value)
}

// TestGate: the owner and readers exclude each other, and neither keeps the others
// out; who gives up leaves nothing behind.
func TestGate(t *testing.T) {
	var gate state.Gate
	inside, reads := 0, 0
	enter := func() {
		if inside++; inside != 1 {
			t.Errorf("%d inside", inside)
		}
	}
	stop := make(chan struct{})
	var owner, readers sync.WaitGroup
	owner.Go(func() {
		gate.Lock()
		defer gate.Unlock()
		for {
			select {
			case <-stop:
				return
			default:
			}
			enter()
			inside--
			gate.Yield()
		}
	})
	for range 4 {
		readers.Go(func() {
			for range 200 {
				if err := gate.Enter(t.Context()); err != nil {
					t.Error(err)
					return
				}
				enter()
				reads++
				inside--
				gate.Leave()
			}
		})
	}
	for range 4 { // their turn and their end come at about the same time
		readers.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if gate.Enter(ctx) == nil {
					enter()
					inside--
					gate.Leave()
				}
				cancel()
			}
		})
	}
	readers.Wait()
	close(stop)
	owner.Wait()
	if reads != 800 {
		t.Errorf("%d reads", reads)
	}
	gate.Lock()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("enough"))
	defer cancel()
	if err := gate.Enter(ctx); err == nil || err.Error() != "enough" {
		t.Errorf("a reader whose time is up: %v", err)
	}
	gate.Unlock()
	if err := gate.Enter(t.Context()); err != nil {
		t.Error(err)
	}
	gate.Leave()
}

func BenchmarkViewGet(b *testing.B) {
	s := state.NewTimestampedKeyValue("s", serde.String, serde.Int64, state.Memory)
	if err := s.Open(state.OpenContext{}); err != nil {
		b.Fatal(err)
	}
	for n := range 10_000 {
		if err := s.Put(fmt.Sprint("key-", n), 1, 1); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, ok, err := s.Get("key-500"); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("view", func(b *testing.B) {
		var gate state.Gate
		views := state.NewViews(s, &gate)
		key := []byte("key-500")
		b.ReportAllocs()
		for b.Loop() {
			v, err := views.Begin(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if _, _, ok, err := v.Store.(*state.TimestampedKeyValue[[]byte, []byte]).Get(key); !ok || err != nil {
				b.Fatal(ok, err)
			}
			v.Close()
		}
	})
}
