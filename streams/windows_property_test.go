package streams_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// The aggregate of a window is here the sorted letters of its values, "~" for null.
// The value "D" deletes the window.

func letters(_, v string, aggregate *string) *string {
	switch v {
	case "D":
		return nil
	case "":
		v = "~"
	}
	return new(sorted(orEmpty(aggregate) + v))
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// windowRecord is one record of the input.
type windowRecord struct {
	key, value string // "" is null
	time       int64
}

type windowKey = serde.Windowed[string]

// windowReference is a plain model of an aggregation of windows.
type windowReference interface {
	// process takes a record. It returns the changes that it makes, in order, as
	// text, and what is emitted of windows that have closed, by the aggregation
	// and by a suppression below it.
	process(r windowRecord) (updates, closed, suppressed []string)

	// results are what is in the windows.
	results() map[string]string
}

func shown(w windowKey, value string) string {
	if value == "" {
		value = "null"
	}
	return fmt.Sprintf("%s@%d/%d=%s", w.Key, w.Start, w.End, value)
}

// TestWindowsAreWhatOneComputes: whatever comes in, in whatever order of time, all
// that goes out is what a plain model computes.
func TestWindowsAreWhatOneComputes(t *testing.T) {
	kinds := map[string]func(*rapid.T) windowCase{
		"tumbling": func(t *rapid.T) windowCase { return drawTimeWindows(t, 1) },
		"hopping":  func(t *rapid.T) windowCase { return drawTimeWindows(t, rapid.Int64Range(1, 4).Draw(t, "overlap")) },
		"sliding":  drawSlidingWindows,
		"sessions": drawSessions,
	}
	for name, draw := range kinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				c := draw(rt)
				cached := rapid.Bool().Draw(rt, "cached")
				b := NewBuilder()
				for i, emit := range []EmitStrategy{OnWindowUpdate, OnWindowClose} {
					m := Materialized[string, *string]{
						Name: fmt.Sprintf("store%d", i), Value: text, Retention: time.Hour, CachingDisabled: !cached,
						StoreType: rapid.SampledFrom([]StoreType{Persistent, InMemory}).Draw(rt, "store"),
					}
					table := c.aggregate(Stream[string, string](b, "in").GroupByKey(), emit, m)
					table.ToStream().To([]string{"updates", "closed"}[i])
					if emit == OnWindowUpdate {
						SuppressUntilWindowCloses(table).ToStream().To("suppressed")
					}
				}
				d := streamstest.NewDriver(rt, b.Build())
				folded := map[string]map[string]string{"updates": {}, "suppressed": {}}
				for range rapid.IntRange(1, 40).Draw(rt, "records") {
					checkWindowStep(rt, d, c, c.draw(rt), cached, folded)
				}
				// All windows of before close with the last record.
				checkWindowStep(rt, d, c, windowRecord{"z", "z", 100_000}, cached, folded)
				want := c.reference.results()
				if !maps.Equal(folded["updates"], want) {
					rt.Fatalf("the results come to\n%v, want\n%v", folded["updates"], want)
				}
				for w, v := range want {
					if v != "z" && folded["suppressed"][w] != v {
						rt.Fatalf("%s is %q in the end, but %q was the last that a suppression sent on", w, v, folded["suppressed"][w])
					}
				}
			})
		})
	}
}

// windowCase is one definition of windows.
type windowCase struct {
	aggregate func(g *KGroupedStream[string, string], emit EmitStrategy, m Materialized[string, *string]) *KTable[windowKey, *string]
	draw      func(*rapid.T) windowRecord
	keys      serde.Serde[windowKey]
	reference windowReference

	// loose says that changes come in an order, and suppressed results at a time,
	// that the reference doesn't know.
	loose bool
}

func checkWindowStep(t *rapid.T, d *streamstest.Driver, c windowCase, r windowRecord, cached bool, folded map[string]map[string]string) {
	rec := &kgo.Record{Topic: "in", Timestamp: time.UnixMilli(r.time)}
	if r.key != "" {
		rec.Key = []byte(r.key)
	}
	if r.value != "" {
		rec.Value = []byte(r.value)
	}
	if err := d.TryPipe(rec); err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for _, out := range d.Sent() {
		if strings.HasSuffix(out.Topic, "-changelog") {
			continue
		}
		w, err := c.keys.Decode(out.Key)
		if err != nil {
			t.Fatal(err)
		}
		if out.Value == nil && out.Topic == "suppressed" {
			t.Fatalf("%v is suppressed to nothing and sent on", w)
		}
		got[out.Topic] = append(got[out.Topic], shown(w, string(out.Value)))
		if in := folded[out.Topic]; in != nil {
			delete(in, shown(w, ""))
			if out.Value != nil {
				in[shown(w, "")] = string(out.Value)
			}
		}
	}
	updates, closed, suppressed := c.reference.process(r)
	if !cached && !c.loose && !slices.Equal(got["updates"], updates) {
		t.Fatalf("%+v changes\n%q, want\n%q", r, got["updates"], updates)
	}
	if !slices.Equal(got["closed"], closed) {
		t.Fatalf("%+v closes\n%q, want\n%q", r, got["closed"], closed)
	}
	// Nor does a suppression hear of what comes and goes within a cache.
	if !cached && !c.loose && !slices.Equal(got["suppressed"], suppressed) {
		t.Fatalf("%+v has\n%q sent on by a suppression, want\n%q", r, got["suppressed"], suppressed)
	}
}

func drawWindowRecord(t *rapid.T, time int64) windowRecord {
	return windowRecord{
		key:   rapid.SampledFrom([]string{"a", "b", "ab", ""}).Draw(t, "key"),
		value: rapid.SampledFrom([]string{"p", "q", "r", "", "D"}).Draw(t, "value"),
		time:  time,
	}
}

// timeReference has tumbling and hopping windows.
type timeReference struct {
	size, advance, grace int64
	streamTime, emitted  int64
	windows              map[windowKey]string
	pending              map[windowKey]bool // suppressed
}

func drawTimeWindows(t *rapid.T, overlap int64) windowCase {
	advance := rapid.Int64Range(1, 10).Draw(t, "advance")
	m := &timeReference{
		size: advance * overlap, advance: advance, grace: rapid.Int64Range(0, 12).Draw(t, "grace"),
		streamTime: -1, emitted: -1, windows: make(map[windowKey]string), pending: make(map[windowKey]bool),
	}
	if overlap > 1 { // sizes need be no multiples
		m.size -= rapid.Int64Range(0, advance-1).Draw(t, "less")
	}
	w := TimeWindows{Size: time.Duration(m.size) * ms, Advance: time.Duration(m.advance) * ms, Grace: time.Duration(m.grace) * ms}
	return windowCase{
		aggregate: func(g *KGroupedStream[string, string], emit EmitStrategy, mat Materialized[string, *string]) *KTable[windowKey, *string] {
			return WindowedAggregate(WindowedBy(g, w).EmitStrategy(emit), empty, letters, mat)
		},
		draw:      func(t *rapid.T) windowRecord { return drawWindowRecord(t, rapid.Int64Range(0, 60).Draw(t, "time")) },
		keys:      serde.TimeWindowed(serde.String, w.Size),
		reference: m,
	}
}

func (m *timeReference) results() map[string]string { return shownResults(m.windows) }

func shownResults(windows map[windowKey]string) map[string]string {
	out := make(map[string]string)
	for w, v := range windows {
		out[shown(w, "")] = v
	}
	return out
}

func (m *timeReference) process(r windowRecord) (updates, closed, suppressed []string) {
	if r.key == "" {
		return nil, nil, nil
	}
	m.streamTime = max(m.streamTime, r.time)
	closeTime := m.streamTime - m.grace
	for start := int64(0); start <= r.time; start += m.advance {
		w := windowKey{Key: r.key, Start: start, End: start + m.size}
		if r.time >= w.End || w.End <= closeTime {
			continue
		}
		before := new(m.windows[w])
		now := orEmpty(letters(r.key, r.value, before))
		delete(m.windows, w)
		if now != "" {
			m.windows[w] = now
		}
		m.pending[w] = true
		updates = append(updates, shown(w, now))
	}
	if closeTime > m.emitted && closeTime >= m.size {
		closed = m.emit(func(w windowKey) bool { return w.End <= closeTime && w.End > m.emitted })
		m.emitted = closeTime
	}
	if len(updates) > 0 {
		suppressed = m.emit(func(w windowKey) bool { return m.pending[w] && w.End <= closeTime })
		maps.DeleteFunc(m.pending, func(w windowKey, _ bool) bool { return w.End <= closeTime })
	}
	return updates, closed, suppressed
}

func (m *timeReference) emit(in func(windowKey) bool) []string {
	return shownWindows(m.windows, byTime, in)
}

func shownWindows(windows map[windowKey]string, order func(a, b windowKey) int, in func(windowKey) bool) (out []string) {
	for _, w := range slices.SortedFunc(maps.Keys(windows), order) {
		if in(w) {
			out = append(out, shown(w, windows[w]))
		}
	}
	return out
}

func byTime(a, b windowKey) int {
	return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Key, b.Key))
}

// byEndAndKey is the order of a suppression.
func byEndAndKey(a, b windowKey) int {
	return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start))
}

// sessionReference has sessions: what is left when records are connected that are no
// farther apart than the gap.
type sessionReference struct {
	gap, grace                    int64
	streamTime, emitted, suppress int64 // suppress is the stream time of the suppression
	records                       []windowRecord
	pending                       map[windowKey]bool
}

func drawSessions(t *rapid.T) windowCase {
	m := &sessionReference{
		gap: rapid.Int64Range(1, 8).Draw(t, "gap"), grace: rapid.Int64Range(0, 12).Draw(t, "grace"),
		streamTime: -1, emitted: -1, suppress: -1, pending: make(map[windowKey]bool),
	}
	w := SessionWindows{InactivityGap: time.Duration(m.gap) * ms, Grace: time.Duration(m.grace) * ms}
	return windowCase{
		aggregate: func(g *KGroupedStream[string, string], emit EmitStrategy, mat Materialized[string, *string]) *KTable[windowKey, *string] {
			merge := func(_ string, a, b *string) *string { return new(sorted(orEmpty(a) + orEmpty(b))) }
			return SessionAggregate(SessionWindowedBy(g, w).EmitStrategy(emit), empty, letters, merge, mat)
		},
		draw:      func(t *rapid.T) windowRecord { return drawWindowRecord(t, rapid.Int64Range(0, 60).Draw(t, "time")) },
		keys:      serde.SessionWindowed(serde.String),
		reference: m,
	}
}

// session is the session of a key that a time is in or next to, and the records of it.
func (m *sessionReference) session(key string, time int64) (w windowKey, of []int) {
	w = windowKey{Key: key, Start: time, End: time}
	for grown := true; grown; {
		grown = false
		for i, r := range m.records {
			if r.key == key && r.time >= w.Start-m.gap && r.time <= w.End+m.gap && !slices.Contains(of, i) {
				of, grown = append(of, i), true
				w.Start, w.End = min(w.Start, r.time), max(w.End, r.time)
			}
		}
	}
	return w, of
}

func (m *sessionReference) sessions() map[windowKey]string {
	all := make(map[windowKey]string)
	for _, r := range m.records {
		w, of := m.session(r.key, r.time)
		var values string
		for _, i := range of {
			values = orEmpty(letters("", m.records[i].value, &values))
		}
		all[w] = values
	}
	return all
}

func (m *sessionReference) results() map[string]string { return shownResults(m.sessions()) }

func (m *sessionReference) process(r windowRecord) (updates, closed, suppressed []string) {
	if r.key == "" {
		return nil, nil, nil
	}
	m.streamTime = max(m.streamTime, r.time)
	closeTime := m.streamTime - m.grace - m.gap
	if w, of := m.session(r.key, r.time); w.End >= closeTime {
		updates = m.join(r, w, of)
		m.suppress = max(m.suppress, w.End)
	}
	sessions := m.sessions()
	if closeTime > m.emitted && closeTime > 0 {
		closed = shownWindows(sessions, byTime, func(w windowKey) bool { return w.End < closeTime && w.End >= m.emitted })
		m.emitted = closeTime
	}
	due := func(w windowKey) bool { return w.End <= m.suppress-m.grace-m.gap }
	suppressed = shownWindows(sessions, byEndAndKey, func(w windowKey) bool { return m.pending[w] && due(w) })
	maps.DeleteFunc(m.pending, func(w windowKey, _ bool) bool { return due(w) })
	return updates, closed, suppressed
}

// join adds a record to the session that it makes of those of the records of.
func (m *sessionReference) join(r windowRecord, w windowKey, of []int) (updates []string) {
	if w.Start != w.End {
		merged := m.sessions()
		for _, before := range slices.SortedFunc(maps.Keys(merged), byTime) {
			if before.Key == w.Key && before.Start >= w.Start && before.End <= w.End {
				updates = append(updates, shown(before, ""))
				delete(m.pending, before)
			}
		}
	}
	m.records = append(m.records, r)
	m.pending[w] = true
	if r.value == "D" {
		for _, i := range of {
			m.records[i].key = "" // gone
		}
		m.records[len(m.records)-1].key = ""
		m.records = slices.DeleteFunc(m.records, func(r windowRecord) bool { return r.key == "" })
	}
	return append(updates, shown(w, m.sessions()[w]))
}

// slidingReference has sliding windows: for each record one that ends with it, and
// one that begins after it if there is something in it.
type slidingReference struct {
	difference, grace   int64
	streamTime, emitted int64
	records             []windowRecord
}

func drawSlidingWindows(t *rapid.T) windowCase {
	m := &slidingReference{
		difference: rapid.Int64Range(1, 12).Draw(t, "difference"), grace: rapid.Int64Range(0, 30).Draw(t, "grace"),
		streamTime: -1, emitted: -1,
	}
	w := SlidingWindows{TimeDifference: time.Duration(m.difference) * ms, Grace: time.Duration(m.grace) * ms}
	return windowCase{
		aggregate: func(g *KGroupedStream[string, string], emit EmitStrategy, mat Materialized[string, *string]) *KTable[windowKey, *string] {
			return WindowedAggregate(WindowedBy(g, w).EmitStrategy(emit), empty, letters, mat)
		},
		draw: func(t *rapid.T) windowRecord {
			// Either all windows of a record are open, or none is.
			closeTime := max(0, m.streamTime-m.grace)
			time := rapid.Int64Range(closeTime, closeTime+m.grace+15).Draw(t, "time")
			if late := closeTime - m.difference - 1; late >= 0 && rapid.IntRange(0, 5).Draw(t, "late") == 0 {
				time = rapid.Int64Range(0, late).Draw(t, "late by")
			}
			r := drawWindowRecord(t, time)
			if r.value == "D" {
				r.value = "d" // a window that is deleted is forgotten, and with it what others are made of
			}
			return r
		},
		keys:      serde.TimeWindowed(serde.String, w.TimeDifference),
		reference: m,
		loose:     true,
	}
}

func (m *slidingReference) windows() map[windowKey]string {
	all := make(map[windowKey]string)
	for _, r := range m.records {
		for _, start := range []int64{max(0, r.time-m.difference), r.time + 1} {
			w := windowKey{Key: r.key, Start: start, End: start + m.difference}
			var values string
			for _, in := range m.records {
				if in.key == w.Key && in.time >= w.Start && in.time <= w.End {
					values = orEmpty(letters("", in.value, &values))
				}
			}
			if values != "" {
				all[w] = values
			}
		}
	}
	return all
}

func (m *slidingReference) results() map[string]string { return shownResults(m.windows()) }

func (m *slidingReference) process(r windowRecord) (_, closed, _ []string) {
	if r.key == "" || r.value == "" {
		return nil, nil, nil
	}
	m.streamTime = max(m.streamTime, r.time)
	closeTime := m.streamTime - m.grace
	if r.time+m.difference < closeTime {
		return nil, nil, nil
	}
	m.records = append(m.records, r)
	// As in Java, a record of the very first time closes nothing.
	if r.time >= m.difference && closeTime > m.emitted && closeTime > m.difference {
		closed = shownWindows(m.windows(), byTime, func(w windowKey) bool { return w.End < closeTime && w.End >= m.emitted })
		m.emitted = closeTime
	}
	return nil, closed, nil
}
