package streams_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	. "github.com/odradek-go/odradek/streams"
)

// text is a string that can be null, as Java's String is.
var text = serde.Pointer(serde.String)

func nullableText() Consumed[string, *string] { return ConsumedWith(serde.String, text) }

// plus is the joiner of the vectors' programs.
func plus(a, b *string) *string { return new(orNull(a) + "+" + orNull(b)) }

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// vectorPrograms are the programs of the vectors in testdata, in Go.
var vectorPrograms = map[string]func(*Builder) *Topology{
	"01-map-filter": func(b *Builder) *Topology {
		s := Stream[string, string](b, "in").
			Filter(func(_, v string) bool { return len(v) > 1 }).
			FilterNot(func(_, v string) bool { return strings.HasPrefix(v, "x") })
		s = Map(s, func(k, v string) (string, string) { return k + "!", strings.ToUpper(v) })
		s = MapValues(s, func(v string) string { return v + "?" })
		s = MapValuesWithKey(s, func(k, v string) string { return k + ":" + v })
		s.Peek(func(_, _ string) {}).To("out")
		return b.Build()
	},
	"02-flatmap-selectkey-foreach": func(b *Builder) *Topology {
		s := Stream[string, string](b, "in")
		f := FlatMap(s, func(k, v string) (out []KeyValue[string, string]) {
			for _, w := range strings.Split(v, " ") {
				out = append(out, KeyValue[string, string]{w, k})
			}
			return out
		})
		g := FlatMapValues(f, func(v string) []string { return []string{v + "1", v + "2"} })
		SelectKey(g, func(_, v string) string { return v }).To("out")
		g.ForEach(func(_, _ string) {})
		FlatMapValuesWithKey(s, func(k, v string) []string { return []string{k, v} }).To("out2")
		return b.Build()
	},
	"03-merge-multi-source": func(b *Builder) *Topology {
		a := StreamOf[string, string](b, []string{"in2", "in1"})
		a.Merge(Stream[string, string](b, "in3")).Merge(Stream[string, string](b, "in4"), "second-merge").To("out")
		return b.Build()
	},
	"04-split-branch-default": func(b *Builder) *Topology {
		prefix := func(p string) func(_, v string) bool {
			return func(_, v string) bool { return strings.HasPrefix(v, p) }
		}
		branches := Stream[string, string](b, "in").Split().
			Branch(prefix("a")).
			Branch(prefix("b"), Branched[string, string]{Name: "bee"}).
			Branch(prefix("c"), Branched[string, string]{Function: func(s *KStream[string, string]) *KStream[string, string] {
				s.To("out-c")
				return nil
			}}).
			Branch(prefix("d"), Branched[string, string]{Function: func(s *KStream[string, string]) *KStream[string, string] {
				return MapValues(s, strings.ToUpper)
			}}).
			DefaultBranch()
		for _, name := range slices.Sorted(maps.Keys(branches)) {
			branches[name].To("out-" + name)
		}
		return b.Build()
	},
	"06-repartition": func(b *Builder) *Topology {
		s := Stream(b, "in", ConsumedWith(text, serde.String)) // keys can be null
		SelectKey(s, func(_ *string, v string) string { return v }).Repartition().To("out1")
		MapValues(s.Repartition(Repartitioned[*string, string]{Name: "rep", NumberOfPartitions: 6}), func(v string) string { return v + "!" }).To("out2")
		s.Repartition(Repartitioned[*string, string]{NumberOfPartitions: 3}).To("out3")
		Map(s, func(k *string, v string) (*string, string) { return k, v }).
			Repartition(Repartitioned[*string, string]{Name: "rep2", Key: text}).GroupByKey().Count().ToStream().To("out4")
		return b.Build()
	},
	"07-to-dynamic-topic": func(b *Builder) *Topology {
		s := Stream[string, string](b, "in")
		s.ToDynamic(func(r Record[string, string], _ RecordContext) string { return "out-" + r.Value })
		s.ToDynamic(func(_ Record[string, string], from RecordContext) string { return from.Topic + "-copy" }, Produced[string, string]{Name: "dyn-sink"})
		return b.Build()
	},
	"08-process-processvalues": func(b *Builder) *Topology {
		b.AddStateStore(NewKeyValueStore[string, int64]("st", nil, nil))
		s := Stream[string, string](b, "in")
		Process(s, newCounting("st"), Processed{Stores: []string{"st"}}).To("out1")
		ProcessValues(s, newUpperValues).To("out2")
		ProcessValues(Process(s, newUpper, Processed{Name: "proc-named"}), newUpperValues, Processed{Name: "pv-named"}).To("out3")
		Process(s, newCounting("st2"), Processed{NewStores: []StateStore{NewKeyValueStore[string, int64]("st2", nil, nil)}}).To("out4")
		return b.Build()
	},
	"09-source-pattern": func(b *Builder) *Topology {
		MapValues(StreamMatching(b, regexp.MustCompile("in-.*"), ConsumedWith(serde.String, serde.String)), func(v string) string { return v + "!" }).To("out")
		Stream[string, string](b, "other").Merge(StreamMatching(b, regexp.MustCompile("z[0-9]"), Consumed[string, string]{Name: "zsrc"})).To("out2")
		return b.Build()
	},
	"10-named-everything": func(b *Builder) *Topology {
		s := Stream(b, "in", Consumed[string, string]{Name: "n-src"})
		all := func(_, _ string) bool { return true }
		n := s.Filter(all, "n-filter").FilterNot(func(_, _ string) bool { return false }, "n-filternot")
		n = Map(n, func(k, v string) (string, string) { return k, v }, "n-map")
		n = MapValues(n, func(v string) string { return v }, "n-mapvalues")
		n = FlatMap(n, func(k, v string) []KeyValue[string, string] { return []KeyValue[string, string]{{k, v}} }, "n-flatmap")
		n = FlatMapValues(n, func(v string) []string { return []string{v} }, "n-flatmapvalues")
		n = SelectKey(n.Peek(func(_, _ string) {}, "n-peek"), func(k, _ string) string { return k }, "n-selectkey")
		counts := n.GroupByKey(Grouped[string, string]{Name: "n-grouped"}).Count(Materialized[string, int64]{Name: "n-store", Processor: "n-count"}).
			Filter(func(string, int64) bool { return true }, Materialized[string, int64]{Processor: "n-tfilter"})
		TableMapValues(counts, func(v int64) int64 { return v + 1 }, Materialized[string, int64]{Processor: "n-tmapvalues"}).
			ToStream("n-tostream").To("out", Produced[string, int64]{Name: "n-sink"})
		s.ForEach(func(_, _ string) {}, "n-foreach")
		s.ToTable(Materialized[string, string]{Processor: "n-totable"}).ToStream("n-totable-tostream").To("out2", Produced[string, string]{Name: "n-sink2"})
		return b.Build()
	},
	"11-groupbykey-count": func(b *Builder) *Topology {
		Stream[string, string](b, "in").GroupByKey().Count().ToStream().To("out")
		return b.Build()
	},
	"12-groupby-count-default": func(b *Builder) *Topology {
		// With a type that has null, as Java's String has: a null value gives a
		// null key here.
		value := func(_ string, v *string) *string { return v }
		in := Stream(b, "in", nullableText())
		GroupBy(in, value, GroupedWith(text, text)).Count().ToStream().To("out")
		in2 := Stream(b, "in2", nullableText())
		SelectKey(in2, value).GroupByKey(GroupedWith(text, text)).Count().ToStream().To("out2")
		return b.Build()
	},
	"14-reduce-aggregate": func(b *Builder) *Topology {
		g := Stream(b, "in", nullableText()).GroupByKey()
		g.Reduce(func(a, v *string) *string { return new(*a + *v) }).ToStream().To("out1")
		g.Reduce(func(a, v *string) *string {
			if *v == "DEL" {
				return nil
			}
			return new(*a + "/" + *v)
		}, Materialized[string, *string]{Name: "red"}).ToStream().To("out2")
		Aggregate(g, func() int64 { return 0 }, func(_ string, v *string, a int64) int64 { return a + int64(len(*v)) }).ToStream().To("out3")
		Aggregate(g, func() *string { return new("") }, func(_ string, v, a *string) *string {
			if *v == "DEL" {
				return nil
			}
			return new(*a + *v)
		}, Materialized[string, *string]{Name: "agg-store", Processor: "agg-proc", Value: text}).ToStream().To("out4")
		return b.Build()
	},
	"15-ktable-groupby": func(b *Builder) *Topology {
		t := Table[string, string](b, "in")
		swap := func(k, v string) (string, string) { return v, k }
		TableGroupBy(t, swap).Count().ToStream().To("out1")
		add := func(a, v string) string { return a + "+" + v }
		subtract := func(a, v string) string { return a + "-" + v }
		TableGroupBy(t, swap, Grouped[string, string]{Name: "tg"}).Reduce(add, subtract, Materialized[string, string]{Name: "tred"}).ToStream().To("out2")
		TableAggregate(TableGroupBy(t, swap), func() string { return "" },
			func(_, v, a string) string { return add(a, v) },
			func(_, v, a string) string { return subtract(a, v) }).ToStream().To("out3")
		return b.Build()
	},
	"26-cogroup": func(b *Builder) *Topology {
		g1 := Stream[string, string](b, "in1").GroupByKey()
		g2 := GroupBy(Stream[string, string](b, "in2"), func(_, v string) string { return v }, Grouped[string, string]{Name: "g2"})
		cogrouped(g1, g2).To("out")
		return b.Build()
	},
	"34-stream-table-inner-left": func(b *Builder) *Topology {
		// Keys can be null too.
		consumed := ConsumedWith(text, text)
		t := Table(b, "tab", consumed)
		s := Stream(b, "in", consumed)
		JoinTable(s, t, plus).To("out1", ProducedWith(text, text))
		LeftJoinTable(s, t, plus, Joined[*string, *string, *string]{Name: "lj"}).To("out2", ProducedWith(text, text))
		byValue := func(_, v *string) *string { return v }
		with := Joined[*string, *string, *string]{Key: text, Value: text}
		JoinTable(SelectKey(s, byValue), t, plus, with).To("out3", ProducedWith(text, text))
		with.Name = "jnamed"
		LeftJoinTableWithKey(SelectKey(s, byValue), t, func(k, v, t *string) *string {
			return new(orNull(k) + ":" + *plus(v, t))
		}, with).To("out4", ProducedWith(text, text))
		return b.Build()
	},
	"36-table-table-joins": func(b *Builder) *Topology {
		l, r := Table(b, "left", nullableText()), Table(b, "right", nullableText())
		out := ProducedWith(serde.String, text)
		TableJoin(l, r, plus).ToStream().To("out-inner", out)
		TableLeftJoin(l, r, plus).ToStream().To("out-left", out)
		TableOuterJoin(l, r, plus).ToStream().To("out-outer", out)
		TableJoin(l, r, plus, MaterializedWith("jstore", serde.String, text)).ToStream().To("out-mat", out)
		TableOuterJoin(l, r, plus, Materialized[string, *string]{Processor: "named-join", Value: text}).ToStream().To("out-named", out)
		return b.Build()
	},
	"40-table-materializations": func(b *Builder) *Topology {
		Table[string, string](b, "t1")
		table := func(topic, store string) *KTable[string, string] {
			return Table(b, topic, Materialized[string, string]{Name: store})
		}
		table("t2", "s2").ToStream().To("o2")
		Table[string, string](b, "t3").ToStream("ts3").To("o3")
		ToStreamWithKey(table("t4", "s4"), func(k, _ string) string { return k + "!" }).To("o4")
		Table(b, "t5", Materialized[string, string]{Name: "s5", LoggingDisabled: true}).ToStream().To("o5")
		Table(b, "t6", Consumed[string, string]{Name: "src6"}, Materialized[string, string]{
			Name: "s6", ChangelogConfig: map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "1000"},
		}).ToStream().To("o6")
		Stream[string, string](b, "t7").ToTable().ToStream().To("o7")
		Stream[string, string](b, "t8").ToTable(Materialized[string, string]{Name: "s8"}).ToStream().To("o8")
		byValue := func(_ string, v *string) *string { return v }
		SelectKey(Stream(b, "t9", nullableText()), byValue).ToTable(Materialized[*string, *string]{Processor: "tt9", Key: text, Value: text}).ToStream().To("o9")
		SelectKey(Stream(b, "t10", nullableText()), byValue).ToTable(Materialized[*string, *string]{Key: text, Value: text}).ToStream().To("o10")
		return b.Build()
	},
	"43-opt-source-topic-as-changelog": func(b *Builder) *Topology {
		t := Table(b, "in", Materialized[string, string]{Name: "src-store"})
		t.ToStream().To("o1")
		t.Filter(func(_, v string) bool { return len(v) > 1 }, Materialized[string, string]{Name: "f"}).ToStream().To("o2")
		JoinTable(Stream[string, string](b, "s"), Table[string, string](b, "in-b"), func(a, b string) string { return a + "+" + b }).To("o3")
		return b.Build(TopologyConfig{Optimization: OptimizeAll})
	},
	"47-papi-basic": func(*Builder) *Topology {
		t := NewTopology()
		AddSource(t, "src1", Consumed[string, string]{}, "in1")
		AddSource(t, "src2", Consumed[string, string]{}, "in2a", "in2b")
		AddSource(t, "src3", Consumed[string, string]{OffsetReset: ResetLatest}, "in3")
		AddProcessor(t, "p1", newCounting("st"), "src1")
		AddProcessor(t, "p2", newUpper, "src2", "p1")
		AddProcessor(t, "p3", newCounting("st"), "src3")
		t.AddStateStore(NewKeyValueStore[string, int64]("st", nil, nil), "p1")
		t.ConnectProcessorAndStateStores("p3", "st")
		AddSink(t, "k1", "out1", Produced[string, string]{}, "p1")
		AddSink(t, "k2", "out2", Produced[string, string]{}, "p2", "p3")
		AddDynamicSink(t, "k3", func(r Record[string, string], _ RecordContext) string { return "dyn-" + r.Key }, Produced[string, string]{}, "p2")
		AddSource(t, "solo-src", Consumed[string, string]{}, "solo")
		AddSink(t, "solo-sink", "solo-out", Produced[string, string]{}, "solo-src")
		return t
	},
	"49-papi-punctuators": func(*Builder) *Topology {
		t := NewTopology()
		AddSource(t, "src", Consumed[string, string]{}, "in")
		AddProcessor(t, "p", func() Processor[string, string, string, string] { return &punctuating{} }, "src")
		AddSink(t, "k", "out", Produced[string, string]{}, "p")
		return t
	},
	"62-timestamp-extractor-and-offset-reset": func(b *Builder) *Topology {
		Stream(b, "in", Consumed[string, string]{
			OffsetReset: ResetLatest,
			TimestampExtractor: func(r Record[string, string], _ int64) (int64, error) {
				if n, err := strconv.ParseInt(r.Value, 10, 64); err == nil {
					return n, nil
				}
				return -1, nil
			},
		}).To("o1")
		Table(b, "tab", Consumed[string, string]{Name: "tsrc", OffsetReset: ResetEarliest}).ToStream().To("o2")
		return b.Build()
	},
	"63-eos-v2": func(b *Builder) *Topology {
		Stream[string, string](b, "in").GroupByKey().Count(Materialized[string, int64]{Name: "c"}).ToStream().To("out")
		return b.Build()
	},
	"66-cogroup-explicit-repartition": func(b *Builder) *Topology {
		g1 := Stream[string, string](b, "in1").GroupByKey()
		g2 := SelectKey(Stream[string, string](b, "in2"), func(_, v string) string { return v }).
			Repartition(Repartitioned[string, string]{Name: "r2"}).GroupByKey()
		cogrouped(g1, g2).To("out")
		return b.Build()
	},
	"67-cogroup-both-repartition": func(b *Builder) *Topology {
		group := func(topic, name string) *KGroupedStream[string, string] {
			return GroupBy(Stream[string, string](b, topic), func(_, v string) string { return v }, Grouped[string, string]{Name: name})
		}
		c := Cogroup(group("in1", "ga"), func(k, _, a string) string { return a + "1" + k })
		AddCogroup(c, group("in2", "gb"), func(k, _, a string) string { return a + "2" + k }).
			Aggregate(func() string { return "" }).ToStream().To("out")
		return b.Build()
	},
	"69-reuse-source-only": func(b *Builder) *Topology {
		t := Table(b, "tab", Materialized[string, string]{Name: "ts"})
		m := SelectKey(Stream[string, string](b, "in"), func(_, v string) string { return v })
		m.GroupByKey(Grouped[string, string]{Name: "g1"}).Count().ToStream().To("o1")
		m.GroupByKey(Grouped[string, string]{Name: "g2"}).Count().ToStream().To("o2")
		t.ToStream().To("o3")
		return b.Build(TopologyConfig{Optimization: ReuseKTableSourceTopics})
	},
}

func cogrouped(g1, g2 *KGroupedStream[string, string]) *KStream[string, string] {
	c := Cogroup(g1, func(_, v, a string) string { return a + "1" + v })
	AddCogroup(c, g2, func(_, v, a string) string { return a + "2" + v })
	return c.Aggregate(func() string { return "" }, Materialized[string, string]{Name: "cg"}).ToStream()
}

// counting sends on values with how many records of the key there have been.
type counting struct {
	ctx    *ProcessorContext[string, string]
	store  string
	counts *state.KeyValue[string, int64]
}

func newCounting(store string) func() Processor[string, string, string, string] {
	return func() Processor[string, string, string, string] { return &counting{store: store} }
}

func (p *counting) Init(ctx *ProcessorContext[string, string]) (err error) {
	p.ctx = ctx
	p.counts, err = GetStore[*state.KeyValue[string, int64]](ctx, p.store)
	return err
}

func (p *counting) Process(r Record[string, string]) error {
	n, _, err := p.counts.Get(r.Key)
	if err != nil {
		return err
	}
	if err := p.counts.Put(r.Key, n+1, r.Timestamp); err != nil {
		return err
	}
	r.Value = fmt.Sprintf("%s#%d", r.Value, n+1)
	return p.ctx.Forward(r)
}

func (*counting) Close() error { return nil }

// punctuating sends on what it gets, and tells of its punctuations.
type punctuating struct {
	ctx *ProcessorContext[string, string]
}

func (p *punctuating) Init(ctx *ProcessorContext[string, string]) error {
	p.ctx = ctx
	tell := func(key string) func(int64) error {
		return func(now int64) error {
			value := fmt.Sprintf("%s@%d/%d/%d", key, now, ctx.StreamTime(), ctx.SystemTime())
			return ctx.Forward(Record[string, string]{Key: key, Value: value, Timestamp: now})
		}
	}
	_, err1 := ctx.Schedule(10*time.Millisecond, StreamTime, tell("st"))
	_, err2 := ctx.Schedule(100*time.Millisecond, WallClockTime, tell("wc"))
	var cancel func()
	once := func(now int64) error { cancel(); return tell("once")(now) }
	cancel, err3 := ctx.Schedule(time.Second, WallClockTime, once)
	_, err4 := ctx.ScheduleFrom(time.UnixMilli(50), 500*time.Millisecond, WallClockTime, tell("anch"))
	return errors.Join(err1, err2, err3, err4)
}

func (p *punctuating) Process(r Record[string, string]) error {
	if r.Value == "commit" {
		p.ctx.Commit()
	}
	return p.ctx.Forward(r)
}

func (*punctuating) Close() error { return nil }

// upper sends on values in upper case.
type upper struct {
	ctx *ProcessorContext[string, string]
}

func newUpper() Processor[string, string, string, string] { return &upper{} }

func (p *upper) Init(ctx *ProcessorContext[string, string]) error { p.ctx = ctx; return nil }
func (*upper) Close() error                                       { return nil }

func (p *upper) Process(r Record[string, string]) error {
	r.Value = strings.ToUpper(r.Value)
	return p.ctx.Forward(r)
}

// upperValues does it as a fixed-key processor.
type upperValues struct {
	ctx *FixedKeyProcessorContext[string, string]
}

func newUpperValues() FixedKeyProcessor[string, string, string] { return &upperValues{} }

func (p *upperValues) Init(ctx *FixedKeyProcessorContext[string, string]) error {
	p.ctx = ctx
	return nil
}
func (*upperValues) Close() error { return nil }

func (p *upperValues) Process(r FixedKeyRecord[string, string]) error {
	return p.ctx.Forward(WithValue(r, strings.ToUpper(r.Value)))
}
