package streams_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/taskmgr"
)

// TestTableRestoredFromItsTopic: a table whose topic serves as its changelog is
// after a restart what it was, no less and no more: what came to the topic
// meanwhile is yet to be processed. Nothing is written to the topic.
func TestTableRestoredFromItsTopic(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		perValue := func() func() error {
			b := streams.NewBuilder()
			table := streams.Table[string, string](b, "in")
			streams.TableGroupBy(table, func(k, v string) (string, string) { return v, k }).Count().ToStream().To("out")
			stop := w.start(t, b.Build(streams.TopologyConfig{Optimization: streams.OptimizeAll}))
			time.Sleep(10 * time.Second)
			return stop
		}
		put := func(key, value string) {
			r := &kgo.Record{Topic: "in", Key: []byte(key), Value: []byte(value)}
			if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		end := func(stop func() error) {
			t.Helper()
			time.Sleep(5 * time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
		}

		stop := perValue()
		put("a", "X")
		put("b", "X")
		end(stop)
		put("a", "Y")
		put("a", "Z")
		stop = perValue()
		put("b", "Z")
		end(stop)

		counts := make(map[string]string)
		for _, r := range w.consume(t, "out") {
			counts[string(r.Key)] = fmt.Sprintf("%x", r.Value)
		}
		const zero, two = "0000000000000000", "0000000000000002"
		if got := fmt.Sprint(counts); got != fmt.Sprintf("map[X:%s Y:%s Z:%s]", zero, zero, two) {
			t.Errorf("the counts are %s", got)
		}
		if in := w.consume(t, "in"); len(in) != 5 {
			t.Errorf("%d records in the table's topic, want the 5 that were put there", len(in))
		}
	})
}

// TestOffsetResetOfSource: a source can begin elsewhere than the others.
func TestOffsetResetOfSource(t *testing.T) {
	for want, reset := range map[string]streams.OffsetReset{
		"after, lately, long ago": {},
		"after, lately":           streams.ResetByDuration(time.Hour),
		"after":                   streams.ResetLatest,
	} {
		simulate(t, func(t *testing.T, w *world) {
			w.produce(t, "long ago")
			time.Sleep(2 * time.Hour)
			w.produce(t, "lately")
			time.Sleep(time.Minute)
			b := streams.NewBuilder()
			streams.Stream(b, "in", streams.Consumed[string, string]{OffsetReset: reset}).To("out")
			stop := w.start(t, b.Build())
			time.Sleep(10 * time.Second)
			w.produce(t, "after")
			time.Sleep(5 * time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
			var got []string
			for _, r := range w.consume(t, "out") {
				got = append(got, string(r.Value))
			}
			slices.Sort(got)
			if strings.Join(got, ", ") != want {
				t.Errorf("the output is %q, want %s", got, want)
			}
		})
	}
}

// TestOffsetResetNone: a source that may not choose where it begins fails, and says
// which partition has no offset; from a committed offset it goes on.
func TestOffsetResetNone(t *testing.T) {
	topology := func() *streams.Topology {
		b := streams.NewBuilder()
		streams.Stream(b, "in", streams.Consumed[string, string]{OffsetReset: streams.ResetNone}).To("out")
		return b.Build()
	}
	simulate(t, func(t *testing.T, w *world) {
		w.produce(t, "before", "after")
		stop := w.start(t, topology())
		time.Sleep(10 * time.Second)
		var none *taskmgr.NoOffsetError
		if err := stop(); !errors.As(err, &none) || none.Topic != "in" || !strings.Contains(err.Error(), "offset reset") {
			t.Fatalf("ended with %v", err)
		}
		offsets := make(kadm.Offsets)
		for p := range int32(2) {
			offsets.AddOffset("in", p, 0, -1)
		}
		time.Sleep(time.Minute) // the member is gone
		if err := kadm.NewClient(w.client).CommitAllOffsets(t.Context(), "app", offsets); err != nil {
			t.Fatal(err)
		}
		stop = w.start(t, topology())
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := w.consume(t, "out"); len(got) != 2 {
			t.Errorf("%d records in the output, want 2", len(got))
		}
	})
}

// TestPartitioner: a sink's partitioner sees the topic's partitions and chooses; it
// can leave it to the default one; and what it does wrong is an error.
func TestPartitioner(t *testing.T) {
	run := func(t *testing.T, w *world, produced streams.Produced[string, string]) error {
		b := streams.NewBuilder()
		streams.Stream[string, string](b, "out").To("in", produced)
		stop := w.start(t, b.Build())
		time.Sleep(10 * time.Second)
		for _, key := range []string{"a", "b", "c", "d"} {
			r := &kgo.Record{Topic: "out", Key: []byte(key), Value: []byte(key)}
			if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		return stop()
	}
	t.Run("chooses", func(t *testing.T) {
		simulate(t, func(t *testing.T, w *world) {
			if err := run(t, w, streams.Produced[string, string]{Partitioner: func(topic string, _ streams.Record[string, string], partitions int) int32 {
				if topic != "in" || partitions != 2 {
					t.Errorf("asked for %d partitions of %q", partitions, topic)
				}
				return 1
			}}); err != nil {
				t.Error(err)
			}
			for _, r := range w.consume(t, "in") {
				if r.Partition != 1 {
					t.Errorf("%q is in partition %d", r.Key, r.Partition)
				}
			}
		})
	})
	t.Run("default", func(t *testing.T) {
		simulate(t, func(t *testing.T, w *world) {
			partitioner := func(string, streams.Record[string, string], int) int32 { return streams.AnyPartition }
			if err := run(t, w, streams.Produced[string, string]{Partitioner: partitioner}); err != nil {
				t.Error(err)
			}
			var partitions []int32
			for _, r := range w.consume(t, "in") {
				if !slices.Contains(partitions, r.Partition) {
					partitions = append(partitions, r.Partition)
				}
			}
			if len(partitions) != 2 {
				t.Errorf("records are in partitions %v only", partitions)
			}
		})
	})
	t.Run("multicast", func(t *testing.T) {
		simulate(t, func(t *testing.T, w *world) {
			to := map[string][]int32{"a": {0, 1}, "b": {}, "c": {1}}
			if err := run(t, w, streams.Produced[string, string]{Multicast: func(_ string, r streams.Record[string, string], _ int) ([]int32, bool) {
				partitions, ok := to[r.Key]
				return partitions, ok
			}}); err != nil {
				t.Error(err)
			}
			var got []string
			for _, r := range w.consume(t, "in") {
				if string(r.Key) == "d" {
					r.Partition = streams.AnyPartition // it is the default partitioner's
				}
				got = append(got, fmt.Sprintf("%s in %d", r.Key, r.Partition))
			}
			slices.Sort(got)
			if want := "a in 0, a in 1, c in 1, d in -1"; strings.Join(got, ", ") != want {
				t.Errorf("got %q, want %s", got, want)
			}
		})
	})
	for name, c := range map[string]struct {
		produced streams.Produced[string, string]
		says     string
	}{
		"out of range": {
			streams.Produced[string, string]{Partitioner: func(string, streams.Record[string, string], int) int32 { return 2 }},
			`chose partition 2 of topic "in", which has 2`,
		},
		"multicast out of range": {
			streams.Produced[string, string]{Multicast: func(string, streams.Record[string, string], int) ([]int32, bool) { return []int32{0, -2}, true }},
			`chose partition -2 of topic "in", which has 2`,
		},
		"panics": {
			streams.Produced[string, string]{Partitioner: func(string, streams.Record[string, string], int) int32 { panic("no idea") }},
			"no idea",
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				if err := run(t, w, c.produced); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v does not say %s", err, c.says)
				}
			})
		})
	}
	t.Run("topic grows", func(t *testing.T) {
		simulate(t, func(t *testing.T, w *world) {
			b := streams.NewBuilder()
			streams.Stream[string, string](b, "out").To("in", streams.Produced[string, string]{
				Partitioner: func(_ string, _ streams.Record[string, string], partitions int) int32 { return int32(partitions) - 1 },
			})
			stop := w.start(t, b.Build())
			put := func() {
				t.Helper()
				if err := w.client.ProduceSync(t.Context(), &kgo.Record{Topic: "out"}).FirstErr(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
			}
			put()
			if _, err := kadm.NewClient(w.client).CreatePartitions(t.Context(), 1, "in"); err != nil {
				t.Fatal(err)
			}
			for range 8 {
				put()
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if in := w.broker.Cluster().PartitionInfo("in", 2); in == nil || in.HighWatermark == 0 {
				t.Errorf("the new partition is %+v", in)
			}
		})
	})
	t.Run("unknown topic", func(t *testing.T) {
		simulate(t, func(t *testing.T, w *world) {
			b := streams.NewBuilder()
			streams.Stream[string, string](b, "in").To("nowhere", streams.Produced[string, string]{
				Partitioner: func(string, streams.Record[string, string], int) int32 { return 0 },
			})
			stop := w.start(t, b.Build())
			w.produce(t, "a")
			time.Sleep(2 * time.Minute)
			if err := stop(); err == nil || !strings.Contains(err.Error(), `partitions of topic "nowhere"`) {
				t.Errorf("ended with %v", err)
			}
		})
	})
}

// start starts an application; stop ends it and returns how it ended.
func (w *world) start(t *testing.T, topology *streams.Topology) (stop func() error) {
	t.Helper()
	app, err := streams.NewApp(topology, w.config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// consume returns what is in a topic, by partition.
func (w *world) consume(t *testing.T, topic string) (records []*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.broker.Addrs()...), kgo.Dialer(w.network.DialContext),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var total int64
	for partition := range int32(2) {
		if info := w.broker.Cluster().PartitionInfo(topic, partition); info != nil {
			total += info.HighWatermark
		}
	}
	for int64(len(records)) < total {
		records = append(records, client.PollFetches(t.Context()).Records()...)
	}
	return records
}
