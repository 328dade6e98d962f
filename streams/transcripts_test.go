package streams_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// The transcripts in testdata/transcripts are recorded from Java Kafka Streams 4.4.0:
// what its TopologyTestDriver sends, and in which order, for random inputs with late
// records, nulls and tombstones. Lines are records: topic, timestamp in milliseconds,
// key, value and headers. Those that begin with ">" go in, the others come out. Bytes
// that aren't readable are in hexadecimal, after an x. A line "run" begins anew.

// transcribedPrograms are the programs of the transcripts, in Go.
var transcribedPrograms = map[string]func(*Builder) *Topology{
	"stream-join-inner":                   joinProgram(JoinWithKey, 3, 10, 5),
	"stream-join-left":                    joinProgram(LeftJoinWithKey, 10, 10, 0),
	"stream-join-left-grace":              joinProgram(LeftJoinWithKey, 4, 0, 20),
	"stream-join-outer":                   joinProgram(OuterJoinWithKey, 5, 2, 12),
	"stream-join-outer-only-later":        joinProgram(OuterJoinWithKey, -2, 10, 3),
	"stream-join-outer-zero":              joinProgram(OuterJoinWithKey, 0, 0, 0),
	"stream-self-join":                    selfJoinProgram(JoinWithKey, 3, 8, 3, NoOptimization),
	"stream-self-join-single-store":       selfJoinProgram(JoinWithKey, 3, 8, 3, SingleStoreSelfJoin),
	"stream-self-join-outer-single-store": selfJoinProgram(OuterJoinWithKey, 6, 6, 0, OptimizeAll),

	"foreign-key-join-inner": func(b *Builder) *Topology {
		TableForeignKeyJoin(Table[string, string](b, "l"), Table[string, string](b, "r"), firstLetter, joinValues).ToStream().To("out")
		return b.Build()
	},
	"foreign-key-join-left": func(b *Builder) *Topology {
		TableForeignKeyLeftJoin(Table(b, "l", nullableText()), Table(b, "r", nullableText()), func(v *string) (string, bool) { return firstLetter(*v) }, plus,
			TableJoined[string, string, *string]{Name: "fk", Materialized: Materialized[string, *string]{Name: "kept", Value: text}}).
			ToStream().To("out")
		return b.Build()
	},

	"versioned-table": func(b *Builder) *Topology {
		t := versionedTable(b, "l", "vl", 25)
		t.Filter(isNot("x")).ToStream().To("o1")
		TableMapValues(t, strings.ToUpper, versionedStore("vm", 10)).ToStream().To("o2")
		counts := TableGroupBy(TableMapValues(t, strings.ToUpper), swap).Count()
		TableMapValues(counts, func(n int64) string { return strconv.FormatInt(n, 10) }).ToStream().To("o3", ProducedWith(serde.String, serde.String))
		u := Table[string, string](b, "r")
		TableJoin(t, u, joinValues).ToStream().To("o4")
		left := TableLeftJoin(u, t.Filter(isNot("y")), orNullJoin)
		TableGroupBy(left, func(k, v string) (string, string) { return k, v }).Reduce(concat, subtracted).ToStream().To("o5")
		v := Stream[string, string](b, "s").ToTable(versionedStore("vt", 15))
		TableOuterJoin(t, v, orNullJoin, versionedStore("vj", 15)).
			Filter(func(_, v string) bool { return len(v) > 3 }).ToStream().To("o6")
		return b.Build()
	},
	"versioned-aggregate": func(b *Builder) *Topology {
		g := Stream[string, string](b, "l").GroupByKey()
		g.Reduce(func(_, v string) string { return v }, versionedStore("va", 20)).ToStream().To("o1")
		t := Aggregate(g, func() *string { return new("") }, func(_, v string, aggregate *string) *string {
			if v == "x" {
				return nil
			}
			return new(*aggregate + v)
		}, Materialized[string, *string]{Name: "vb", Value: text, HistoryRetention: 20 * time.Millisecond})
		TableGroupBy(t, func(k string, v *string) (string, string) { return *v, k }).
			Reduce(concat, subtracted, versionedStore("vc", 20)).ToStream().To("o2")
		return b.Build()
	},
	"versioned-foreign-key": func(b *Builder) *Topology {
		l, r := versionedTable(b, "l", "vl", 25), versionedTable(b, "r", "vr", 25)
		foreign := func(v string) (string, bool) {
			if v == "x" {
				return "a", true
			}
			return "b", true
		}
		TableForeignKeyJoin(l, r.Filter(isNot("y")), foreign, joinValues).ToStream().To("out")
		TableForeignKeyLeftJoin(l, r, func(v string) (string, bool) {
			key, _ := foreign(v)
			return key, v != "y"
		}, orNullJoin, TableJoined[string, string, string]{Name: "lj", Materialized: versionedStore("kept", 5)}).ToStream().To("out2")
		return b.Build()
	},
	"versioned-grace-join": func(b *Builder) *Topology {
		t := versionedTable(b, "r", "vt", 30)
		add := func(s string) func(string) string { return func(v string) string { return v + s } }
		s := Stream[string, string](b, "l")
		JoinTable(s, TableMapValues(t.Filter(isNot("x")), add("!")), joinValues,
			Joined[string, string, string]{Name: "j", Grace: new(15 * time.Millisecond)}).To("o1")
		LeftJoinTable(s, t, orNullJoin, Joined[string, string, string]{Name: "lj", Grace: new(time.Duration(0))}).To("o2")
		LeftJoinTable(s, TableMapValues(t, add("?")), orNullJoin).To("o3")
		return b.Build()
	},
}

func versionedStore(name string, ms time.Duration) Materialized[string, string] {
	return Materialized[string, string]{Name: name, HistoryRetention: ms * time.Millisecond}
}

func versionedTable(b *Builder, topic, store string, ms time.Duration) *KTable[string, string] {
	return Table(b, topic, versionedStore(store, ms))
}

func isNot(v string) func(string, string) bool {
	return func(_, value string) bool { return value != v }
}

func subtracted(aggregate, v string) string { return aggregate + "-" + v }

// orNullJoin joins values that are never empty: where they are, they are not there.
func orNullJoin(l, r string) string { return cmp.Or(l, "null") + "+" + cmp.Or(r, "null") }

// nullableJoin is a join of streams whose keys and values can be null.
type nullableJoin func(l, r *KStream[*string, *string], f func(k, l, r *string) *string, w JoinWindows, o ...StreamJoined[*string, *string, *string]) *KStream[*string, *string]

func joinProgram(join nullableJoin, before, after, grace time.Duration) func(*Builder) *Topology {
	return func(b *Builder) *Topology {
		join(Stream(b, "l", nullableKeys()), Stream(b, "r", nullableKeys()), plusWithKey, millisWindows(before, after, grace)).To("out", ProducedWith(text, text))
		return b.Build()
	}
}

func selfJoinProgram(join nullableJoin, before, after, grace time.Duration, o Optimization) func(*Builder) *Topology {
	return func(b *Builder) *Topology {
		s := Stream(b, "in", nullableKeys())
		join(s, s, plusWithKey, millisWindows(before, after, grace)).To("out", ProducedWith(text, text))
		return b.Build(TopologyConfig{Optimization: o})
	}
}

func millisWindows(before, after, grace time.Duration) JoinWindows {
	return JoinWindows{Before: before * time.Millisecond, After: after * time.Millisecond, Grace: grace * time.Millisecond}
}

func plusWithKey(k, l, r *string) *string { return new(orNull(k) + ":" + *plus(l, r)) }

// firstLetter is a foreign key, unless it is "-".
func firstLetter(v string) (string, bool) { return v[:1], v[0] != '-' }

func TestTranscripts(t *testing.T) {
	for name, program := range transcribedPrograms {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", "transcripts", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			for i, run := range strings.Split(string(data), "run\n")[1:] {
				if !t.Run(fmt.Sprintf("run %d", i), func(t *testing.T) { checkTranscript(t, program(NewBuilder()), run) }) {
					break
				}
			}
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "transcripts", "*.txt"))
	if err != nil || len(files) != len(transcribedPrograms) {
		t.Errorf("%d programs for %d transcripts (%v)", len(transcribedPrograms), len(files), err)
	}
}

func checkTranscript(t *testing.T, topology *Topology, run string) {
	d := streamstest.NewDriver(t, topology, streamstest.WithStartTime(time.UnixMilli(0)), streamstest.WithConfig(Config{StateStoreCacheMaxBytes: -1}))
	for _, step := range strings.Split(run, "> ")[1:] {
		lines := strings.Split(strings.TrimSuffix(step, "\n"), "\n")
		if err := d.TryPipe(readTranscribed(t, lines[0])); err != nil {
			t.Fatalf("%s: %v", lines[0], err)
		}
		var got []string
		for _, rec := range d.Sent() {
			got = append(got, transcribe(rec))
		}
		if !slices.Equal(got, lines[1:]) {
			t.Fatalf("%s\nsends\n%s\nin Java\n%s", lines[0], strings.Join(got, "\n"), strings.Join(lines[1:], "\n"))
		}
	}
}

func transcribe(r *kgo.Record) string {
	line := fmt.Sprintf("%s %d %s %s", r.Topic, r.Timestamp.UnixMilli(), transcribeBytes(r.Key), transcribeBytes(r.Value))
	if r.Timestamp.IsZero() {
		line = fmt.Sprintf("%s none %s %s", r.Topic, transcribeBytes(r.Key), transcribeBytes(r.Value))
	}
	for _, h := range r.Headers {
		line += " " + h.Key + "=" + string(h.Value)
	}
	return line
}

func transcribeBytes(b []byte) string {
	if b == nil {
		return "null"
	}
	for _, c := range b {
		if c <= ' ' || c > '~' || c == '"' {
			return "x" + hex.EncodeToString(b)
		}
	}
	return `"` + string(b) + `"`
}

func readTranscribed(t *testing.T, line string) *kgo.Record {
	t.Helper()
	field := strings.Fields(line)
	ms, err := strconv.ParseInt(field[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	rec := &kgo.Record{Topic: field[0], Timestamp: time.UnixMilli(ms)}
	for i, to := range []*[]byte{&rec.Key, &rec.Value} {
		if s := field[2+i]; s != "null" {
			*to = []byte(strings.Trim(s, `"`))
		}
	}
	for _, h := range field[4:] {
		key, value, _ := strings.Cut(h, "=")
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	return rec
}
