package streams_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
)

// describedPrograms are the programs whose descriptions in testdata/descriptions
// are recorded from Java Kafka Streams 4.4.0: how names, stores and repartition
// topics come about where several operators have to do with it.
var describedPrograms = map[string]func(*Builder) *Topology{
	"merged-unnamed-repartitions": func(b *Builder) *Topology {
		s := keyed(b, "in")
		s.GroupByKey().Count()
		s.GroupByKey().Reduce(first)
		return b.Build(optimizeAll)
	},
	"merged-repartitions-behind-filter": func(b *Builder) *Topology {
		s := keyed(b, "in")
		s.Filter(all).GroupByKey(named("g1")).Count()
		s.Peek(func(_, _ string) {}).GroupByKey(named("g2")).Reduce(first)
		MapValues(s, same).GroupByKey(named("g3")).Count()
		return b.Build(optimizeAll)
	},
	"repartitions-behind-merge": func(b *Builder) *Topology {
		keyed(b, "in").Merge(keyed(b, "in2")).GroupByKey(named("g")).Count().ToStream().To("o")
		return b.Build(optimizeAll)
	},
	"repartitions-behind-two-merges": func(b *Builder) *Topology {
		l, r := keyed(b, "in"), keyed(b, "in2")
		l.Merge(r).GroupByKey(named("g")).Count().ToStream().To("o")
		l.Merge(r).GroupByKey(named("g2")).Count().ToStream().To("o2")
		return b.Build(optimizeAll)
	},
	"merged-repartitions-with-join": func(b *Builder) *Topology {
		t := Table[string, string](b, "t")
		s := keyed(b, "in")
		s.GroupByKey(named("g")).Count()
		JoinTable(s, t, concat).To("o1")
		LeftJoinTable(s, t, concat, Joined[string, string, string]{Name: "lj"}).To("o2")
		return b.Build(optimizeAll)
	},
	"process-behind-selectkey": func(b *Builder) *Topology {
		s := keyed(b, "in")
		ProcessValues(s, newUpperValues).GroupByKey(named("g1")).Count()
		s.GroupByKey(named("g2")).Count()
		return b.Build(optimizeAll)
	},
	"process-behind-selectkey-fixed": func(b *Builder) *Topology {
		s := keyed(b, "in")
		ProcessValues(s, newUpperValues).GroupByKey(named("g1")).Count()
		Process(s, newUpper).GroupByKey(named("g2")).Count()
		s.GroupByKey(named("g3")).Count()
		return b.Build(TopologyConfig{Optimization: OptimizeAll, ProcessProcessValuesFix: true})
	},
	"unnamed-joins-share-repartition": func(b *Builder) *Topology {
		s := keyed(b, "in")
		t := Table[string, string](b, "t")
		JoinTable(s, t, concat).To("o1")
		LeftJoinTable(s, t, concat).To("o2")
		return b.Build()
	},
	"named-group-shares-repartition": func(b *Builder) *Topology {
		g := keyed(b, "in").GroupByKey(named("g"))
		g.Count().ToStream().To("o1")
		Stream[string, string](b, "x").To("y")
		g.Reduce(first).ToStream().To("o2")
		return b.Build()
	},
	"named-table-group-shares-repartition": func(b *Builder) *Topology {
		g := TableGroupBy(Table[string, string](b, "t"), swap, named("tg"))
		g.Count(Materialized[string, int64]{Processor: "cn"})
		Stream[string, string](b, "x").To("y")
		g.Reduce(first, first)
		return b.Build()
	},
	"sources-of-one-topic": func(b *Builder) *Topology {
		Stream[string, string](b, "in").To("o1")
		Stream[string, string](b, "x").To("o2")
		Stream[string, string](b, "in").Filter(all).To("o3")
		return b.Build()
	},
	"materialized-without-name": func(b *Builder) *Topology {
		withText := MaterializedWith("", serde.String, serde.String)
		withCount := MaterializedWith("", serde.String, serde.Int64)
		Stream[string, string](b, "in").GroupByKey().Count(withCount).ToStream().To("o")
		TableGroupBy(Table[string, string](b, "t"), swap, named("tg")).Count(withCount)
		t2 := Table[string, string](b, "t2")
		t2.Filter(all, withText).ToStream().To("o2")
		TableMapValues(t2, same, withText).ToStream().To("o3")
		TableJoin(t2, TableMapValues(t2, same), concat, withText).ToStream().To("o4")
		Stream[string, string](b, "s").ToTable(withText).ToStream().To("o5")
		return b.Build()
	},
	"cogroup-named": func(b *Builder) *Topology {
		g1 := Stream[string, string](b, "in1").GroupByKey()
		g2 := GroupBy(Stream[string, string](b, "in2"), func(_, v string) string { return v }, named("g2"))
		add := func(_, v, aggregate string) string { return aggregate + v }
		AddCogroup(Cogroup(g1, add), g2, add).Aggregate(func() string { return "" }, Materialized[string, string]{Processor: "n"}).ToStream().To("o")
		return b.Build()
	},
	"tables-materialized-by-use": func(b *Builder) *Topology {
		t := Table[string, string](b, "t")
		TableTransformValues(t, newPassing).FilterNot(all).ToStream().To("q")
		TableJoin(t, TableMapValues(t, same), concat).ToStream().To("r")
		u := TableTransformValues(TableMapValues(Table[string, string](b, "u"), same), newPassing,
			TableTransformed[string, string]{Materialized: Materialized[string, string]{Processor: "tv"}})
		TableGroupBy(u, swap).Count()
		joined := TableLeftJoin(Table[string, string](b, "w"), Table[string, string](b, "x").Filter(all), concat)
		TableGroupBy(joined.Filter(all), swap).Reduce(first, first)
		counts := Stream[string, string](b, "y").GroupByKey().Count()
		more := TableMapValues(counts, func(n int64) int64 { return n + 1 }).Filter(func(string, int64) bool { return true })
		TableJoin(more, counts, func(a, b int64) int64 { return a + b }).ToStream().To("z")
		return b.Build()
	},
	"stream-joined-with-derived-table": func(b *Builder) *Topology {
		a := Table[string, string](b, "a")
		j := TableMapValues(TableOuterJoin(a, TableMapValues(Table[string, string](b, "b"), same), concat), same)
		LeftJoinTable(Stream[string, string](b, "s"), j, concat).To("o")
		TableJoin(keyed(b, "s2").ToTable(), j, concat).ToStream().To("p")
		return b.Build()
	},
	"foreign-key-joins": func(b *Builder) *Topology {
		l, r := Table[string, string](b, "l"), Table[string, string](b, "r")
		TableForeignKeyLeftJoin(l, TableMapValues(r, same), itself, concat).ToStream().To("o1")
		TableForeignKeyJoin(l.Filter(all), r, itself, concat, TableJoined[string, string, string]{
			Name: "fk", Materialized: Materialized[string, string]{Name: "kept"},
		}).ToStream().To("o2")
		third := TableForeignKeyJoinWithKey(keyed(b, "s").ToTable(), l, func(k, _ string) (string, bool) { return k, true }, concat,
			TableJoined[string, string, string]{Name: "fk2"})
		TableForeignKeyJoin(third, r, itself, concat).ToStream().To("o3")
		return b.Build()
	},
	"foreign-key-join-behind-shared-repartition": func(b *Builder) *Topology {
		g := keyed(b, "in").GroupByKey(named("g"))
		TableForeignKeyJoin(g.Reduce(first), Table[string, string](b, "r"), itself, concat,
			TableJoined[string, string, string]{Name: "fk"}).ToStream().To("o1")
		g.Reduce(concat).ToStream().To("o2")
		return b.Build()
	},
	"foreign-key-join-of-one-table": func(b *Builder) *Topology {
		t := Table[string, string](b, "t")
		j := TableForeignKeyJoin(t, t, itself, concat)
		TableGroupBy(j, swap).Count().ToStream().To("o1")
		JoinTable(Stream[string, string](b, "s"), j, concat).To("o2")
		return b.Build(optimizeAll)
	},
	"global-tables": func(b *Builder) *Topology {
		Stream[string, string](b, "first").To("o0")
		g := GlobalTable(b, "gt", Consumed[string, string]{Name: "gsrc"})
		byValue := func(_, v string) (string, bool) { return v, true }
		JoinGlobalTable(keyed(b, "in"), g, byValue, concat).GroupByKey().Count()
		store := func(name string) StateStore { return NewKeyValueStore[string, string](name, nil, nil) }
		GlobalStore(b, store("gs"), "gst", newFilling("gs", same), nullableText())
		GlobalStore(b, store("gs2"), "gst2", newFilling("gs2", same), nullableText().As("named"))
		LeftJoinGlobalTable(keyed(b, "in2"), g, byValue, concat, "lj").GroupByKey().Count()
		return b.Build()
	},
	"stream-joins": func(b *Builder) *Topology {
		l, r := keyed(b, "l"), keyed(b, "r")
		Join(l, r, concat, window).To("o1")
		LeftJoin(l, r, concat, window, streamJoined("named", "")).To("o2")
		OuterJoin(Stream[string, string](b, "p"), r, concat, window, streamJoined("oj", "st")).To("o3")
		LeftJoin(l, Stream[string, string](b, "q"), concat, window, streamJoined("", "st2")).To("o4")
		return b.Build()
	},
	"stream-joins-with-own-stores": func(b *Builder) *Topology {
		l, r := Stream[string, string](b, "l"), Stream[string, string](b, "r")
		OuterJoin(l, r, concat, window, StreamJoined[string, string, string]{ThisStoreName: "one", OtherStoreName: "two"}).To("o1")
		LeftJoin(l, r, concat, window, StreamJoined[string, string, string]{Name: "m", StoreName: "base", ThisStoreName: "this"}).To("o2")
		return b.Build()
	},
	"stream-joins-optimized": func(b *Builder) *Topology {
		s := keyed(b, "in")
		Join(s, s, concat, window).To("o1")
		OuterJoin(s, s, concat, window, streamJoined("oj", "")).To("o2")
		a, again := Stream[string, string](b, "a"), Stream[string, string](b, "a")
		Join(a, again, concat, window).To("o3")
		LeftJoin(a, a, concat, window, streamJoined("x", "y")).GroupByKey().Count()
		return b.Build(optimizeAll)
	},
	"stream-self-join-of-repartitioned": func(b *Builder) *Topology {
		s := keyed(b, "in")
		Join(s, s, concat, window).To("o1")
		LeftJoin(s, s, concat, window, streamJoined("n", "")).To("o2")
		return b.Build()
	},
	"stream-table-grace-join": func(b *Builder) *Topology {
		t := Table(b, "t", Materialized[string, string]{Name: "vt", HistoryRetention: 5 * time.Minute})
		JoinTable(keyed(b, "in"), TableMapValues(t, same), concat, Joined[string, string, string]{Grace: new(time.Minute)}).To("o1")
		return b.Build()
	},
	"split-named": func(b *Builder) *Topology {
		m := keyed(b, "in").Split("sp-").Branch(all).Branch(all, Branched[string, string]{Name: "b2"}).NoDefaultBranch()
		m["sp-1"].GroupByKey().Count()
		m["sp-b2"].GroupByKey(named("g")).Count()
		return b.Build()
	},
}

var optimizeAll = TopologyConfig{Optimization: OptimizeAll}

func keyed(b *Builder, topic string) *KStream[string, string] {
	return SelectKey(Stream[string, string](b, topic), func(_, v string) string { return v })
}

var window = TimeDifference(20 * time.Millisecond)

func streamJoined(name, store string) StreamJoined[string, string, string] {
	return StreamJoined[string, string, string]{Name: name, StoreName: store}
}

func named(name string) Grouped[string, string] { return Grouped[string, string]{Name: name} }

func itself(v string) (string, bool)    { return v, true }
func all(_, _ string) bool              { return true }
func same(v string) string              { return v }
func first(aggregate, _ string) string  { return aggregate }
func concat(a, b string) string         { return a + b }
func swap(k, v string) (string, string) { return v, k }

// passing is a transformer that changes nothing.
type passing struct{}

func newPassing() TableTransformer[string, string, string] { return passing{} }

func (passing) Init(*TaskContext) error { return nil }
func (passing) Close() error            { return nil }
func (passing) Transform(_, v string, exists bool) (string, bool, error) {
	return v, exists, nil
}

func TestDescriptions(t *testing.T) {
	for name, program := range describedPrograms {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", "descriptions", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			b := NewBuilder()
			topology := program(b)
			got, err := topology.Describe()
			if err != nil || got != string(want) {
				t.Errorf("describes as\n%s\n%v, in Java as\n%s", got, err, want)
			}
			if _, err := topology.Compile(Config{ApplicationID: "app"}); err != nil {
				t.Error(err)
			}
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "descriptions", "*.txt"))
	if err != nil || len(files) != len(describedPrograms) {
		t.Errorf("%d programs for %d descriptions (%v)", len(describedPrograms), len(files), err)
	}
}

// TestBuildAgain: Build can be called again, with another configuration or after
// more calls, and changes nothing in the builder.
func TestBuildAgain(t *testing.T) {
	b := NewBuilder()
	s := keyed(b, "in")
	s.GroupByKey().Count().ToStream().To("o1")
	s.GroupByKey().Reduce(first).ToStream().To("o2")
	plain := describe(t, b.Build())
	if optimized := describe(t, b.Build(optimizeAll)); optimized == plain {
		t.Error("nothing was optimized")
	}
	if again := describe(t, b.Build()); again != plain {
		t.Errorf("describes the next time as\n%s\nbefore as\n%s", again, plain)
	}
	Stream[string, string](b, "more").To("o3")
	if more := describe(t, b.Build()); !strings.Contains(more, "topic: o3") {
		t.Errorf("describes with more as\n%s", more)
	}
}

func describe(t *testing.T, topology *Topology) string {
	t.Helper()
	text, err := topology.Describe()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
