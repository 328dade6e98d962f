package streams_test

import (
	"maps"
	"strings"
	"time"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
)

func init() { maps.Copy(vectorPrograms, windowPrograms) }

const ms = time.Millisecond

// windowPrograms are those of vectorPrograms that have windows.
var windowPrograms = map[string]func(*Builder) *Topology{
	"16-tumbling-count": func(b *Builder) *Topology {
		g := textByKey(b, "in")
		WindowedBy(g, TimeWindows{Size: 10 * ms, Grace: 5 * ms}).Count().ToStream().To("out")
		counts := WindowedBy(g, TimeWindows{Size: 100 * ms}).Count(Materialized[*string, int64]{Name: "wst", Processor: "wc", Retention: time.Hour})
		ToStreamWithKey(counts, func(w serde.Windowed[*string], _ int64) *string { return w.Key }).To("out2", ProducedWith(text, serde.Int64))
		return b.Build()
	},
	"18-sliding-count": func(b *Builder) *Topology {
		g := textByKey(b, "in")
		WindowedBy(g, SlidingWindows{TimeDifference: 10 * ms, Grace: 50 * ms}).Count(Materialized[*string, int64]{Name: "sl"}).ToStream().To("out")
		WindowedAggregate(WindowedBy(g, SlidingWindows{TimeDifference: 5 * ms}), empty, appended, MaterializedWith("", text, text)).ToStream().To("out2")
		return b.Build()
	},
	"19-session-count": func(b *Builder) *Topology {
		g := textByKey(b, "in")
		SessionWindowedBy(g, SessionWindows{InactivityGap: 10 * ms, Grace: 20 * ms}).Count(Materialized[*string, int64]{Name: "ses"}).ToStream().To("out")
		SessionAggregate(SessionWindowedBy(g, SessionWindows{InactivityGap: 5 * ms}), empty, appended,
			func(_, a, b *string) *string { return new(orNull(a) + "|" + orNull(b)) }, MaterializedWith("", text, text)).ToStream().To("out2")
		SessionWindowedBy(g, SessionWindows{InactivityGap: 5 * ms, Grace: 100 * ms}).
			Reduce(func(a, b *string) *string { return new(orNull(a) + orNull(b)) }).ToStream().To("out3")
		return b.Build()
	},
	"20-suppress-window-close": func(b *Builder) *Topology {
		counts := WindowedBy(textByKey(b, "in"), TimeWindows{Size: 10 * ms, Grace: 5 * ms}).Count()
		SuppressUntilWindowCloses(counts).ToStream().To("out")
		counts = WindowedBy(textByKey(b, "in2"), TimeWindows{Size: 10 * ms}).Count(Materialized[*string, int64]{Name: "c2"})
		SuppressUntilWindowCloses(counts, Suppressed{Name: "supp", MaxRecords: 2}).ToStream().To("out2")
		return b.Build()
	},
	"21-suppress-time-limit": func(b *Builder) *Topology {
		t := Table(b, "in", ConsumedWith(text, text), MaterializedWith("tstore", text, text))
		t.SuppressUntilTimeLimit(10*ms, Suppressed{MaxRecords: 2}).ToStream().To("out")
		in2 := Stream(b, "in2", ConsumedWith(text, text))
		in2.GroupByKey().Count().SuppressUntilTimeLimit(10*ms, Suppressed{Name: "tl"}).ToStream().To("out2")
		in2.GroupByKey().Count().SuppressUntilTimeLimit(0, Suppressed{MaxRecords: 1, LoggingDisabled: true}).ToStream().To("out3")
		return b.Build()
	},
	"22-suppress-session-close": func(b *Builder) *Topology {
		SuppressUntilWindowCloses(SessionWindowedBy(textByKey(b, "in"), SessionWindows{InactivityGap: 5 * ms}).Count()).ToStream().To("out")
		return b.Build()
	},
	"23-emit-on-close-tumbling": func(b *Builder) *Topology {
		WindowedBy(textByKey(b, "in"), TimeWindows{Size: 10 * ms, Grace: 5 * ms}).EmitStrategy(OnWindowClose).Count().ToStream().To("out")
		hopping := WindowedBy(textByKey(b, "in2"), TimeWindows{Size: 10 * ms, Advance: 5 * ms}).EmitStrategy(OnWindowClose)
		WindowedAggregate(hopping, empty, appended, MaterializedWith("eocs", text, text).As("eoc")).ToStream().To("out2")
		return b.Build()
	},
	"25-emit-on-close-session": func(b *Builder) *Topology {
		SessionWindowedBy(textByKey(b, "in"), SessionWindows{InactivityGap: 5 * ms, Grace: 5 * ms}).EmitStrategy(OnWindowClose).
			Count(Materialized[*string, int64]{Name: "ss"}).ToStream().To("out")
		return b.Build()
	},
	"58-caching-on": func(b *Builder) *Topology {
		f := FlatMapValues(Stream[string, string](b, "in"), func(v string) []string { return strings.Split(v, ",") })
		f.GroupByKey().Count(Materialized[string, int64]{Name: "kc"}).ToStream().To("o1")
		WindowedBy(f.GroupByKey(), TimeWindows{Size: 10 * ms}).Count(Materialized[string, int64]{Name: "wc"}).ToStream().To("o2")
		SessionWindowedBy(f.GroupByKey(), SessionWindows{InactivityGap: 10 * ms}).Count(Materialized[string, int64]{Name: "sc"}).ToStream().To("o3")
		f.GroupByKey().Count(Materialized[string, int64]{Name: "nc", CachingDisabled: true}).ToStream().To("o4")
		return b.Build()
	},
	"73-throttled-emission": func(b *Builder) *Topology {
		l, r := Stream(b, "l", nullableKeys()), Stream(b, "r", nullableKeys())
		LeftJoin(l, r, plus, TimeDifference(10*ms)).To("o1", ProducedWith(text, text))
		WindowedBy(textByKey(b, "in"), TimeWindows{Size: 10 * ms}).EmitStrategy(OnWindowClose).
			Count(Materialized[*string, int64]{Name: "t", Retention: time.Hour}).ToStream().To("o2")
		SessionWindowedBy(textByKey(b, "in3"), SessionWindows{InactivityGap: 10 * ms}).EmitStrategy(OnWindowClose).
			Count(Materialized[*string, int64]{Name: "s", Retention: time.Hour}).ToStream().To("o3")
		return b.Build()
	},
}

func textByKey(b *Builder, topic string) *KGroupedStream[*string, *string] {
	return Stream(b, topic, ConsumedWith(text, text)).GroupByKey()
}

func empty() *string { return new("") }

func appended(_, v, aggregate *string) *string { return new(orNull(aggregate) + orNull(v)) }
