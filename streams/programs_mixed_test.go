package streams_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
)

func init() { maps.Copy(vectorPrograms, mixedPrograms) }

// mixedPrograms are the programs of the vectors of settings that all operators have to
// do with, in Go.
var mixedPrograms = map[string]func(*Builder) *Topology{
	"44-opt-merge-repartition": func(b *Builder) *Topology {
		afterMap(b)
		return b.Build(TopologyConfig{Optimization: OptimizeAll})
	},
	"45-unopt-merge-repartition": func(b *Builder) *Topology {
		afterMap(b)
		return b.Build()
	},
	"50-store-kinds-and-configs": func(b *Builder) *Topology {
		in := Stream[string, string](b, "in")
		g := in.GroupByKey()
		g.Count(Materialized[string, int64]{Name: "im", StoreType: InMemory, ChangelogConfig: map[string]string{"segment.bytes": "99", "cleanup.policy": "delete"}})
		g.Count(Materialized[string, int64]{Name: "nolog", LoggingDisabled: true})
		g.Count(Materialized[string, int64]{Name: "lru", StoreType: InMemory, MaxEntries: 2})
		windows := TimeWindows{Size: 10 * ms, Grace: 5 * ms}
		// Java's suppliers of stores have a retention that their changelogs don't.
		asWindows := map[string]string{"retention.ms": "5015"}
		WindowedBy(g, windows).Count(Materialized[string, int64]{Name: "imw", StoreType: InMemory, Retention: time.Hour, ChangelogConfig: asWindows})
		WindowedBy(g, windows).Count(Materialized[string, int64]{Name: "pw", Retention: 2 * time.Hour, ChangelogConfig: map[string]string{"retention.ms": "42"}})
		sessions := SessionWindows{InactivityGap: 10 * ms, Grace: 5 * ms}
		SessionWindowedBy(g, sessions).Count(Materialized[string, int64]{Name: "ims", StoreType: InMemory, Retention: time.Hour, ChangelogConfig: asWindows})
		SessionWindowedBy(g, sessions).Count(Materialized[string, int64]{Name: "ps", Retention: 3 * time.Hour})
		g.Count(Materialized[string, int64]{Name: "plainkv"})
		Map(in, func(k, v string) (string, string) { return k, v }).GroupByKey(named("rp")).Count(Materialized[string, int64]{StoreType: InMemory})
		Table(b, "vin", Materialized[string, string]{Name: "vst", HistoryRetention: time.Hour})
		return b.Build()
	},
	"51-in-memory-dsl-default": func(b *Builder) *Topology {
		g := Stream[string, string](b, "in").GroupByKey()
		g.Count().ToStream().To("o1")
		WindowedBy(g, TimeWindows{Size: 10 * ms}).Count().ToStream().To("o2")
		SessionWindowedBy(g, SessionWindows{InactivityGap: 10 * ms}).Count().ToStream().To("o3")
		LeftJoin(Stream(b, "l", nullableText()), Stream(b, "r", nullableText()), plus, TimeDifference(10*ms)).To("o4", ProducedWith(serde.String, text))
		return b.Build(TopologyConfig{StoreType: InMemory})
	},
	"53-headers-propagation": func(b *Builder) *Topology {
		s := Stream[string, string](b, "in")
		MapValues(s, strings.ToUpper).To("o1")
		FlatMapValues(s, func(v string) []string { return []string{v, v} }).To("o2")
		SelectKey(s, func(_, v string) string { return v }).Repartition(Repartitioned[string, string]{Name: "hr"}).To("o3")
		ProcessValues(s, func() FixedKeyProcessor[string, string, string] { return &adding{} }).To("o4")
		s.GroupByKey().Count().ToStream().To("o5")
		SuppressUntilWindowCloses(WindowedBy(s.GroupByKey(), TimeWindows{Size: 10 * ms}).Count()).ToStream().To("o6")
		return b.Build()
	},
}

// afterMap has several repartition topics behind a change of keys.
func afterMap(b *Builder) {
	m := Map(Stream[string, string](b, "in"), func(k, v string) (string, string) { return v, k })
	m.GroupByKey(named("g1")).Count().ToStream().To("o1")
	m.GroupByKey(named("g2")).Reduce(concat).ToStream().To("o2")
	Aggregate(MapValues(m, func(v string) string { return v + "!" }).GroupByKey(), func() string { return "" },
		func(_, v, a string) string { return a + v }, MaterializedWith("", serde.String, serde.String)).ToStream().To("o3")
	Join(m, Stream[string, string](b, "r"), joinValues, TimeDifference(10*ms)).To("o4")
}

// adding adds a header.
type adding struct {
	ctx *FixedKeyProcessorContext[string, string]
}

func (p *adding) Init(ctx *FixedKeyProcessorContext[string, string]) error { p.ctx = ctx; return nil }
func (*adding) Close() error                                               { return nil }

func (p *adding) Process(r FixedKeyRecord[string, string]) error {
	r.Headers = append(slices.Clone(r.Headers), Header{Key: "added", Value: []byte("1")})
	return p.ctx.Forward(r)
}
