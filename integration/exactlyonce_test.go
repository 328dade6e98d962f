package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// exactlyOnceScenarios are stories that are told with transactions: those that do not
// end otherwise than without, and those of transactions themselves.
var exactlyOnceScenarios = []scenario{
	{"WordCount", wordCount},
	{"HandOver", handOver},
	{"RestartGoesOn", restartGoesOn},
	{"ProcessorAPI", processorAPI},
	{"FailingRecord", failingRecord},
	{"RecordTooLargeFails", recordTooLargeFails},
	{"RecordBeyondBuffers", recordBeyondBuffers},
	{"StandbyTakesOver", standbyTakesOver},
	{"RestartReadsTail", restartReadsTail},
	{"InOrderOfTime", inOrderOfTime},
	{"FailuresAreUndone", failuresAreUndone},
	{"FencedProducer", fencedProducer},
	{"AbortedInput", abortedInput},
	{"SameTransactionalIDs", sameTransactionalIDs},
}

func TestEmbeddedExactlyOnce(t *testing.T) {
	for _, s := range exactlyOnceScenarios {
		t.Run(s.name, func(t *testing.T) {
			broker, err := streamstest.NewBroker()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(broker.Close)
			c := newCluster(t, broker.Addrs())
			c.exactlyOnce = true
			s.run(t, c)
		})
	}
}

func TestKafkaExactlyOnce(t *testing.T) {
	kafkatest.Require(t)
	for _, s := range exactlyOnceScenarios {
		t.Run(s.name, func(t *testing.T) {
			c := newCluster(t, kafkatest.Shared(t).Addrs())
			c.exactlyOnce = true
			s.run(t, c)
		})
	}
}

// TestOldTransactions: on clusters whose transactions are those of before KIP-890.
func TestOldTransactions(t *testing.T) {
	run := func(t *testing.T, addrs []string) {
		c := newCluster(t, addrs)
		c.exactlyOnce = true
		downgraded, err := c.adm.UpdateFeatures(t.Context(), false, kadm.FeatureUpdate{
			Feature: "transaction.version", MaxVersionLevel: 1, UpgradeType: 2, // a safe downgrade
		})
		if err = errors.Join(err, downgraded.Error()); err != nil {
			t.Fatal(err)
		}
		handOver(t, c)
	}
	t.Run("Embedded", func(t *testing.T) {
		broker, err := streamstest.NewBroker()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broker.Close)
		run(t, broker.Addrs())
	})
	t.Run("Kafka", func(t *testing.T) {
		kafkatest.Require(t)
		run(t, kafkatest.New(t, kafkatest.Config{}).Addrs())
	})
}

// failuresAreUndone: a processor fails again and again, after it has counted and sent,
// and the thread is replaced. What comes of each record is there once.
func failuresAreUndone(t *testing.T, c *cluster) {
	for _, storage := range []streams.StoreType{streams.InMemory, streams.Persistent} {
		in, out := c.topic(t, fmt.Sprint("in", storage), 2), c.topic(t, fmt.Sprint("out", storage), 1)
		lines, want := text(1000)
		var failures atomic.Int32
		b := streams.NewBuilder()
		words := streams.FlatMapValues(streams.Stream[string, string](b, in), strings.Fields)
		counts := streams.GroupBy(words, func(_, word string) string { return word }).
			Count().ToStream()
		counts.To(out)
		counts.ForEach(func(word string, n int64) {
			if rand.IntN(300) == 0 && failures.Add(1) <= 4 {
				panic("as bad luck would have it")
			}
		})
		own := *c
		own.id = fmt.Sprint(c.id, storage)
		app := own.start(t, b.Build(streams.TopologyConfig{StoreType: storage}), func(cfg *streams.Config) {
			cfg.CommitInterval = 50 * time.Millisecond
			cfg.UncaughtExceptionHandler = func(error) streams.UncaughtExceptionResponse { return streams.ReplaceThread }
		})
		for _, part := range chunks(lines, 5) {
			c.produce(t, in, part...)
		}
		c.counted(t, out, want)
		if err := app.stop(); err != nil {
			t.Error(err)
		}
		if _, n := c.counts(t, out); n != total(want) || failures.Load() == 0 {
			t.Errorf("%d counts for %d words after %d failures", n, total(want), failures.Load())
		}
	}
}

// fencedProducer: another producer takes the thread's transactional id, as the broker
// does with one whose transaction takes too long. The thread goes on, and what it could
// not commit is done again.
func fencedProducer(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 2), c.topic(t, "out", 1)
	lines, want := text(2000)
	app := c.start(t, wordCountTopology(in, out))
	running(t, app)
	process := c.process(t)
	parts := chunks(lines, 6)
	for i, part := range parts {
		c.produce(t, in, part...)
		c.counted(t, out, wordsOf(parts[:i+1]...))
		other, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.TransactionalID(fmt.Sprintf("%s-%s-1", c.id, process)))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = other.ProducerID(t.Context())
		other.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := app.stop(); err != nil {
		t.Error(err)
	}
	if _, n := c.counts(t, out); n != total(want) {
		t.Errorf("%d counts for %d words", n, total(want))
	}
}

// abortedInput: of what others produce in transactions, that which is aborted is not
// processed, and what follows is.
func abortedInput(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	b := streams.NewBuilder()
	streams.Stream[string, string](b, in).To(out)
	c.start(t, b.Build())
	producer, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.TransactionalID(c.id+"-producer"))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for i, how := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		rec := &kgo.Record{Topic: in, Value: fmt.Appendf(nil, "%d %v", i, how)}
		if err := producer.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := producer.EndTransaction(t.Context(), how); err != nil {
			t.Fatal(err)
		}
	}
	c.received(t, out, "1 true", "3 true")
}

// recordTooLargeFails: a record that the broker refuses can't be left out of a
// transaction, and nothing of what it came from is committed.
func recordTooLargeFails(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	c.produce(t, in, "huge")
	err := c.start(t, poisonTopology(in, out)).ended(t)
	if err == nil {
		t.Fatal("it goes on")
	}
	if got := c.read(t, out); len(got) > 0 {
		t.Errorf("%d records are committed", len(got))
	}
}

// TestExactlyOnceDefaults are those of Java.
func TestExactlyOnceDefaults(t *testing.T) {
	_, err := streams.NewApp(wordCountTopology("in", "out"), streams.Config{
		ApplicationID: "app", Brokers: []string{"localhost:1"}, ProcessingGuarantee: streams.ExactlyOnceV2,
		CommitInterval: 20 * time.Second,
	})
	if !errors.Is(err, streams.ErrConfig) || !strings.Contains(err.Error(), "TransactionTimeout") {
		t.Errorf("a commit interval beyond the transaction time-out: %v", err)
	}
	names := []string{streams.AtLeastOnce.String(), streams.ExactlyOnceV2.String()}
	if !slices.Equal(names, []string{"at_least_once", "exactly_once_v2"}) {
		t.Errorf("the guarantees are %q", names)
	}
}

// sameTransactionalIDs: however often an application without stores is started, the
// broker knows as many transactional ids of it as it has threads.
func sameTransactionalIDs(t *testing.T, c *cluster) {
	in, out, dir := c.topic(t, "in", 2), c.topic(t, "out", 1), t.TempDir()
	b := streams.NewBuilder()
	streams.Stream[string, string](b, in).To(out)
	var sent []string
	for i := range 3 {
		app := c.start(t, b.Build(), func(cfg *streams.Config) { cfg.StateDir, cfg.NumStreamThreads = dir, 2 })
		running(t, app)
		for j := range 4 {
			sent = append(sent, fmt.Sprint(i, "-", j))
			c.produce(t, in, sent[len(sent)-1])
			c.received(t, out, sent...)
		}
		if err := app.stop(); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := c.adm.ListTransactions(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, id := range listed.TransactionalIDs() {
		if strings.HasPrefix(id, c.id+"-") {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || len(ids) > 2 {
		t.Errorf("two threads have had the transactional ids %q", ids)
	}
}
