package streams_test

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
)

// passOn is a processor that sends on what it gets.
type passOn[K, V any] struct{ ctx *ProcessorContext[K, V] }

func (p *passOn[K, V]) Init(ctx *ProcessorContext[K, V]) error { p.ctx = ctx; return nil }
func (p *passOn[K, V]) Process(r Record[K, V]) error           { return p.ctx.Forward(r) }
func (p *passOn[K, V]) Close() error                           { return nil }

func newPassOn() Processor[string, string, string, string] { return &passOn[string, string]{} }

// TestTopologyErrors: what can't work is an error of NewApp that names the node.
func TestTopologyErrors(t *testing.T) {
	type untold struct{}
	source := func(t *Topology) { AddSource(t, "source", Consumed[string, string]{}, "in") }
	for name, c := range map[string]struct {
		make func(*Topology)
		says []string
	}{
		"empty":           {func(*Topology) {}, []string{"no nodes"}},
		"no topic":        {func(t *Topology) { AddSource(t, "source", Consumed[string, string]{}) }, []string{`"source"`, "topic"}},
		"no name":         {func(t *Topology) { AddSource(t, "", Consumed[string, string]{}, "in") }, []string{"no name"}},
		"duplicate name":  {func(t *Topology) { source(t); AddSource(t, "source", Consumed[string, string]{}, "other") }, []string{`"source"`, "already"}},
		"duplicate topic": {func(t *Topology) { source(t); AddSource(t, "second", Consumed[string, string]{}, "in") }, []string{`"second"`, `"in"`, `"source"`}},
		"no pattern":      {func(t *Topology) { AddPatternSource(t, "source", Consumed[string, string]{}, nil) }, []string{`"source"`, "pattern"}},
		"pattern of a topic that is read": {func(t *Topology) {
			source(t)
			AddPatternSource(t, "second", Consumed[string, string]{}, regexp.MustCompile("i."))
		}, []string{`"second"`, `"in"`, `"source"`}},
		"topic that a pattern matches": {func(t *Topology) {
			AddPatternSource(t, "second", Consumed[string, string]{}, regexp.MustCompile("i."))
			source(t)
		}, []string{`"source"`, `"in"`, `"second"`}},
		"pattern twice": {func(t *Topology) {
			AddPatternSource(t, "first", Consumed[string, string]{}, regexp.MustCompile("i."))
			AddPatternSource(t, "second", Consumed[string, string]{}, regexp.MustCompile("i."))
		}, []string{`"second"`, `"i."`, `"first"`}},
		"no parent":        {func(t *Topology) { source(t); AddProcessor(t, "p", newPassOn) }, []string{`"p"`, "parent"}},
		"unknown parent":   {func(t *Topology) { source(t); AddProcessor(t, "p", newPassOn, "sauce") }, []string{`"p"`, `"sauce"`}},
		"itself as parent": {func(t *Topology) { source(t); AddProcessor(t, "p", newPassOn, "p") }, []string{`"p"`, "parent"}},
		"sink as parent": {func(t *Topology) {
			source(t)
			AddSink(t, "sink", "out", Produced[string, string]{}, "source")
			AddProcessor(t, "p", newPassOn, "sink")
		}, []string{`"p"`, `"sink"`}},
		"sink without topic": {func(t *Topology) { source(t); AddSink(t, "sink", "", Produced[string, string]{}, "source") }, []string{`"sink"`, "topic"}},
		"other types": {func(t *Topology) {
			source(t)
			AddSink(t, "sink", "out", Produced[string, int64]{}, "source")
		}, []string{`"sink"`, `"source"`, "int64"}},
		"two partitioners": {func(t *Topology) {
			source(t)
			AddSink(t, "sink", "out", Produced[string, string]{
				Partitioner: func(string, Record[string, string], int) int32 { return 0 },
				Multicast:   func(string, Record[string, string], int) ([]int32, bool) { return nil, true },
			}, "source")
		}, []string{`"sink"`, "Partitioner", "Multicast"}},
		"no serde in source": {func(t *Topology) { AddSource(t, "source", Consumed[string, untold]{}, "in") }, []string{`"source"`, "values", "Consumed"}},
		"no serde in sink": {func(t *Topology) {
			AddSource(t, "source", ConsumedWith(serde.New(func(untold) ([]byte, error) { return nil, nil }, func([]byte) (untold, error) { return untold{}, nil }), serde.String), "in")
			AddSink(t, "sink", "out", Produced[untold, string]{}, "source")
		}, []string{`"sink"`, "keys", "Produced"}},
		"store without processor": {func(t *Topology) {
			source(t)
			t.AddStateStore(NewTimestampedKeyValueStore[string, string]("s", nil, nil))
		}, []string{`"s"`, "processor"}},
		"store of unknown processor": {func(t *Topology) {
			source(t)
			t.AddStateStore(NewTimestampedKeyValueStore[string, string]("s", nil, nil), "p")
		}, []string{`"s"`, `"p"`}},
		"duplicate store": {func(t *Topology) {
			source(t)
			AddProcessor(t, "p", newPassOn, "source")
			t.AddStateStore(NewTimestampedKeyValueStore[string, string]("s", nil, nil), "p")
			t.AddStateStore(NewTimestampedKeyValueStore[string, string]("s", nil, nil), "p")
		}, []string{`"s"`, "already"}},
		"store without serde": {func(t *Topology) {
			source(t)
			AddProcessor(t, "p", newPassOn, "source")
			t.AddStateStore(NewTimestampedKeyValueStore[string, untold]("s", nil, nil), "p")
		}, []string{`"s"`, "values", "untold"}},
		"bounded store on disk": {func(t *Topology) {
			source(t)
			AddProcessor(t, "p", newPassOn, "source")
			s := NewTimestampedKeyValueStore[string, string]("s", nil, nil)
			s.MaxEntries = 1
			t.AddStateStore(s, "p")
		}, []string{`"s"`, "MaxEntries", "InMemory"}},
		"bounded store of sessions": {func(t *Topology) {
			source(t)
			AddProcessor(t, "p", newPassOn, "source")
			s := NewSessionStore[string, string]("s", nil, nil, time.Hour)
			s.Type, s.MaxEntries = InMemory, 1
			t.AddStateStore(s, "p")
		}, []string{`"s"`, "MaxEntries", "key-value"}},
		"negative bound": {func(t *Topology) {
			source(t)
			AddProcessor(t, "p", newPassOn, "source")
			s := NewTimestampedKeyValueStore[string, string]("s", nil, nil)
			s.Type, s.MaxEntries = InMemory, -1
			t.AddStateStore(s, "p")
		}, []string{`"s"`, "MaxEntries", "-1"}},
		"store not from a constructor": {func(t *Topology) {
			source(t)
			AddProcessor(t, "p", newPassOn, "source")
			t.AddStateStore(StateStore{Name: "s"}, "p")
		}, []string{`"s"`, "NewTimestampedKeyValueStore"}},
	} {
		t.Run(name, func(t *testing.T) {
			topology := NewTopology()
			c.make(topology)
			_, err := NewApp(topology, Config{ApplicationID: "app", Brokers: []string{"localhost:1"}})
			if !errors.Is(err, ErrTopology) {
				t.Fatalf("got %v", err)
			}
			for _, word := range c.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %s", err, word)
				}
			}
			if _, err := topology.Describe(); !errors.Is(err, ErrTopology) {
				t.Errorf("Describe: %v", err)
			}
		})
	}
}

// TestWordCountDescribesAsInJava compares with Topology.describe() of the same
// program in Java Kafka Streams 4.4.0.
func TestWordCountDescribesAsInJava(t *testing.T) {
	b := NewBuilder()
	words := FlatMapValues(Stream[string, string](b, "wordcount-input"), strings.Fields)
	GroupBy(words, func(_, w string) string { return w }, Grouped[string, string]{Name: "words"}).
		Count(Materialized[string, int64]{Name: "counts"}).ToStream().To("wordcount-output")
	const want = `Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [wordcount-input])
      --> KSTREAM-FLATMAPVALUES-0000000001
    Processor: KSTREAM-FLATMAPVALUES-0000000001 (stores: [])
      --> words
      <-- KSTREAM-SOURCE-0000000000
    Processor: words (stores: [])
      --> words-repartition-filter
      <-- KSTREAM-FLATMAPVALUES-0000000001
    Processor: words-repartition-filter (stores: [])
      --> words-repartition-sink
      <-- words
    Sink: words-repartition-sink (topic: words-repartition)
      <-- words-repartition-filter

  Sub-topology: 1
    Source: words-repartition-source (topics: [words-repartition])
      --> KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [counts])
      --> KTABLE-TOSTREAM-0000000007
      <-- words-repartition-source
    Processor: KTABLE-TOSTREAM-0000000007 (stores: [])
      --> KSTREAM-SINK-0000000008
      <-- KSTREAM-AGGREGATE-0000000003
    Sink: KSTREAM-SINK-0000000008 (topic: wordcount-output)
      <-- KTABLE-TOSTREAM-0000000007

`
	if got, err := b.Build().Describe(); err != nil || got != want {
		t.Errorf("describes as\n%s\n%v", got, err)
	}
}

// TestSubtopologies: an edge or a shared store connects, and sources in the
// order of their names count.
func TestSubtopologies(t *testing.T) {
	topology := NewTopology()
	AddSource(topology, "z", Consumed[string, string]{}, "z-in")
	AddSource(topology, "m", Consumed[string, string]{}, "m-in")
	AddSource(topology, "a", Consumed[string, string]{}, "a-in")
	for _, name := range []string{"z", "m", "a"} {
		AddProcessor(topology, name+"-p", newPassOn, name)
		AddSink(topology, name+"-sink", "out", Produced[string, string]{}, name+"-p")
	}
	topology.AddStateStore(NewTimestampedKeyValueStore[string, string]("shared", nil, nil), "z-p", "a-p")
	var got []string
	c := compile(t, topology)
	for _, id := range slices.Sorted(maps.Keys(c.Tasks)) {
		got = append(got, strings.Join(c.Tasks[id].SourceTopics, "+"))
	}
	if want := "z-in+a-in m-in"; strings.Join(got, " ") != want {
		t.Errorf("subtopologies read %q, want %q", got, want)
	}
}

func TestConfigErrors(t *testing.T) {
	topology := NewTopology()
	AddSource(topology, "source", Consumed[string, string]{}, "in")
	_, err := NewApp(topology, Config{NumStreamThreads: -1, CommitInterval: -1, AutoOffsetReset: ResetByDuration(-1), Brokers: []string{""}})
	if !errors.Is(err, ErrConfig) {
		t.Fatalf("got %v", err)
	}
	for _, word := range []string{"ApplicationID", "Brokers", "NumStreamThreads", "CommitInterval", "AutoOffsetReset"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %s", err, word)
		}
	}
}
