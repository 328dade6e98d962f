package streams_test

import (
	"maps"
	"strings"

	. "github.com/odradek-go/odradek/streams"
)

func init() { maps.Copy(vectorPrograms, headersPrograms) }

// headersPrograms are the programs of the vectors whose stores have headers.
var headersPrograms = map[string]func(*Builder) *Topology{
	"54-headers-format-kv": func(b *Builder) *Topology {
		Stream(b, "in", ConsumedWith(text, text)).GroupByKey().Count(Materialized[*string, int64]{Name: "cnt"}).ToStream().To("o1")
		table := Table(b, "tab", ConsumedWith(text, text), MaterializedWith("ts", text, text))
		table.ToStream().To("o2")
		TableMapValues(table, func(v *string) *string { return new(strings.ToUpper(*v)) }, MaterializedWith("mv", text, text)).ToStream().To("o3")
		JoinTable(Stream(b, "in2", ConsumedWith(text, text)), table, plus).To("o4", ProducedWith(text, text))
		inMemory := Materialized[*string, *string]{Name: "ts2", Key: text, Value: text, StoreType: InMemory}
		TableJoin(table, Table(b, "tab2", ConsumedWith(text, text), inMemory), plus, MaterializedWith("tj", text, text)).ToStream().To("o5")
		TableGroupBy(table, func(k, v *string) (*string, *string) { return v, k }, Grouped[*string, *string]{Name: "tg", Key: text, Value: text}).
			Count(Materialized[*string, int64]{Name: "tgc"}).ToStream().To("o6")
		return b.Build(TopologyConfig{StoreFormat: HeadersFormat})
	},
	"55-headers-format-window-session": func(b *Builder) *Topology {
		g := textByKey(b, "in")
		count := func(name string) Materialized[*string, int64] { return Materialized[*string, int64]{Name: name} }
		WindowedBy(g, TimeWindows{Size: 10 * ms, Grace: 5 * ms}).Count(count("w")).ToStream().To("o1")
		SessionWindowedBy(g, SessionWindows{InactivityGap: 10 * ms, Grace: 5 * ms}).Count(count("s")).ToStream().To("o2")
		WindowedBy(g, SlidingWindows{TimeDifference: 10 * ms, Grace: 5 * ms}).Count(count("sl")).ToStream().To("o3")
		WindowedBy(g, TimeWindows{Size: 10 * ms}).EmitStrategy(OnWindowClose).Count(count("ew")).ToStream().To("o4")
		SuppressUntilWindowCloses(WindowedBy(g, TimeWindows{Size: 10 * ms}).Count(count("sw")), Suppressed{Name: "sup"}).ToStream().To("o5")
		return b.Build(TopologyConfig{StoreFormat: HeadersFormat})
	},
}
