package streams_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// TestTablesAreViews: whatever comes in, in whatever order of time, the last output
// of each key is what one computes from the tables as they are at the end: for
// every kind of join, with and without stores, of tables and of what is derived
// from them, and for what is aggregated from that.
func TestTablesAreViews(t *testing.T) {
	joins := map[string]func(l, r *KTable[string, string], m Materialized[string, string]) *KTable[string, string]{
		"inner": func(l, r *KTable[string, string], m Materialized[string, string]) *KTable[string, string] {
			return TableJoin(l, r, joinValues, m)
		},
		"left": func(l, r *KTable[string, string], m Materialized[string, string]) *KTable[string, string] {
			return TableLeftJoin(l, r, joinValues, m)
		},
		"outer": func(l, r *KTable[string, string], m Materialized[string, string]) *KTable[string, string] {
			return TableOuterJoin(l, r, joinValues, m)
		},
	}
	has := map[string]func(l, r bool) bool{
		"inner": func(l, r bool) bool { return l && r },
		"left":  func(l, _ bool) bool { return l },
		"outer": func(l, r bool) bool { return l || r },
	}
	for name, join := range joins {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				stores := rapid.SliceOfN(rapid.Bool(), 5, 5).Draw(rt, "stores")
				store := func(i int) Materialized[string, string] {
					if stores[i] {
						return Materialized[string, string]{Name: fmt.Sprintf("store%d", i)}
					}
					return Materialized[string, string]{}
				}
				b := NewBuilder()
				l := Table(b, "l", store(0)).Filter(notX, store(1))
				r := TableMapValues(Table[string, string](b, "r"), strings.ToUpper, store(2))
				joined := join(l, r, store(3))
				last := joined.FilterNot(hasY, store(4))
				last.ToStream().To("joined")
				LeftJoinTable(Stream[string, string](b, "s"), last, joinValues).To("looked-up")
				byValue := TableGroupBy(last, func(k, v string) (string, string) { return v, k })
				byValue.Count().ToStream().To("counts")
				TableAggregate(byValue, func() string { return "" },
					func(_, v, a string) string { return sorted(a + v) },
					func(_, v, a string) string { return strings.Replace(a, v, "", 1) }).ToStream().To("members")

				d := streamstest.NewDriver(rt, b.Build())
				tables := map[string]map[string]string{"l": {}, "r": {}}
				outputs := map[string]map[string]string{"joined": {}, "counts": {}, "members": {}}
				for range rapid.IntRange(0, 30).Draw(rt, "records") {
					topic := rapid.SampledFrom([]string{"l", "r"}).Draw(rt, "topic")
					key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
					value := rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(rt, "value") // "": null
					rec := &kgo.Record{Topic: topic, Key: []byte(key), Timestamp: time.UnixMilli(rapid.Int64Range(0, 9).Draw(rt, "time"))}
					delete(tables[topic], key)
					if value != "" {
						rec.Value = []byte(value)
						tables[topic][key] = value
					}
					fold(rt, d, rec, outputs)
				}

				want := make(map[string]string)
				for _, key := range []string{"a", "b", "c"} {
					l, r := tables["l"][key], strings.ToUpper(tables["r"][key])
					inLeft := l != "" && notX("", l)
					if !inLeft {
						l = ""
					}
					if has[name](inLeft, r != "") && !hasY("", joinValues(l, r)) {
						want[key] = joinValues(l, r)
					}
				}
				counts, members := make(map[string]string), make(map[string]string)
				for _, key := range slices.Sorted(maps.Keys(want)) {
					members[want[key]] += key
				}
				for value, keys := range members {
					count, _ := serde.Int64.Append([]byte{}, int64(len(keys)))
					counts[value] = string(count)
				}
				// A group that has become empty stays, as nothing.
				maps.DeleteFunc(outputs["counts"], func(_, v string) bool { return v == strings.Repeat("\x00", 8) })
				maps.DeleteFunc(outputs["members"], func(_, v string) bool { return v == "" })
				for topic, want := range map[string]map[string]string{"joined": want, "counts": counts, "members": members} {
					if !maps.Equal(outputs[topic], want) {
						rt.Errorf("%s has %q, want %q", topic, outputs[topic], want)
					}
				}

				// And so are they when looked up.
				looked := map[string]map[string]string{"looked-up": {}}
				for _, key := range []string{"a", "b", "c"} {
					fold(rt, d, &kgo.Record{Topic: "s", Key: []byte(key), Value: []byte("s"), Timestamp: time.UnixMilli(5)}, looked)
					if got := looked["looked-up"][key]; got != joinValues("s", want[key]) {
						rt.Errorf("%q is looked up as %q, want %q", key, got, joinValues("s", want[key]))
					}
				}
			})
		})
	}
}

// fold runs a record and keeps the last value of each key in the outputs.
func fold(t *rapid.T, d *streamstest.Driver, rec *kgo.Record, outputs map[string]map[string]string) {
	if err := d.TryPipe(rec); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.Sent() {
		if to := outputs[r.Topic]; to != nil {
			delete(to, string(r.Key))
			if r.Value != nil {
				to[string(r.Key)] = string(r.Value)
			}
		}
	}
}

func joinValues(l, r string) string { return l + "+" + r }
func notX(_, v string) bool         { return v != "x" }
func hasY(_, v string) bool         { return strings.HasSuffix(v, "Y") }

func sorted(s string) string {
	bytes := []byte(s)
	slices.Sort(bytes)
	return string(bytes)
}

// TestTransformedTable: a transformer computes new values, old values and values
// that are looked up, with a store at hand.
func TestTransformedTable(t *testing.T) {
	for _, store := range []string{"", "kept"} {
		t.Run("store "+store, func(t *testing.T) {
			b := NewBuilder()
			b.AddStateStore(NewKeyValueStore[string, string]("suffixes", nil, nil))
			Process(Stream[string, string](b, "suffix"), func() Processor[string, string, string, string] { return &putting{} },
				Processed{Stores: []string{"suffixes"}})
			closed := 0
			table := TableTransformValues(Table[string, string](b, "in"), func() TableTransformer[string, string, string] { return &suffixing{closed: &closed} },
				TableTransformed[string, string]{Materialized: Materialized[string, string]{Name: store}, Stores: []string{"suffixes"}})
			TableGroupBy(table, func(k, v string) (string, string) { return v, k }).Count().ToStream().To("counts")
			JoinTable(Stream[string, string](b, "s"), table, joinValues).To("joined")
			d := streamstest.NewDriver(t, b.Build())
			var got []string
			for _, in := range []string{"suffix:-:1", "in:a:x", "in:b:x", "s:a:s", "in:a:gone", "s:a:s", "in:a:", "in:b:y"} {
				part := strings.Split(in, ":")
				rec := record(part[0], []byte(part[1]), []byte(part[2]))
				if part[2] == "" {
					rec.Value = nil
				}
				if err := d.TryPipe(rec); err != nil {
					t.Fatal(err)
				}
				for _, r := range d.Sent() {
					switch r.Topic {
					case "counts":
						got = append(got, fmt.Sprintf("%s=%d", r.Key, r.Value[7]))
					case "joined":
						got = append(got, string(r.Value))
					}
				}
			}
			if want := "x1=1 x1=2 s+x1 x1=1 x1=0 y1=1"; strings.Join(got, " ") != want {
				t.Errorf("got %s, want %s", strings.Join(got, " "), want)
			}
			d.Close()
			want := 1
			if store == "" {
				want = 2 // the join has one of its own
			}
			if closed != want {
				t.Errorf("%d transformers were closed, want %d", closed, want)
			}
		})
	}
}

// suffixing adds to each value what the store "suffixes" has for "-".
type suffixing struct {
	suffixes *state.KeyValue[string, string]
	closed   *int
}

func (s *suffixing) Init(ctx *TaskContext) (err error) {
	s.suffixes, err = GetStore[*state.KeyValue[string, string]](ctx, "suffixes")
	return err
}

func (s *suffixing) Transform(_, v string, exists bool) (string, bool, error) {
	suffix, _, err := s.suffixes.Get("-")
	return v + suffix, exists && v != "gone", err
}

func (s *suffixing) Close() error { *s.closed++; return nil }

// putting puts records into the store "suffixes".
type putting struct {
	suffixes *state.KeyValue[string, string]
}

func (p *putting) Init(ctx *ProcessorContext[string, string]) (err error) {
	p.suffixes, err = GetStore[*state.KeyValue[string, string]](ctx, "suffixes")
	return err
}

func (p *putting) Process(r Record[string, string]) error {
	return p.suffixes.Put(r.Key, r.Value, r.Timestamp)
}

func (p *putting) Close() error { return nil }
