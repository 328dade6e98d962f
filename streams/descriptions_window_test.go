package streams_test

import (
	"maps"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
)

func init() { maps.Copy(describedPrograms, describedWindowPrograms) }

var describedWindowPrograms = map[string]func(*Builder) *Topology{
	"windowed-materialized-without-name": func(b *Builder) *Topology {
		g := Stream[string, string](b, "in").GroupByKey()
		counts := MaterializedWith("", serde.String, serde.Int64)
		WindowedBy(g, tumbling).Count(counts).ToStream().To("o1")
		WindowedBy(g, sliding).Count(counts).ToStream().To("o2")
		SessionWindowedBy(g, sessions).Count(counts).ToStream().To("o3")
		WindowedBy(g, sliding).Count().ToStream().To("o4")
		WindowedBy(g, tumbling).Reduce(first, MaterializedWith("", serde.String, serde.String)).ToStream().To("o5")
		SessionWindowedBy(g, sessions).Reduce(first, Materialized[string, string]{Processor: "sr"}).ToStream().To("o6")
		return b.Build()
	},
	"windowed-behind-repartition": func(b *Builder) *Topology {
		s := keyed(b, "in")
		WindowedBy(s.GroupByKey(), tumbling).Count().ToStream().To("o1")
		WindowedBy(s.GroupByKey(named("g")), sliding).Reduce(first).ToStream().To("o2")
		SessionWindowedBy(s.GroupByKey(), sessions).Count(Materialized[string, int64]{Name: "ss", Processor: "sc"}).ToStream().To("o3")
		return b.Build()
	},
	"windowed-merged-repartitions": func(b *Builder) *Topology {
		s := keyed(b, "in")
		g := s.GroupByKey(named("g"))
		WindowedBy(g, tumbling).Count().ToStream().To("o1")
		SessionWindowedBy(g, sessions).Count().ToStream().To("o2")
		s.GroupByKey().Count().ToStream().To("o3")
		return b.Build(optimizeAll)
	},
	"windowed-cogroup": func(b *Builder) *Topology {
		g1 := Stream[string, string](b, "in1").GroupByKey()
		g2 := GroupBy(Stream[string, string](b, "in2"), func(_, v string) string { return v }, named("g2"))
		AddCogroup(Cogroup(g1, join3), g2, join3).WindowedBy(tumbling).Aggregate(noText, Materialized[string, string]{Name: "tw"}).ToStream().To("o1")
		return b.Build()
	},
	"windowed-cogroup-named": func(b *Builder) *Topology {
		g1, g2 := Stream[string, string](b, "in1").GroupByKey(), Stream[string, string](b, "in2").GroupByKey()
		c := AddCogroup(Cogroup(g1, join3), g2, join3)
		c.WindowedBy(sliding).Aggregate(noText, Materialized[string, string]{Processor: "sl", Key: serde.String, Value: serde.String}).ToStream().To("o1")
		merged := c.SessionWindowedBy(sessions).Aggregate(noText, join3, Materialized[string, string]{Processor: "se", Key: serde.String, Value: serde.String})
		SuppressUntilWindowCloses(merged).ToStream().To("o2")
		return b.Build()
	},
	"suppressed-tables": func(b *Builder) *Topology {
		t := Table[string, string](b, "t")
		s := t.SuppressUntilTimeLimit(10 * ms)
		s.Filter(all).ToStream().To("o1")
		TableJoin(s, TableMapValues(t, same), concat).ToStream().To("o2")
		TableMapValues(s, same, Materialized[string, string]{Name: "mv"}).ToStream().To("o3")
		TableMapValues(t, same).SuppressUntilTimeLimit(10*ms, Suppressed{Name: "named", MaxRecords: 5}).ToStream().To("o4")
		JoinTable(Stream[string, string](b, "s"), s, concat).To("o5")
		return b.Build()
	},
	"suppressed-windows-below-filter": func(b *Builder) *Topology {
		c := WindowedBy(Stream[string, string](b, "in").GroupByKey(), tumbling).Count()
		inc := func(n int64) int64 { return n + 1 }
		filtered := TableMapValues(c.Filter(func(_ serde.Windowed[string], n int64) bool { return n > 1 }), inc)
		ToStreamWithKey(SuppressUntilWindowCloses(filtered), func(w serde.Windowed[string], _ int64) string { return w.Key }).To("o1")
		sum := func(a, b int64) int64 { return a + b }
		TableGroupBy(c, func(w serde.Windowed[string], n int64) (string, int64) { return w.Key, n }).
			Reduce(sum, func(a, b int64) int64 { return a - b }).ToStream().To("o2")
		TableJoin(c, TableMapValues(c, inc), sum).ToStream().To("o3")
		c.ToStream().GroupByKey().Count().ToStream().To("o4")
		return b.Build()
	},
}

var (
	tumbling = TimeWindows{Size: 10 * ms}
	sliding  = SlidingWindows{TimeDifference: 10 * ms}
	sessions = SessionWindows{InactivityGap: 10 * ms}
)

func noText() string              { return "" }
func join3(_, a, b string) string { return a + b }
