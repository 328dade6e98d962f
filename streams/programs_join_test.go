package streams_test

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	. "github.com/odradek-go/odradek/streams"
)

func init() { maps.Copy(vectorPrograms, joinPrograms) }

// joinPrograms are the programs of the vectors of joins, in Go.
var joinPrograms = map[string]func(*Builder) *Topology{
	"28-stream-stream-inner": func(b *Builder) *Topology {
		l, r := Stream(b, "left", nullableKeys()), Stream(b, "right", nullableKeys())
		Join(l, r, plus, TimeDifference(10*time.Millisecond).WithGrace(5*time.Millisecond)).To("out", ProducedWith(text, text))
		return b.Build()
	},
	"29-stream-stream-left": func(b *Builder) *Topology {
		l, r := Stream(b, "left", nullableKeys()), Stream(b, "right", nullableKeys())
		LeftJoin(l, r, plus, TimeDifference(10*time.Millisecond).WithGrace(5*time.Millisecond)).To("out", ProducedWith(text, text))
		return b.Build()
	},
	"30-stream-stream-outer": func(b *Builder) *Topology {
		l, r := Stream(b, "left", nullableKeys()), Stream(b, "right", nullableKeys())
		windows := JoinWindows{Before: 3 * time.Millisecond, After: 10 * time.Millisecond}
		OuterJoin(l, r, plus, windows, StreamJoined[*string, *string, *string]{Name: "oj", StoreName: "ojst"}).To("out", ProducedWith(text, text))
		return b.Build()
	},
	"32-stream-self-join-optimized": func(b *Builder) *Topology {
		s := Stream[string, string](b, "in")
		Join(s, s, joinValues, TimeDifference(10*time.Millisecond)).To("out")
		return b.Build(TopologyConfig{Optimization: OptimizeAll})
	},
	"33-stream-self-join-unoptimized": func(b *Builder) *Topology {
		s := Stream[string, string](b, "in")
		Join(s, s, joinValues, TimeDifference(10*time.Millisecond)).To("out")
		return b.Build()
	},
	"35-stream-table-grace-versioned": func(b *Builder) *Topology {
		t := Table(b, "tab", nullableText(), Materialized[string, *string]{Name: "vt", HistoryRetention: 100 * time.Millisecond})
		JoinTable(Stream(b, "in", nullableText()), t, plus, Joined[string, *string, *string]{Name: "gj", Grace: new(10 * time.Millisecond)}).
			To("out", ProducedWith(serde.String, text))
		LeftJoinTable(Stream(b, "in2", nullableText()), t, plus).To("out2", ProducedWith(serde.String, text))
		return b.Build()
	},
	"39-globalktable-join": func(b *Builder) *Topology {
		g := GlobalTable(b, "gt", nullableText(), Materialized[string, *string]{Name: "gstore"})
		g2 := GlobalTable(b, "gt2", nullableText())
		s := Stream(b, "in", nullableKeys())
		byValue := func(_, v *string) (string, bool) { return *v, true }
		JoinGlobalTable(s, g, byValue, plus).To("out1", ProducedWith(text, text))
		LeftJoinGlobalTable(s, g, byValue, plus, "glj").To("out2", ProducedWith(text, text))
		JoinGlobalTableWithKeys(s, g2, func(k, _ *string) (key string, ok bool) {
			if k != nil {
				key, ok = *k, true
			}
			return key, ok
		}, func(k *string, mapped string, v, g *string) *string { return new(*k + *v + *g) }).To("out3", ProducedWith(text, text))
		return b.Build()
	},
	"42-versioned-store": func(b *Builder) *Topology {
		t := Table(b, "in", Materialized[string, string]{Name: "vs", HistoryRetention: 100 * time.Millisecond})
		t.ToStream().To("out")
		t.Filter(func(_, v string) bool { return v != "no" }).ToStream().To("out2")
		TableGroupBy(t, swap).Count().ToStream().To("out3")
		b.AddStateStore(NewVersionedKeyValueStore[string, *string]("vp", nil, text, 50*time.Millisecond))
		Process(Stream(b, "in2", nullableText()), func() Processor[string, *string, string, string] { return &versioning{} },
			Processed{Stores: []string{"vp"}}).To("out4", ProducedWith(serde.String, serde.String))
		return b.Build()
	},
	"37-fk-join-inner": func(b *Builder) *Topology {
		l, r := Table[string, string](b, "left"), Table[string, string](b, "right")
		TableForeignKeyJoin(l, r, func(v string) (string, bool) {
			key, _, ok := strings.Cut(v, "|")
			return key, ok
		}, func(l, r string) string { return l + "+" + r }).ToStream().To("out")
		return b.Build()
	},
	"48-papi-global-readonly": func(*Builder) *Topology {
		t := NewTopology()
		AddGlobalStore(t, NewKeyValueStore[string, *string]("g", nil, text), "gsrc", nullableText(), "gtopic", "gproc", newFilling("g", strings.ToUpper))
		AddSource(t, "src", Consumed[string, string]{}, "in")
		AddProcessor(t, "p", func() Processor[string, string, string, string] { return &lookingUp{} }, "src")
		AddSink(t, "k", "out", Produced[string, string]{}, "p")
		AddReadOnlyStateStore(t, NewKeyValueStore[string, *string]("ro", nil, text), "rosrc", nullableText(), "rotopic", "roproc", newFilling("ro", same))
		t.ConnectProcessorAndStateStores("p", "ro")
		return t
	},
	"61-joins-copartition": func(b *Builder) *Topology {
		t, bs := Table[string, string](b, "t"), Stream[string, string](b, "b")
		at := JoinTable(keyed(b, "a"), t, joinValues, Joined[string, string, string]{Name: "at"})
		JoinTable(at, Table[string, string](b, "t2"), joinValues).To("o1")
		JoinTable(bs, t, joinValues).To("o2")
		table := func(topic string) *KTable[string, string] { return Table[string, string](b, topic) }
		TableJoin(TableJoin(table("x"), table("y"), joinValues), table("z"), joinValues).ToStream().To("o3")
		p := Stream[string, string](b, "p").Repartition(Repartitioned[string, string]{Name: "p-rep", NumberOfPartitions: 5})
		q := keyed(b, "q").Repartition(Repartitioned[string, string]{Name: "q-rep", NumberOfPartitions: 5})
		Join(p, q, joinValues, TimeDifference(10*time.Millisecond)).To("o4")
		return b.Build()
	},
}

// versioning puts values into a versioned store and sends on what that returns.
type versioning struct {
	ctx   *ProcessorContext[string, string]
	store *state.Versioned[string, *string]
}

func (p *versioning) Init(ctx *ProcessorContext[string, string]) (err error) {
	p.ctx = ctx
	p.store, err = GetStore[*state.Versioned[string, *string]](ctx, "vp")
	return err
}

func (p *versioning) Process(r Record[string, *string]) error {
	validTo, err := p.store.Put(r.Key, r.Value, r.Timestamp)
	if err != nil {
		return err
	}
	return p.ctx.Forward(Record[string, string]{Key: r.Key, Value: fmt.Sprintf("put=%d", validTo), Timestamp: r.Timestamp, Headers: r.Headers})
}

func (*versioning) Close() error { return nil }

// filling puts values into a store.
type filling struct {
	name  string
	f     func(string) string
	store *state.KeyValue[string, *string]
}

func newFilling(store string, f func(string) string) func() Processor[string, *string, Nothing, Nothing] {
	return func() Processor[string, *string, Nothing, Nothing] { return &filling{name: store, f: f} }
}

func (p *filling) Init(ctx *ProcessorContext[Nothing, Nothing]) (err error) {
	p.store, err = GetStore[*state.KeyValue[string, *string]](ctx, p.name)
	return err
}

func (p *filling) Process(r Record[string, *string]) error {
	if r.ValueNull {
		return p.store.Delete(r.Key, r.Timestamp)
	}
	return p.store.Put(r.Key, new(p.f(*r.Value)), r.Timestamp)
}

func (*filling) Close() error { return nil }

// lookingUp sends on values with what a global and a read-only store have.
type lookingUp struct {
	ctx        *ProcessorContext[string, string]
	global, ro *state.KeyValue[string, *string]
}

func (p *lookingUp) Init(ctx *ProcessorContext[string, string]) (err error) {
	p.ctx = ctx
	if p.global, err = GetStore[*state.KeyValue[string, *string]](ctx, "g"); err == nil {
		p.ro, err = GetStore[*state.KeyValue[string, *string]](ctx, "ro")
	}
	return err
}

func (p *lookingUp) Process(r Record[string, string]) error {
	global, _, err := p.global.Get(r.Value)
	if err != nil {
		return err
	}
	ro, _, err := p.ro.Get(r.Key)
	if err != nil {
		return err
	}
	r.Value += "/" + orNull(global) + "/" + orNull(ro)
	return p.ctx.Forward(r)
}

func (*lookingUp) Close() error { return nil }

func nullableKeys() Consumed[*string, *string] { return ConsumedWith(text, text) }
