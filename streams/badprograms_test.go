package streams_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
)

// TestFunctionsAreNeeded: an operator without one of its functions is an error of
// NewApp that names it, and says behind what it is.
func TestFunctionsAreNeeded(t *testing.T) {
	type (
		stream   = *KStream[string, string]
		table    = *KTable[string, string]
		windowed = *TimeWindowedKStream[string, string]
		sessions = *SessionWindowedKStream[string, string]
	)
	var (
		predicate func(string, string) bool
		pair      func(string, string) (string, string)
		one       func(string) string
		two       func(string, string) string
		three     func(string, string, string) string
		key       func(string) (string, bool)
		keyOf     func(string, string) (string, bool)
		initial   func() string
		see       func(string, string)
	)
	for name, program := range map[string]func(*Builder, stream, table){
		"Filter":               func(_ *Builder, s stream, _ table) { s.Filter(predicate) },
		"FilterNot":            func(_ *Builder, s stream, _ table) { s.FilterNot(predicate) },
		"Peek":                 func(_ *Builder, s stream, _ table) { s.Peek(see) },
		"ForEach":              func(_ *Builder, s stream, _ table) { s.ForEach(see) },
		"Map":                  func(_ *Builder, s stream, _ table) { Map(s, pair) },
		"MapValues":            func(_ *Builder, s stream, _ table) { MapValues(s, one) },
		"MapValuesWithKey":     func(_ *Builder, s stream, _ table) { MapValuesWithKey(s, two) },
		"FlatMap":              func(_ *Builder, s stream, _ table) { FlatMap[string, string, string, string](s, nil) },
		"FlatMapValues":        func(_ *Builder, s stream, _ table) { FlatMapValues[string, string, string](s, nil) },
		"FlatMapValuesWithKey": func(_ *Builder, s stream, _ table) { FlatMapValuesWithKey[string, string, string](s, nil) },
		"SelectKey":            func(_ *Builder, s stream, _ table) { SelectKey(s, two) },
		"GroupBy":              func(_ *Builder, s stream, _ table) { GroupBy(s, two).Count() },
		"Branch":               func(_ *Builder, s stream, _ table) { s.Split().Branch(predicate).NoDefaultBranch() },
		"Reduce":               func(_ *Builder, s stream, _ table) { s.GroupByKey().Reduce(two) },
		"Aggregate":            func(_ *Builder, s stream, _ table) { Aggregate(s.GroupByKey(), initial, concatAll) },
		"Cogroup":              func(_ *Builder, s stream, _ table) { Cogroup(s.GroupByKey(), three).Aggregate(noText) },
		"JoinTable":            func(_ *Builder, s stream, t table) { JoinTable(s, t, two) },
		"LeftJoinTableWithKey": func(_ *Builder, s stream, t table) { LeftJoinTableWithKey(s, t, three) },
		"OuterJoin":            func(_ *Builder, s stream, _ table) { OuterJoin(s, s, two, TimeDifference(time.Second)) },
		"JoinWithKey":          func(_ *Builder, s stream, _ table) { JoinWithKey(s, s, three, TimeDifference(time.Second)) },
		"JoinGlobalTable": func(b *Builder, s stream, _ table) {
			JoinGlobalTable(s, GlobalTable[string, string](b, "global"), keyOf, joinValues)
		},
		"LeftJoinGlobalTable": func(b *Builder, s stream, _ table) {
			LeftJoinGlobalTable(s, GlobalTable[string, string](b, "global"), func(k, _ string) (string, bool) { return k, true }, two)
		},
		"TableMapValues":       func(_ *Builder, _ stream, t table) { TableMapValues(t, one) },
		"TableTransformValues": func(_ *Builder, _ stream, t table) { TableTransformValues[string, string, string](t, nil) },
		"TableGroupBy":         func(_ *Builder, _ stream, t table) { TableGroupBy(t, pair).Count() },
		"ToStreamWithKey":      func(_ *Builder, _ stream, t table) { ToStreamWithKey(t, two) },
		"TableJoin":            func(_ *Builder, _ stream, t table) { TableJoin(t, t, two) },
		"TableForeignKeyJoin":  func(_ *Builder, _ stream, t table) { TableForeignKeyJoin(t, t, key, joinValues) },
		"TableForeignKeyLeftJoin": func(_ *Builder, _ stream, t table) {
			TableForeignKeyLeftJoin(t, t, func(v string) (string, bool) { return v, true }, two)
		},
		"TableAggregate": func(_ *Builder, _ stream, t table) {
			TableAggregate(TableGroupBy(t, func(k, v string) (string, string) { return v, k }), noText, concatAll, three)
		},
		"WindowedAggregate": func(_ *Builder, s stream, _ table) {
			WindowedAggregate(windowed(WindowedBy(s.GroupByKey(), TimeWindows{Size: time.Second})), initial, concatAll)
		},
		"SessionAggregate": func(_ *Builder, s stream, _ table) {
			SessionAggregate(sessions(SessionWindowedBy(s.GroupByKey(), SessionWindows{InactivityGap: time.Second})), noText, concatAll, three)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder()
			program(b, Stream[string, string](b, "in"), Table[string, string](b, "tab"))
			refused(t, b.Build(), name+" behind", "nil")
		})
	}
}

// refused checks that NewApp refuses a topology and says so.
func refused(t *testing.T, topology *Topology, says ...string) {
	t.Helper()
	_, err := NewApp(topology, Config{ApplicationID: "app", Brokers: []string{"localhost:1"}})
	if !errors.Is(err, ErrTopology) {
		t.Fatalf("got %v", err)
	}
	for _, words := range says {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q does not say %s", err, words)
		}
	}
}

func concatAll(k, v, all string) string { return k + v + all }

// TestBadPrograms: what else can't work is an error of NewApp that names the operator,
// the store or the topic.
func TestBadPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		program func(*Builder)
		says    []string
	}{
		"source without a topic name": {func(b *Builder) { Stream[string, string](b, "") }, []string{"KSTREAM-SOURCE-0000000000", "empty"}},
		"no source topics":            {func(b *Builder) { StreamOf[string, string](b, nil) }, []string{"KSTREAM-SOURCE-0000000000", "no topic"}},
		"table without a topic name":  {func(b *Builder) { Table[string, string](b, "") }, []string{"KSTREAM-SOURCE-", "empty"}},
		"global table without a topic name": {func(b *Builder) {
			JoinGlobalTable(Stream[string, string](b, "in"), GlobalTable[string, string](b, ""), func(k, _ string) (string, bool) { return k, true }, joinValues)
		}, []string{"KSTREAM-SOURCE-", "empty"}},
		"sink without a topic name": {func(b *Builder) { Stream[string, string](b, "in").To("") }, []string{"KSTREAM-SINK-0000000001", "empty"}},
		"sink without a chooser":    {func(b *Builder) { Stream[string, string](b, "in").ToDynamic(nil) }, []string{"KSTREAM-SINK-0000000001", "chooses"}},
		"source topic that can't be": {func(b *Builder) { Stream[string, string](b, "my topic") }, []string{
			"KSTREAM-SOURCE-0000000000", `"my topic"`, "ASCII",
		}},
		"sink topic that can't be": {func(b *Builder) { Stream[string, string](b, "in").To("a/b") }, []string{"KSTREAM-SINK-0000000001", `"a/b"`}},
		"dots":                     {func(b *Builder) { Stream[string, string](b, "in").To("..") }, []string{`".."`}},
		"long topic":               {func(b *Builder) { Stream[string, string](b, "in").To(strings.Repeat("x", 250)) }, []string{"250", "249"}},
		"store that can't be a topic": {func(b *Builder) {
			Stream[string, string](b, "in").GroupByKey().Count(Materialized[string, int64]{Name: "word counts"})
		}, []string{"state store", `"word counts"`}},
		"changelog that is too long": {func(b *Builder) {
			Stream[string, string](b, "in").GroupByKey().Count(Materialized[string, int64]{Name: strings.Repeat("x", 245)})
		}, []string{"app-xxx", "xxx-changelog", "249"}},
		"repartition topic that can't be": {func(b *Builder) {
			Stream[string, string](b, "in").Repartition(Repartitioned[string, string]{Name: "by$key"}).To("out")
		}, []string{"by$key-repartition"}},
		"two sinks of one name": {func(b *Builder) {
			s := Stream[string, string](b, "in")
			s.To("o1", Produced[string, string]{Name: "sink"})
			s.To("o2", Produced[string, string]{Name: "sink"})
		}, []string{`"sink"`, "already"}},
		"two operators of one name": {func(b *Builder) {
			Stream[string, string](b, "in").Filter(all, "same").FilterNot(all, "same")
		}, []string{`"same"`}},
		"a store of two tables": {func(b *Builder) {
			g := Stream[string, string](b, "in").GroupByKey()
			g.Count(Materialized[string, int64]{Name: "counts"})
			g.Count(Materialized[string, int64]{Name: "counts"})
		}, []string{`"counts"`, "already"}},
		"a store added twice": {func(b *Builder) {
			s := NewKeyValueStore[string, int64]("st", nil, nil)
			b.AddStateStore(s)
			b.AddStateStore(s)
			Process(Stream[string, string](b, "in"), newCounting("st"), Processed{Stores: []string{"st"}})
		}, []string{`"st"`, "already"}},
		"a global store, used as if it weren't": {func(b *Builder) {
			GlobalStore(b, NewKeyValueStore[string, *string]("g", nil, text), "global", newFilling("g", same), nullableText())
			Process(Stream[string, string](b, "in"), newPassOn, Processed{Stores: []string{"g"}})
		}, []string{`"g"`, "global"}},
		"no processor": {func(b *Builder) {
			Process[string, string, string, string](Stream[string, string](b, "in"), nil, Processed{Name: "p"})
		}, []string{`"p"`, "no function"}},
		"no processor of values": {func(b *Builder) {
			ProcessValues[string, string, string](Stream[string, string](b, "in"), nil, Processed{Name: "p"})
		}, []string{`"p"`, "no function"}},
		"partitions that don't go together": {func(b *Builder) {
			l := Stream[string, string](b, "in").Repartition(Repartitioned[string, string]{Name: "left", NumberOfPartitions: 2})
			r := Stream[string, string](b, "in2").Repartition(Repartitioned[string, string]{Name: "right", NumberOfPartitions: 3})
			Join(l, r, joinValues, TimeDifference(time.Second)).To("out")
		}, []string{"app-left-repartition", "app-right-repartition", "2 and 3", "NumberOfPartitions"}},
		"join windows that end before they begin": {func(b *Builder) {
			s := Stream[string, string](b, "in")
			Join(s, s, joinValues, TimeDifference(-time.Second))
		}, []string{"Join", "Before is -1s"}},
		"negative grace of a join": {func(b *Builder) {
			s := Stream[string, string](b, "in")
			LeftJoin(s, s, joinValues, TimeDifference(time.Second).WithGrace(-time.Second))
		}, []string{"LeftJoin", "-1s"}},
		"negative history": {func(b *Builder) {
			Table(b, "in", Materialized[string, string]{Name: "st", HistoryRetention: -time.Second})
		}, []string{`"st"`, "-1s"}},
		"negative reset": {func(b *Builder) {
			Stream(b, "in", Consumed[string, string]{OffsetReset: ResetByDuration(-time.Second)})
		}, []string{"KSTREAM-SOURCE-0000000000", "-1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder()
			c.program(b)
			refused(t, b.Build(), c.says...)
		})
	}
}

// TestApplicationIDs: an application id that can't begin the name of a topic is an
// error of NewApp.
func TestApplicationIDs(t *testing.T) {
	topology := func() *Topology {
		b := NewBuilder()
		Stream(b, "in", ConsumedWith(serde.String, serde.String)).To("out")
		return b.Build()
	}
	for id, legal := range map[string]bool{
		"word-count_2.x": true, "": false, "word count": false, "a/b": false, ".": false, "größe": false,
		strings.Repeat("x", 249): true, strings.Repeat("x", 250): false,
	} {
		_, err := NewApp(topology(), Config{ApplicationID: id, Brokers: []string{"localhost:1"}})
		if legal != (err == nil) || !legal && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "ApplicationID")) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestMadeNil: a function that makes no processor is an error when a task is made, not
// a panic.
func TestMadeNil(t *testing.T) {
	b := NewBuilder()
	Process(Stream[string, string](b, "in"), func() Processor[string, string, string, string] { return nil }, Processed{Name: "p"}).To("out")
	c := compile(t, b.Build())
	if _, err := c.Tasks["0"].NewGraph(nil); err == nil || !strings.Contains(err.Error(), `"p"`) {
		t.Errorf("got %v", err)
	}
}
