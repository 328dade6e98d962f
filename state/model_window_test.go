package state_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// windowModel is a list of windowed entries, of which some have expired.
type windowModel struct {
	entries   []windowEntry
	observed  int64
	retention int64
	log       []logged
	byTime    bool // the store is in the order of time, as a whole
	indexed   bool // or where it is walked over as a whole
	slack     int64
	expired   []windowEntry // in case they are asked for
}

type windowEntry struct {
	key        string
	start, end int64
	sequence   uint32
	time       int64 // by which it expires
	value      string
	timestamp  int64
}

func (e windowEntry) String() string {
	return fmt.Sprintf("%q[%d,%d]=%q@%d", e.key, e.start, e.end, e.value, e.timestamp)
}

func newWindowModel(cached bool) windowModel {
	m := windowModel{observed: -1, retention: retention.Milliseconds()}
	if cached {
		m.retention = 1 << 50
	}
	return m
}

func (m *windowModel) keep() time.Duration {
	if m.retention == 1<<50 {
		return time.Hour * 1000
	}
	return retention
}

func (m *windowModel) same(e windowEntry) func(windowEntry) bool {
	return func(o windowEntry) bool {
		return o.key == e.key && o.start == e.start && o.end == e.end && o.sequence == e.sequence
	}
}

func (m *windowModel) put(e windowEntry, tombstone bool) {
	m.observed = max(m.observed, e.time)
	m.entries = slices.DeleteFunc(m.entries, m.same(e))
	if !tombstone {
		m.entries = append(m.entries, e)
	}
	m.expired = slices.DeleteFunc(m.expired, m.same(e))
	live := m.entries[:0]
	for _, o := range m.entries {
		if o.time > m.observed-m.retention-m.slack {
			live = append(live, o)
		} else {
			m.expired = append(m.expired, o)
		}
	}
	m.entries = live
	segment := func(time int64) int64 { return max(time, 0) / (m.retention / 2) }
	m.expired = slices.DeleteFunc(m.expired, func(o windowEntry) bool { return segment(o.time) < segment(m.observed-m.retention) })
}

// filter are the entries in the order of the engine: by segment, key, time.
func (m *windowModel) filter(in func(windowEntry) bool) (want []string) {
	segment := m.keep().Milliseconds() / 2
	if m.byTime {
		segment = 1
	}
	return m.sorted(in, func(a, b windowEntry) int {
		return cmp.Or(
			cmp.Compare(a.time/segment, b.time/segment),
			cmp.Compare(a.engineKey(), b.engineKey()),
		)
	})
}

// filterAll is filter for a walk over all keys.
func (m *windowModel) filterAll(in func(windowEntry) bool) (want []string) {
	if !m.indexed {
		return m.filter(in)
	}
	return m.sorted(in, func(a, b windowEntry) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.start, b.start), cmp.Compare(a.key, b.key))
	})
}

func (m *windowModel) sorted(in func(windowEntry) bool, order func(a, b windowEntry) int) (want []string) {
	slices.SortFunc(m.entries, order)
	for _, e := range m.entries {
		if in(e) {
			want = append(want, e.String())
		}
	}
	return want
}

// engineKey is what orders entries in a segment.
func (e windowEntry) engineKey() string {
	b := binary.BigEndian.AppendUint64([]byte(e.key), uint64(e.time))
	if e.end == e.time { // a session
		return string(binary.BigEndian.AppendUint64(b, uint64(e.start)))
	}
	return string(binary.BigEndian.AppendUint32(b, e.sequence))
}

func walkWindows(t fataler, it *state.WindowIterator[string, []byte], order state.Order) (got []string) {
	for it.Next() {
		k := it.Key()
		got = append(got, windowEntry{key: k.Key, start: k.Start, end: k.End, value: string(it.Value()), timestamp: it.Timestamp()}.String())
	}
	closed(t, it)
	return ordered(got, order)
}

func (m *windowModel) want() []string   { return m.filterAll(func(windowEntry) bool { return true }) }
func (m *windowModel) logged() []logged { return m.log }

const windowSize = 10

type windowSubject struct {
	*state.Window[string, []byte]
	windowModel
	many     bool
	sequence uint32
}

func newWindowSubject(open state.OpenEngine, cached bool) subject {
	return newWindows(open, cached, false)
}
func newDuplicatesSubject(open state.OpenEngine, cached bool) subject {
	return newWindows(open, false, true)
}

func newWindows(open state.OpenEngine, cached, many bool) subject {
	s := &windowSubject{windowModel: newWindowModel(cached), many: many}
	s.Window = state.NewWindow("s", raw, serde.Bytes, state.WindowOptions{
		Size: windowSize * time.Millisecond, Retention: s.keep(), RetainDuplicates: many,
	}, open)
	if cached {
		s.EnableCache()
	}
	return s
}

func newTimeOrderedSubject(open state.OpenEngine, cached bool) subject {
	s := newWindows(open, cached, false).(*windowSubject)
	s.byTime, s.slack = true, 1
	s.OrderByTime()
	return s
}

// An index comes without a cache, whoever asks for both.
func newIndexedWindowSubject(open state.OpenEngine, cached bool) subject {
	s := newWindows(open, false, false).(*windowSubject)
	s.indexed, s.slack = true, 1
	s.IndexByTime()
	if cached {
		s.EnableCache()
	}
	return s
}

func (s *windowSubject) step(t *rapid.T) {
	k, start := drawKey(t), drawTime(t, s.observed)
	switch rapid.SampledFrom([]string{"put", "put", "delete", "get", "fetch", "range"}).Draw(t, "op") {
	case "put":
		v, ts := drawValue(t), rapid.Int64Range(0, 1e6).Draw(t, "timestamp")
		must(t, s.Put(k, start, v, ts))
		s.change(windowEntry{key: k, start: start, value: string(v), timestamp: ts}, false)
	case "delete":
		ts := rapid.Int64Range(0, 1e6).Draw(t, "timestamp")
		must(t, s.Delete(k, start, ts))
		s.change(windowEntry{key: k, start: start, timestamp: ts}, true)
	case "get":
		if len(s.entries) > 0 && rapid.Bool().Draw(t, "there") {
			e := rapid.SampledFrom(s.entries).Draw(t, "entry")
			k, start = e.key, e.start
		}
		v, ts, ok, err := s.Get(k, start)
		must(t, err)
		var got []string
		if ok {
			got = []string{windowEntry{key: k, start: start, end: start + windowSize, value: string(v), timestamp: ts}.String()}
		}
		want := s.filter(func(e windowEntry) bool { return e.key == k && e.start == start })
		if !slices.Equal(got, want[:min(len(want), 1)]) {
			t.Fatalf("%q in the window of %d is %q, want %q", k, start, got, want)
		}
	case "fetch":
		to, order := drawTime(t, s.observed), drawOrder(t)
		got := walkWindows(t, s.Fetch(k, start, to, order), order)
		want := s.filter(func(e windowEntry) bool { return e.key == k && e.start >= start && e.start <= to })
		if !slices.Equal(got, want) {
			t.Fatalf("%q from %d to %d has %q, want %q", k, start, to, got, want)
		}
	case "range":
		bounds, within := drawBounds(t)
		to, order := drawTime(t, s.observed), drawOrder(t)
		got := walkWindows(t, s.FetchRange(bounds, start, to, order), order)
		filter := s.filter
		if bounds == (state.Bounds[string]{}) {
			filter = s.filterAll
		}
		want := filter(func(e windowEntry) bool { return within(e.key) && e.start >= start && e.start <= to })
		if !slices.Equal(got, want) {
			t.Fatalf("range from %d to %d has %q, want %q", start, to, got, want)
		}
	}
}

func (s *windowSubject) change(e windowEntry, tombstone bool) {
	e.end, e.time = e.start+windowSize, e.start
	if s.many {
		s.sequence++
		e.sequence = s.sequence
	}
	key := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64([]byte(e.key), uint64(e.start)), e.sequence)
	s.log = append(s.log, logged{key: string(key), value: e.value, tombstone: tombstone, timestamp: e.timestamp})
	if !s.many || !tombstone {
		s.put(e, tombstone)
	}
}

func (s *windowSubject) contents(t fataler) []string {
	return walkWindows(t, s.All(state.Forward), state.Forward)
}

type sessionSubject struct {
	*state.Session[string, []byte]
	windowModel
	clock int64
}

func newSessionSubject(open state.OpenEngine, cached bool) subject {
	s := &sessionSubject{windowModel: newWindowModel(cached)}
	s.Session = state.NewSession("s", raw, serde.Bytes, s.keep(), open)
	if cached {
		s.EnableCache()
	}
	return s
}

func newIndexedSessionSubject(open state.OpenEngine, cached bool) subject {
	s := newSessionSubject(open, false).(*sessionSubject)
	s.indexed = true
	s.IndexByTime()
	if cached {
		s.EnableCache()
	}
	return s
}

func (s *sessionSubject) step(t *rapid.T) {
	s.clock++
	k, end := drawKey(t), drawTime(t, s.observed)
	start := end - rapid.Int64Range(0, min(end, 50_000)).Draw(t, "length")
	w := serde.Windowed[string]{Key: k, Start: start, End: end}
	if len(s.entries) > 0 && rapid.Bool().Draw(t, "there") {
		e := rapid.SampledFrom(s.entries).Draw(t, "entry")
		w = serde.Windowed[string]{Key: e.key, Start: e.start, End: e.end}
	}
	switch rapid.SampledFrom([]string{"put", "put", "remove", "get", "find", "find range", "find ends", "fetch"}).Draw(t, "op") {
	case "put":
		v := drawValue(t)
		must(t, s.Put(w, v, s.clock))
		s.change(w, string(v), false)
	case "remove":
		must(t, s.Remove(w, s.clock))
		s.change(w, "", true)
	case "get":
		v, ok, err := s.Get(w)
		must(t, err)
		want := s.filter(func(e windowEntry) bool { return e.key == w.Key && e.start == w.Start && e.end == w.End })
		if ok != (len(want) == 1) || ok && s.entry(w, string(v)).String() != want[0] {
			t.Fatalf("%v is %q, %v, want %q", w, v, ok, want)
		}
	case "find":
		order := drawOrder(t)
		got := walkWindows(t, s.Find(w.Key, start, end, order), order)
		s.expect(t, got, s.filter(func(e windowEntry) bool { return e.key == w.Key && e.end >= start && e.start <= end }))
	case "find range":
		bounds, within := drawBounds(t)
		order := drawOrder(t)
		got := walkWindows(t, s.FindRange(bounds, start, end, order), order)
		want := func(e windowEntry) bool { return within(e.key) && e.end >= start && e.start <= end }
		if bounds == (state.Bounds[string]{}) {
			s.expect(t, got, s.filterAll(want))
		} else {
			s.expect(t, got, s.filter(want))
		}
	case "find ends":
		order := drawOrder(t)
		got := walkWindows(t, s.FindEnds(start, end, order), order)
		within := func(e windowEntry) bool { return e.end >= start && e.end <= end }
		if s.indexed {
			live := s.entries
			s.entries = slices.Concat(live, s.expired)
			s.expect(t, got, s.filterAll(within))
			s.entries = live
		} else {
			s.expect(t, got, s.filterAll(within))
		}
	case "fetch":
		order := drawOrder(t)
		got := walkWindows(t, s.Fetch(w.Key, order), order)
		s.expect(t, got, s.filter(func(e windowEntry) bool { return e.key == w.Key }))
	}
}

func (s *sessionSubject) expect(t *rapid.T, got, want []string) {
	if !slices.Equal(got, want) {
		t.Fatalf("found %q, want %q", got, want)
	}
}

func (s *sessionSubject) entry(w serde.Windowed[string], v string) windowEntry {
	return windowEntry{key: w.Key, start: w.Start, end: w.End, time: w.End, value: v, timestamp: -1}
}

func (s *sessionSubject) change(w serde.Windowed[string], v string, tombstone bool) {
	key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(w.Key), uint64(w.End)), uint64(w.Start))
	s.log = append(s.log, logged{key: string(key), value: v, tombstone: tombstone, timestamp: s.clock})
	s.put(s.entry(w, v), tombstone)
}

func (s *sessionSubject) contents(t fataler) []string {
	return walkWindows(t, s.FetchRange(state.Bounds[string]{}, state.Forward), state.Forward)
}
