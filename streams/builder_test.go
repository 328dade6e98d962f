package streams_test

import (
	"errors"
	"strings"
	"testing"

	. "github.com/odradek-go/odradek/streams"
)

// TestBuilderErrors: what can't work is an error of NewApp that names the operator.
func TestBuilderErrors(t *testing.T) {
	type untold struct{}
	for name, c := range map[string]struct {
		program func(*Builder) *Topology
		says    []string
	}{
		"two options": {func(b *Builder) *Topology {
			Stream(b, "in", Consumed[string, string]{}, Consumed[string, string]{})
			return b.Build()
		}, []string{"Stream", "2 options"}},
		"no serde in sink": {func(b *Builder) *Topology {
			FlatMapValues(Stream[string, string](b, "in"), func(string) []untold { return nil }).To("out")
			return b.Build()
		}, []string{"KSTREAM-SINK-0000000002", "values"}},
		"no serde in group": {func(b *Builder) *Topology {
			GroupBy(Stream[string, string](b, "in"), func(_, _ string) untold { return untold{} }).Count()
			return b.Build()
		}, []string{"KSTREAM-SINK-0000000004", "keys"}},
		"no serde in store": {func(b *Builder) *Topology {
			Aggregate(Stream[string, string](b, "in").GroupByKey(), func() untold { return untold{} }, func(_, _ string, u untold) untold { return u })
			return b.Build()
		}, []string{"KSTREAM-AGGREGATE-STATE-STORE-0000000001", "untold"}},
		"one topic as two types": {func(b *Builder) *Topology {
			Stream[string, string](b, "in").To("o1")
			Stream[string, int64](b, "in").To("o2")
			return b.Build()
		}, []string{"KSTREAM-SOURCE-0000000000", "KSTREAM-SOURCE-0000000002", `"in"`, "int64"}},
		"overlapping topics": {func(b *Builder) *Topology {
			StreamOf[string, string](b, []string{"a", "b"}).To("o1")
			StreamOf[string, string](b, []string{"b", "c"}).To("o2")
			return b.Build()
		}, []string{"KSTREAM-SOURCE-0000000000", "KSTREAM-SOURCE-0000000002", `"b"`}},
		"topic given twice": {func(b *Builder) *Topology {
			StreamOf[string, string](b, []string{"a", "a"}).To("o1")
			return b.Build()
		}, []string{`"a"`, "twice"}},
		"different resets": {func(b *Builder) *Topology {
			Stream(b, "in", Consumed[string, string]{OffsetReset: ResetLatest}).To("o1")
			Stream[string, string](b, "in").To("o2")
			return b.Build()
		}, []string{`"in"`, "reset"}},
		"stream and table of one topic": {func(b *Builder) *Topology {
			Stream[string, string](b, "in").To("o1")
			Table[string, string](b, "in").ToStream().To("o2")
			return b.Build()
		}, []string{`"in"`, "already"}},
		"one name for two joins": {func(b *Builder) *Topology {
			s, table := keyed(b, "in"), Table[string, string](b, "t")
			j := Joined[string, string, string]{Name: "j"}
			JoinTable(s, table, concat, j).To("o1")
			JoinTable(s, table, concat, j).To("o2")
			return b.Build()
		}, []string{"j-repartition-filter", "already"}},
		"unknown store": {func(b *Builder) *Topology {
			Process(Stream[string, string](b, "in"), newCounting("st"), Processed{Stores: []string{"st"}}).To("out")
			return b.Build()
		}, []string{`"st"`, "KSTREAM-PROCESSOR-0000000001"}},
		"store that nobody uses": {func(b *Builder) *Topology {
			b.AddStateStore(NewKeyValueStore[string, int64]("st", nil, nil))
			Stream[string, string](b, "in").To("out")
			return b.Build()
		}, []string{`"st"`}},
		"negative partitions": {func(b *Builder) *Topology {
			Stream[string, string](b, "in").Repartition(Repartitioned[string, string]{NumberOfPartitions: -1}).To("out")
			return b.Build()
		}, []string{"Repartition", "-1"}},
		"two builders": {func(b *Builder) *Topology {
			Stream[string, string](b, "in").Merge(Stream[string, string](NewBuilder(), "in2")).To("out")
			return b.Build()
		}, []string{"KSTREAM-MERGE-0000000001", "Builders"}},
		"name for a table at the wrong place": {func(b *Builder) *Topology {
			Table(b, "in", Materialized[string, string]{Processor: "p"}).ToStream().To("out")
			return b.Build()
		}, []string{`"in"`, "Consumed"}},
		"repartition moved to before another type": {func(b *Builder) *Topology {
			s := keyed(b, "in")
			ProcessValues(s, func() FixedKeyProcessor[string, string, int64] { return nil }).GroupByKey().Count()
			s.GroupByKey().Count()
			return b.Build(optimizeAll)
		}, []string{"KSTREAM-PROCESSVALUES-0000000002", "int64"}},
		"generated names": {func(b *Builder) *Topology {
			keyed(b, "in").GroupByKey().Count()
			JoinTable(keyed(b, "in2"), Table[string, string](b, "t"), concat).To("out")
			return b.Build(TopologyConfig{EnsureExplicitInternalResourceNaming: true})
		}, []string{
			"KSTREAM-AGGREGATE-STATE-STORE-0000000002", "KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition",
			"t-STATE-STORE-0000000009", "KSTREAM-KEY-SELECT-0000000008-repartition",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			topology := c.program(NewBuilder())
			_, err := NewApp(topology, Config{ApplicationID: "app", Brokers: []string{"localhost:1"}})
			if !errors.Is(err, ErrTopology) {
				t.Fatalf("got %v", err)
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %s", err, word)
				}
			}
		})
	}
}

// TestExplicitNames: where all that matters has a name, there is no error.
func TestExplicitNames(t *testing.T) {
	b := NewBuilder()
	keyed(b, "in").GroupByKey().Count(Materialized[string, int64]{Name: "counts"})
	keyed(b, "in2").GroupByKey(named("g")).Reduce(first, Materialized[string, string]{Name: "reduced"})
	table := Table(b, "t", Materialized[string, string]{Name: "table"})
	JoinTable(keyed(b, "in3"), table, concat, Joined[string, string, string]{Name: "j"}).To("out")
	Table[string, string](b, "t2").Filter(all).ToStream().To("out2") // has no store
	keyed(b, "in4").Repartition(Repartitioned[string, string]{Name: "r"}).To("out3")
	if _, err := b.Build(TopologyConfig{EnsureExplicitInternalResourceNaming: true}).Describe(); err != nil {
		t.Error(err)
	}
}
