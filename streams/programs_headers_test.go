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
	"56-headers-format-joins": func(b *Builder) *Topology {
		joined := StreamJoined[*string, *string, *string]{Key: text, Value: text, OtherValue: text, StoreName: "j"}
		OuterJoin(Stream(b, "l", ConsumedWith(text, text)), Stream(b, "r", ConsumedWith(text, text)), plus, TimeDifference(10*ms), joined).
			To("o1", ProducedWith(text, text))
		l := Table(b, "lt", nullableText(), MaterializedWith("lts", serde.String, text))
		r := Table(b, "rt", nullableText(), MaterializedWith("rts", serde.String, text))
		first := func(v *string) (string, bool) { return (*v)[:1], true }
		TableForeignKeyJoin(l, r, first, plus, TableJoined[string, string, *string]{Name: "fk", Materialized: MaterializedWith("fks", serde.String, text)}).
			ToStream().To("o2")
		Cogroup(textByKey(b, "c"), appended).Aggregate(empty, MaterializedWith("cg", text, text)).ToStream().To("o3")
		return b.Build(TopologyConfig{StoreFormat: HeadersFormat})
	},
	"57-papi-header-stores": func(*Builder) *Topology {
		windows := state.WindowOptions{Size: 10 * ms, Retention: time.Hour}
		duplicates := windows
		duplicates.RetainDuplicates = true
		inMemory := NewTimestampedKeyValueStoreWithHeaders[string, string]("kvhm", nil, nil)
		inMemory.Type = InMemory
		t := NewTopology()
		AddSource(t, "src", Consumed[string, string]{}, "in")
		AddProcessor(t, "p", func() Processor[string, string, string, string] { return &keepingAll{} }, "src")
		for _, s := range []StateStore{
			NewTimestampedKeyValueStoreWithHeaders[string, string]("kvh", nil, nil), inMemory,
			NewWindowStoreWithHeaders[string, string]("wh", nil, nil, windows),
			NewSessionStoreWithHeaders[string, string]("sh", nil, nil, time.Hour),
			NewTimestampedKeyValueStore[string, string]("tkv", nil, nil), NewKeyValueStore[string, string]("plain", nil, nil),
			NewWindowStore[string, string]("tw", nil, nil, windows), NewWindowStore[string, string]("w", nil, nil, windows),
			NewWindowStore[string, string]("wd", nil, nil, duplicates), NewSessionStore[string, string]("s", nil, nil, time.Hour),
		} {
			t.AddStateStore(s, "p")
		}
		return t
	},
}

// keepingAll keeps each record in stores of all kinds.
type keepingAll struct{ stores []state.Store }

func (p *keepingAll) Init(ctx *ProcessorContext[string, string]) error {
	for _, name := range []string{"kvh", "kvhm", "wh", "sh", "tkv", "plain", "tw", "w", "wd", "s"} {
		s, err := GetStore[state.Store](ctx, name)
		if err != nil {
			return err
		}
		p.stores = append(p.stores, s)
	}
	return nil
}

func (*keepingAll) Close() error { return nil }

func (p *keepingAll) Process(r Record[string, string]) error {
	for _, s := range p.stores {
		if err := keep(s, r); err != nil {
			return err
		}
	}
	return nil
}

func keep(s state.Store, r Record[string, string]) error {
	var headers []state.Header
	if strings.Contains(s.Name(), "h") {
		headers = StoreHeaders(r.Headers)
	}
	session := serde.Windowed[string]{Key: r.Key, Start: r.Timestamp, End: r.Timestamp + 5}
	start := r.Timestamp - r.Timestamp%10
	switch s := s.(type) {
	case *state.TimestampedKeyValue[string, string]:
		if r.ValueNull {
			return s.DeleteHeaders(r.Key, r.Timestamp, headers)
		}
		return s.PutHeaders(r.Key, r.Value, r.Timestamp, headers)
	case *state.KeyValue[string, string]:
		if r.ValueNull {
			return s.Delete(r.Key, r.Timestamp)
		}
		return s.Put(r.Key, r.Value, r.Timestamp)
	case *state.Window[string, string]:
		if r.ValueNull {
			return s.DeleteHeaders(r.Key, start, r.Timestamp, headers)
		}
		return s.PutHeaders(r.Key, start, r.Value, r.Timestamp, headers)
	case *state.Session[string, string]:
		if r.ValueNull {
			return s.RemoveHeaders(session, r.Timestamp, headers)
		}
		return s.PutHeaders(session, r.Value, r.Timestamp, headers)
	}
	return fmt.Errorf("store %q is a %T", s.Name(), s)
}
