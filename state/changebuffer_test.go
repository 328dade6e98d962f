package state_test

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

var _ state.HeaderRestorer = (*state.ChangeBuffer[string, string])(nil)

// TestChangeBufferEqualsJava compares what is logged with what was recorded from Java
// Kafka Streams 4.4.0, and restores it.
func TestChangeBufferEqualsJava(t *testing.T) {
	var recorded struct {
		Cases []struct {
			Prior, Old, New *string
			Time            *int64 `json:"buffer_time"`
			Headers         []struct {
				Key   string
				Value *string `json:"value_b64"`
			} `json:"context_headers"`
			Bytes []byte `json:"b64"`
		} `json:"suppress_buffer"`
	}
	readJSON(t, "change-buffer.json", &recorded)
	tested := 0
	for _, c := range recorded.Cases {
		if c.Time == nil {
			continue // the record context alone
		}
		tested++
		from := state.RecordContext{Topic: "topic", Partition: 3, Offset: 22, Timestamp: 11}
		for _, h := range c.Headers {
			header := state.Header{Key: h.Key}
			if h.Value != nil {
				value, err := base64.StdEncoding.DecodeString(*h.Value)
				must(t, err)
				header.Value = append([]byte{}, value...)
			}
			from.Headers = append(from.Headers, header)
		}
		log := &changelog{}
		s := state.NewChangeBuffer("s", serde.Pointer(serde.String), serde.String)
		must(t, s.Open(state.OpenContext{Changelog: log}))
		must(t, s.Put(*c.Time, pointers("k", nil, c.Prior), from))
		must(t, s.Put(1, pointers("k", c.New, c.Old), from)) // the time of the first counts
		must(t, s.Flush())
		if len(log.records) != 1 || log.records[0].value != string(c.Bytes) || log.records[0].headers != "v=\x03;" || log.records[0].timestamp != state.NoTimestamp {
			t.Errorf("logged %+v, in Java %q", log.records, c.Bytes)
		}

		again := state.NewChangeBuffer("s", serde.Pointer(serde.String), serde.String)
		must(t, again.Open(state.OpenContext{}))
		must(t, again.RestoreHeaders([]byte("k"), c.Bytes, 1, []state.Header{{Key: "v", Value: []byte{3}}}))
		if again.Size() != s.Size() {
			t.Errorf("restored it has %d bytes, before %d", again.Size(), s.Size())
		}
		want := held(t, s)
		if got := held(t, again); got != want {
			t.Errorf("restored is %s, want %s", got, want)
		}
	}
	if tested < 10 {
		t.Errorf("%d cases", tested)
	}
}

func pointers(k string, now, old *string) state.Change[*string, string] {
	c := state.Change[*string, string]{Key: &k, HasNew: now != nil, HasOld: old != nil}
	if now != nil {
		c.New = *now
	}
	if old != nil {
		c.Old = *old
	}
	return c
}

// held is the first change, and what it says of the value before.
func held(t fataler, s *state.ChangeBuffer[*string, string]) string {
	t.Helper()
	c, from, ok, err := s.First()
	must(t, err)
	if !ok {
		return "nothing"
	}
	prior, exists, isHeld, err := s.Prior(c.Key)
	must(t, err)
	time, _ := s.MinTime()
	return fmt.Sprintf("%d: %s %q,%v %q,%v %q,%v,%v %+v", time, *c.Key, c.New, c.HasNew, c.Old, c.HasOld, prior, exists, isHeld, from)
}

// TestChangeBufferModel runs random operations against a buffer and a naive model,
// and restores it from its log at any time.
func TestChangeBufferModel(t *testing.T) {
	type entry struct {
		time            int64
		prior, old, new string // "" for none
		from            int64
	}
	rapid.Check(t, func(t *rapid.T) {
		log := &changelog{}
		s := state.NewChangeBuffer("s", serde.String, serde.String)
		must(t, s.Open(state.OpenContext{Changelog: log}))
		model := make(map[string]entry)
		order := func() []string {
			return slices.SortedFunc(maps.Keys(model), func(a, b string) int {
				return cmp.Or(cmp.Compare(model[a].time, model[b].time), cmp.Compare(a, b))
			})
		}
		clock := int64(0)
		check := func(t *rapid.T, s *state.ChangeBuffer[string, string]) {
			if s.Len() != len(model) {
				t.Fatalf("it has %d changes, want %d", s.Len(), len(model))
			}
			for _, k := range []string{"a", "b", "c"} {
				e, want := model[k]
				prior, exists, isHeld, err := s.Prior(k)
				must(t, err)
				if isHeld != want || prior != e.prior || exists != (e.prior != "") {
					t.Fatalf("the prior value of %q is %q, %v, %v, want %+v", k, prior, exists, isHeld, e)
				}
			}
			keys := order()
			c, from, ok, err := s.First()
			must(t, err)
			if ok != (len(keys) > 0) {
				t.Fatalf("there is a first: %v; want %q", ok, keys)
			}
			if !ok {
				return
			}
			want := model[keys[0]]
			time, _ := s.MinTime()
			if c.Key != keys[0] || c.New != want.new || c.HasNew != (want.new != "") || c.Old != want.old || c.HasOld != (want.old != "") ||
				time != want.time || from.Offset != want.from || c.Timestamp != from.Timestamp {
				t.Fatalf("first is %+v of %d, want %q: %+v", c, time, keys[0], want)
			}
		}
		values := rapid.SampledFrom([]string{"", "x", "y"})
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { check(t, s) },
			"put": func(t *rapid.T) {
				clock++
				k := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
				e := entry{time: rapid.Int64Range(0, 9).Draw(t, "time"), old: values.Draw(t, "old"), new: values.Draw(t, "new"), from: clock}
				must(t, s.Put(e.time, state.Change[string, string]{Key: k, New: e.new, HasNew: e.new != "", Old: e.old, HasOld: e.old != ""},
					state.RecordContext{Topic: "t", Offset: clock, Timestamp: clock}))
				e.prior = e.old
				if before, ok := model[k]; ok {
					e.time, e.prior = before.time, before.prior
				}
				model[k] = e
			},
			"drop": func(t *rapid.T) {
				if keys := order(); len(keys) > 0 {
					delete(model, keys[0])
				}
				s.DropFirst()
			},
			"flush": func(t *rapid.T) {
				before := len(log.records)
				must(t, s.Flush())
				if n := len(log.records) - before; n > 3 {
					t.Fatalf("%d records are logged of 3 keys", n)
				}
				restored := state.NewChangeBuffer("s", serde.String, serde.String)
				log.restore(t, restored, state.OpenContext{})
				check(t, restored)
				if restored.Size() != s.Size() {
					t.Fatalf("restored it has %d bytes, before %d", restored.Size(), s.Size())
				}
				must(t, restored.Close())
			},
		})
		for len(model) > 0 {
			delete(model, order()[0])
			s.DropFirst()
		}
		if s.Size() != 0 {
			t.Fatalf("empty it has %d bytes", s.Size())
		}
	})
}

// TestChangeBufferErrors: what can't be, is refused, and nothing is kept of it.
func TestChangeBufferErrors(t *testing.T) {
	s := state.NewChangeBuffer("s", serde.Pointer(serde.String), serde.Int64)
	_, _, _, firstErr := s.First()
	_, _, _, priorErr := s.Prior(new("k"))
	for op, err := range map[string]error{
		"put": s.Put(1, state.Change[*string, int64]{}, state.RecordContext{}), "first": firstErr, "prior": priorErr,
		"flush": s.Flush(), "restore": s.Restore(nil, nil, 0),
	} {
		if !isErr(err, state.ErrClosed) {
			t.Errorf("%s of a buffer that is not open: %v", op, err)
		}
	}
	must(t, s.Open(state.OpenContext{}))
	if err := s.Open(state.OpenContext{}); err == nil {
		t.Error("opened twice")
	}
	if err := s.Put(1, state.Change[*string, int64]{HasNew: true}, state.RecordContext{}); !isErr(err, state.ErrNullKey) {
		t.Errorf("a null key was put: %v", err)
	}
	log := &changelog{}
	whole := state.NewChangeBuffer("s", serde.Pointer(serde.String), serde.Int64)
	must(t, whole.Open(state.OpenContext{Changelog: log}))
	must(t, whole.Put(1, state.Change[*string, int64]{Key: new("k"), New: 7, HasNew: true}, state.RecordContext{Topic: "t", Headers: []state.Header{{Key: "h"}}}))
	must(t, whole.Flush())
	key, value := log.records[0].bytes()
	for n := range value {
		if err := s.Restore(key, value[:n], 0); err == nil {
			t.Errorf("%d bytes of %d were restored", n, len(value))
		}
	}
	for _, version := range [][]byte{nil, {2}, {3, 3}} {
		err := s.RestoreHeaders(key, value, 0, []state.Header{{Key: "v", Value: version}})
		if err == nil || !strings.Contains(err.Error(), "before 2.5") {
			t.Errorf("version %v was restored: %v", version, err)
		}
	}
	if s.Len() != 0 || s.Size() != 0 {
		t.Errorf("%d changes of %d bytes are there", s.Len(), s.Size())
	}
	must(t, s.Close())
}

func FuzzChangeBufferRestore(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x16\x00\x00\x00\x05topic\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04same\xff\xff\xff\xfe\x00\x00\x00\x03new\x00\x00\x00\x00\x00\x00\x00c"))
	f.Fuzz(func(t *testing.T, value []byte) {
		log := &changelog{}
		s := state.NewChangeBuffer("s", serde.String, serde.Bytes)
		must(t, s.Open(state.OpenContext{Changelog: log}))
		if s.Restore([]byte("k"), append([]byte{}, value...), 0) != nil {
			return
		}
		c, from, _, err := s.First()
		must(t, err)
		time, _ := s.MinTime()
		again := state.NewChangeBuffer("s", serde.String, serde.Bytes)
		must(t, again.Open(state.OpenContext{Changelog: log}))
		must(t, again.Put(time, c, from))
		must(t, again.Flush())
	})
}

// headerLog is a changelog that keeps headers as they are.
type headerLog struct {
	keys, values [][]byte
	headers      [][]state.Header
}

func (l *headerLog) Append(key, value []byte, _ int64, headers []state.Header) error {
	l.keys, l.values = append(l.keys, slices.Clone(key)), append(l.values, slices.Clone(value))
	l.headers = append(l.headers, headers)
	return nil
}

// TestChangeBufferHeaders: a buffer with headers knows where the values before came
// from, also after it was restored, and from what a buffer without has logged.
func TestChangeBufferHeaders(t *testing.T) {
	open := func(headers bool) (*state.ChangeBuffer[string, string], *headerLog) {
		s, log := state.NewChangeBuffer("s", serde.String, serde.String), &headerLog{}
		if headers {
			s.EnableHeaders()
		}
		must(t, s.Open(state.OpenContext{Changelog: log}))
		return s, log
	}
	put := func(s *state.ChangeBuffer[string, string], i int) {
		from := state.RecordContext{Topic: "t", Offset: int64(i), Timestamp: int64(10 * i)}
		if i%2 == 1 {
			from.Headers = []state.Header{{Key: "h", Value: []byte{byte(i)}}, {Key: "null"}}
		}
		c := state.Change[string, string]{Key: "k", New: fmt.Sprint(i), HasNew: true, Old: fmt.Sprint(i - 1), HasOld: true}
		must(t, s.Put(int64(i), c, from))
		must(t, s.Flush())
	}
	const none, first = "\x00\xff\xff\xff\xff\xff\xff\xff\xff", "\x16\x04\x02h\x02\x01\x08null\x01\x00\x00\x00\x00\x00\x00\x00\x0a"
	want := []string{
		fmt.Sprintf(`[{"v" %q} {"vh.old" %q}]`, "\x03", none),
		fmt.Sprintf(`[{"v" %q} {"vh.prior" %q} {"vh.old" %q}]`, "\x03", none, first),
		fmt.Sprintf(`[{"v" %q} {"vh.prior" %q} {"vh.old" %q}]`, "\x03", none, "\x00\x00\x00\x00\x00\x00\x00\x00\x14"),
	}
	s, log := open(true)
	for i, want := range want {
		put(s, i+1)
		if got := fmt.Sprintf("%q", log.headers[i]); got != want {
			t.Errorf("change %d is logged with %s, want %s", i+1, got, want)
		}
	}
	restored, relog := open(true)
	must(t, restored.RestoreHeaders(log.keys[1], log.values[1], 0, log.headers[1]))
	put(restored, 3)
	if got := fmt.Sprintf("%q", relog.headers[0]); got != want[2] || string(relog.values[0]) != string(log.values[2]) || restored.Size() != s.Size() {
		t.Errorf("restored, it logs %s of %d bytes, before %s of %d", got, restored.Size(), want[2], s.Size())
	}

	plain, plainLog := open(false)
	put(plain, 1)
	restored, relog = open(true)
	must(t, restored.RestoreHeaders(plainLog.keys[0], plainLog.values[0], 0, plainLog.headers[0]))
	put(restored, 2)
	const itself = "\x00\x00\x00\x00\x00\x00\x00\x00\x0a"
	if got, want := fmt.Sprintf("%q", relog.headers[0]), fmt.Sprintf(`[{"v" %q} {"vh.prior" %q} {"vh.old" %q}]`, "\x03", itself, first); got != want {
		t.Errorf("restored from a buffer without headers, it logs %s, want %s", got, want)
	}
}
