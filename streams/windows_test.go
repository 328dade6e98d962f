package streams_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
	"github.com/odradek-go/odradek/taskmgr"
)

// TestImpossibleWindows: what can't work is an error of NewApp that says where.
func TestImpossibleWindows(t *testing.T) {
	grouped := func(b *Builder) *KGroupedStream[string, string] { return Stream[string, string](b, "in").GroupByKey() }
	for name, c := range map[string]struct {
		program func(*Builder)
		says    []string
	}{
		"no size": {func(b *Builder) { WindowedBy(grouped(b), TimeWindows{}).Count() }, []string{"WindowedBy", "Size 0s"}},
		"less than a millisecond": {func(b *Builder) {
			WindowedBy(grouped(b), TimeWindows{Size: time.Microsecond}).Count()
		}, []string{"WindowedBy", "Size 1µs"}},
		"advance beyond the size": {func(b *Builder) {
			WindowedBy(grouped(b), TimeWindows{Size: time.Second, Advance: time.Minute}).Count()
		}, []string{"WindowedBy", "Advance 1m0s", "Size 1s"}},
		"negative advance": {func(b *Builder) {
			WindowedBy(grouped(b), TimeWindows{Size: time.Second, Advance: -time.Second}).Count()
		}, []string{"Advance -1s"}},
		"negative grace": {func(b *Builder) {
			WindowedBy(grouped(b), TimeWindows{Size: time.Second, Grace: -time.Second}).Count()
		}, []string{"Grace -1s"}},
		"no time difference": {func(b *Builder) { WindowedBy(grouped(b), SlidingWindows{}).Count() }, []string{"WindowedBy", "TimeDifference 0s"}},
		"no gap":             {func(b *Builder) { SessionWindowedBy(grouped(b), SessionWindows{}).Count() }, []string{"SessionWindowedBy", "InactivityGap 0s"}},
		"cogrouped": {func(b *Builder) {
			Cogroup(grouped(b), join3).SessionWindowedBy(SessionWindows{InactivityGap: -1}).Aggregate(noText, join3)
		}, []string{"SessionWindowedBy", "InactivityGap -1ns"}},
		"short retention": {func(b *Builder) {
			WindowedBy(grouped(b), TimeWindows{Size: time.Minute, Grace: time.Second}).Count(Materialized[string, int64]{Name: "st", Processor: "counting", Retention: time.Minute})
		}, []string{`"counting"`, `"st"`, "1m0s", "1m1s"}},
		"short retention of sliding windows": {func(b *Builder) {
			WindowedBy(grouped(b), SlidingWindows{TimeDifference: time.Minute}).Count(Materialized[string, int64]{Retention: time.Minute})
		}, []string{"KSTREAM-AGGREGATE-0000000002", "2m0s"}},
		"no serde": {func(b *Builder) {
			WindowedAggregate(WindowedBy(grouped(b), tumbling), func() struct{} { return struct{}{} }, func(_, _ string, a struct{}) struct{} { return a })
		}, []string{"KSTREAM-AGGREGATE-STATE-STORE-0000000001", "struct {}"}},
		"windows close that aren't": {func(b *Builder) {
			SuppressUntilWindowCloses(Table(b, "t", ConsumedWith(serde.TimeWindowed(serde.String, time.Second), serde.String)))
		}, []string{"SuppressUntilWindowCloses", "KTABLE-SUPPRESS-0000000003", "KTABLE-SOURCE-0000000002"}},
		"windows with a history": {func(b *Builder) {
			WindowedBy(grouped(b), tumbling).Count(Materialized[string, int64]{Name: "st", HistoryRetention: time.Hour})
		}, []string{"KSTREAM-AGGREGATE-0000000001", `"st"`, "HistoryRetention"}},
		"a versioned table is suppressed": {func(b *Builder) {
			Table(b, "t", Materialized[string, string]{Name: "st", HistoryRetention: time.Hour}).SuppressUntilTimeLimit(0)
		}, []string{"SuppressUntilTimeLimit", "KTABLE-SUPPRESS-0000000002", "KTABLE-SOURCE-0000000001", "versioned"}},
		"negative limits": {func(b *Builder) {
			Table[string, string](b, "t").SuppressUntilTimeLimit(-time.Second, Suppressed{Name: "held", MaxRecords: -1, MaxBytes: -2})
		}, []string{"SuppressUntilTimeLimit", "-1s", `"held"`, "MaxRecords -1", "MaxBytes -2"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder()
			c.program(b)
			_, err := NewApp(b.Build(), Config{ApplicationID: "app", Brokers: []string{"localhost:1"}})
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

// at is a record of a topic with a time in milliseconds.
func at(topic, key, value string, ms int64) *kgo.Record {
	r := record(topic, []byte(key), []byte(value))
	r.Timestamp = time.UnixMilli(ms)
	return r
}

// TestSuppressionLimits: a suppression that is full sends on the first changes, or
// fails and says why.
func TestSuppressionLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits Suppressed
		out    []string // where it goes on
		fails  *BufferFullError
	}{
		"no limit":         {Suppressed{}, nil, nil},
		"records, early":   {Suppressed{MaxRecords: 2}, []string{"a=1"}, nil},
		"records, or fail": {Suppressed{MaxRecords: 2, ShutDownWhenFull: true}, nil, &BufferFullError{Records: 3, MaxRecords: 2, Bytes: 96}},
		"bytes, early":     {Suppressed{MaxBytes: 80}, []string{"a=1"}, nil},
		"bytes, or fail":   {Suppressed{MaxBytes: 80, ShutDownWhenFull: true}, nil, &BufferFullError{Records: 3, Bytes: 96, MaxBytes: 80}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder()
			c.limits.Name = "held"
			Table[string, string](b, "in").SuppressUntilTimeLimit(time.Hour, c.limits).ToStream().To("out")
			d := streamstest.NewDriver(t, b.Build())
			out := streamstest.NewOutputTopic[string, string](d, "out")
			var err error
			for _, key := range []string{"a", "b", "c"} {
				if err == nil {
					err = d.TryPipe(at("in", key, "1", 5))
				}
			}
			var got []string
			for !out.IsEmpty() {
				kv := out.ReadKeyValue()
				got = append(got, kv.Key+"="+kv.Value)
			}
			if !slices.Equal(got, c.out) {
				t.Errorf("it sent on %q, want %q", got, c.out)
			}
			var full *BufferFullError
			switch {
			case c.fails == nil:
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, &full):
				t.Errorf("it fails with %v", err)
			default:
				c.fails.Operator = "held"
				if *full != *c.fails || !strings.Contains(full.Error(), `"held"`) {
					t.Errorf("it fails with %+v (%v), want %+v", full, full, c.fails)
				}
			}
		})
	}
}

// TestSuppressionKeepsContext: what is held back is sent on as if it were that moment
// again.
func TestSuppressionKeepsContext(t *testing.T) {
	b := NewBuilder()
	var got []string
	held := Table[string, string](b, "in").SuppressUntilTimeLimit(10 * ms).ToStream()
	Process(held, func() Processor[string, string, string, string] {
		return &watching{seen: func(ctx *ProcessorContext[string, string], r Record[string, string]) {
			_, _, offset, _ := ctx.RecordMetadata()
			got = append(got, fmt.Sprintf("%s=%s@%d offset %d", r.Key, r.Value, r.Timestamp, offset))
			for _, h := range r.Headers {
				got = append(got, fmt.Sprintf("%s:%s", h.Key, h.Value))
			}
		}}
	})
	first, second := at("in", "a", "1", 0), at("in", "a", "2", 3)
	second.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte("1")}}
	if _, err := run(t, b.Build(), first, second, at("in", "b", "3", 10)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a=2@3 offset 1", "h:1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

type watching struct {
	passOn[string, string]
	seen func(*ProcessorContext[string, string], Record[string, string])
}

func (w *watching) Process(r Record[string, string]) error { w.seen(w.ctx, r); return nil }

// TestLookUpSuppressed: a table behind a suppression is looked up as those below know
// it: without what is held back.
func TestLookUpSuppressed(t *testing.T) {
	b := NewBuilder()
	held := Table(b, "in", Materialized[string, string]{Name: "t"}).SuppressUntilTimeLimit(10 * ms)
	LeftJoinTable(Stream[string, string](b, "s"), held, concat).To("out")
	out, err := run(t, b.Build(),
		at("in", "a", "1", 0), at("s", "a", "s", 0), // held back
		at("in", "b", "1", 10), at("s", "a", "s", 10), // given out
		at("in", "a", "2", 11), at("in", "a", "3", 12), at("s", "a", "s", 12), // held back again
		at("in", "c", "1", 30), at("s", "a", "s", 30))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range out {
		got = append(got, string(r.Value))
	}
	if want := []string{"s", "s1", "s1", "s3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLookUpWindows: tables of windows and of sessions are joined by window.
func TestLookUpWindows(t *testing.T) {
	b := NewBuilder()
	s := Stream[string, string](b, "in")
	add := func(n int64, v string) string { return fmt.Sprint(n, v) }
	windows := WindowedBy(s.GroupByKey(), tumbling)
	TableJoin(windows.Count(), windows.Reduce(concat), add, Materialized[serde.Windowed[string], string]{Value: serde.String}).
		ToStream().To("windows", ProducedWith(serde.TimeWindowed(serde.String, tumbling.Size), serde.String))
	merging := SessionWindowedBy(s.GroupByKey(), sessions)
	TableJoin(merging.Count(), merging.Reduce(concat), add, Materialized[serde.Windowed[string], string]{Value: serde.String}).
		ToStream().To("sessions", ProducedWith(serde.SessionWindowed(serde.String), serde.String))
	d := streamstest.NewDriver(t, b.Build(), streamstest.WithConfig(Config{StateStoreCacheMaxBytes: -1}))
	for i, time := range []int64{6, 15, 10} {
		if err := d.TryPipe(at("in", "k", string(rune('x'+i)), time)); err != nil {
			t.Fatal(err)
		}
	}
	for topic, want := range map[string]struct {
		keys    serde.Serde[serde.Windowed[string]]
		results string
	}{
		"windows":  {serde.TimeWindowed(serde.String, tumbling.Size), "[k@0/10]=1x [k@10/20]=2yz"},
		"sessions": {serde.SessionWindowed(serde.String), "[k@6/15]=3xyz"},
	} {
		results := streamstest.ReadMap(streamstest.NewOutputTopic(d, topic, streamstest.Output[serde.Windowed[string], string]{Key: want.keys}))
		var got []string
		for w, v := range results {
			got = append(got, fmt.Sprintf("%v=%s", w, v))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want.results {
			t.Errorf("%s has %q, want %s", topic, got, want.results)
		}
	}
}

// TestDroppedRecords: what is left out is counted and told at debug level.
func TestDroppedRecords(t *testing.T) {
	b := NewBuilder()
	g := Stream(b, "in", ConsumedWith(text, text)).GroupByKey()
	WindowedBy(g, tumbling).Count(Materialized[*string, int64]{Processor: "counting"})
	compiled := compile(t, b.Build())
	sub := compiled.Tasks["0"]
	s := sub.Stores[0].New()
	if err := s.Open(state.OpenContext{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := taskmgr.NewContext(membership.TaskID{Subtopology: "0"}, nil, s)
	var log bytes.Buffer
	ctx.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	graph, err := sub.NewGraph(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer graph.Close()
	for _, r := range []*kgo.Record{at("in", "k", "v", 25), at("in", "k", "late", 3), {Topic: "in", Value: []byte("no key")}} {
		ctx.Processing(r, r.Timestamp.UnixMilli())
		if err := graph.Source("in").Process(r, r.Timestamp.UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}
	if n := ctx.DroppedRecords(); n != 2 {
		t.Errorf("%d records were dropped, want 2", n)
	}
	for _, said := range []string{"counting", "its window has closed", "start=0 end=10 closed=25", "its key is null", "topic=in", "DEBUG"} {
		if !strings.Contains(log.String(), said) {
			t.Errorf("%q is not said in\n%s", said, &log)
		}
	}
}

// TestWindowedKeysPartition: all windows of a key are in one partition, the one that
// was recorded from Java Kafka Streams 4.4.0; other keys, and what the application
// chooses itself, go where they go.
func TestWindowedKeysPartition(t *testing.T) {
	data, err := os.ReadFile("testdata/windowed-partitions.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Cases []struct {
			Kind       string `json:"window_type"`
			Key        []byte `json:"windowed_key_b64"`
			Partitions map[int][]int32
		} `json:"windowed_stream_partitioner"`
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	for i, c := range recorded.Cases {
		keys := serde.TimeWindowed(serde.String, 10*ms)
		if c.Kind == "session" {
			keys = serde.SessionWindowed(serde.String)
		}
		b := NewBuilder()
		s := Stream(b, "in", ConsumedWith(keys, serde.String))
		s.To("out")
		s.To("chosen", Produced[serde.Windowed[string], string]{Partitioner: func(string, Record[serde.Windowed[string], string], int) int32 { return 0 }})
		for partitions, want := range c.Partitions {
			sent := &partitioned{partitions: partitions, to: make(map[string]int32)}
			ctx := taskmgr.NewContext(membership.TaskID{}, sent)
			graph, err := compile(t, b.Build()).Tasks["0"].NewGraph(ctx)
			if err != nil {
				t.Fatal(err)
			}
			rec := record("in", c.Key, []byte("v"))
			ctx.Processing(rec, 0)
			if err := graph.Source("in").Process(rec, 0); err != nil {
				t.Fatal(err)
			}
			if sent.to["out"] != want[0] || sent.to["chosen"] != 0 {
				t.Errorf("case %d of %d partitions goes to %v, want %d and 0", i, partitions, sent.to, want[0])
			}
		}
	}
}

// partitioned is a collector that knows how many partitions topics have, and keeps
// where records go.
type partitioned struct {
	taskmgr.Collector
	partitions int
	to         map[string]int32
}

func (p *partitioned) Grab() []byte                   { return []byte{} }
func (p *partitioned) Keep(b []byte) []byte           { return b }
func (p *partitioned) Partitions(string) (int, error) { return p.partitions, nil }
func (p *partitioned) Send(topic string, partition int32, _, _ []byte, _ int64, _ []kgo.RecordHeader) error {
	p.to[topic] = partition
	return nil
}
