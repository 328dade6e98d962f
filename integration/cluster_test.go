package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// patience is how long a test waits for what must happen.
const patience = 90 * time.Second

// cluster is what a scenario runs on. Topics and application ids are made from
// id, so that tests on one broker don't meet.
type cluster struct {
	brokers  []string
	id       string
	replicas int16 // of topics
	client   *kgo.Client
	adm      *kadm.Client

	// exactlyOnce has applications run with that guarantee, and only what is
	// committed read.
	exactlyOnce bool
}

func newCluster(t *testing.T, brokers []string) *cluster {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	id := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	return &cluster{
		brokers: brokers, id: fmt.Sprintf("%s-%08x", id, rand.Uint32()), replicas: 1,
		client: client, adm: kadm.NewClient(client),
	}
}

// topic creates a topic and returns its name.
func (c *cluster) topic(t *testing.T, name string, partitions int32) string {
	t.Helper()
	topic := c.id + "-" + name
	if _, err := c.adm.CreateTopic(t.Context(), partitions, c.replicas, nil, topic); err != nil {
		t.Fatal(err)
	}
	return topic
}

// configure sets a group configuration.
func (c *cluster) configure(t *testing.T, name, value string) {
	t.Helper()
	if err := kafkatest.ConfigureGroup(t.Context(), c.client, c.id, map[string]string{name: value}); err != nil {
		t.Fatal(err)
	}
}

// produce sends values, each a record without a key.
func (c *cluster) produce(t *testing.T, topic string, values ...string) {
	t.Helper()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Topic: topic, Value: []byte(v)})
	}
	if err := c.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// ends lists a topic's end offsets, by partition.
func (c *cluster) ends(t *testing.T, topic string) map[int32]int64 {
	t.Helper()
	ends := make(map[int32]int64)
	eventually(t, "the offsets of "+topic, func() error {
		list := c.adm.ListEndOffsets
		if c.exactlyOnce {
			list = c.adm.ListCommittedOffsets
		}
		listed, err := list(t.Context(), topic)
		if err == nil {
			err = listed.Error()
		}
		listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
		return err
	})
	return ends
}

// read returns all that is in a topic now.
func (c *cluster) read(t *testing.T, topic string) []*kgo.Record {
	t.Helper()
	left := c.ends(t, topic)
	offsets := make(map[int32]kgo.Offset)
	for p, end := range left {
		if end == 0 {
			delete(left, p)
			continue
		}
		offsets[p] = kgo.NewOffset().AtStart()
	}
	if len(left) == 0 {
		return nil
	}
	opts := []kgo.Opt{kgo.SeedBrokers(c.brokers...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}), kgo.KeepControlRecords()}
	if c.exactlyOnce {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var records []*kgo.Record
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %s: %v", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return records
}

// counts returns the last count of each word in a topic, and how many counts
// there are in all.
func (c *cluster) counts(t *testing.T, topic string) (map[string]int64, int) {
	t.Helper()
	records := c.read(t, topic)
	counts := make(map[string]int64)
	for _, r := range records {
		n, err := serde.Int64.Decode(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		counts[string(r.Key)] = n
	}
	return counts, len(records)
}

// instance is a running application.
type instance struct {
	app    *streams.App
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	log    *bytes.Buffer
	states []streams.State // valid when done
}

// start runs an application until the test ends, or stop is called.
func (c *cluster) start(t *testing.T, topology *streams.Topology, change ...func(*streams.Config)) *instance {
	t.Helper()
	i := &instance{done: make(chan struct{}), log: &bytes.Buffer{}, states: []streams.State{streams.Created}}
	cfg := streams.Config{
		ApplicationID:  c.id,
		Brokers:        c.brokers,
		CommitInterval: 200 * time.Millisecond,
		StateDir:       t.TempDir(),

		StateStoreCacheMaxBytes: -1, // every count is sent
		CloseTimeout:            20 * time.Second,
		StateListener:           func(_, to streams.State) { i.states = append(i.states, to) },
		Logger:                  slog.New(slog.NewTextHandler(i.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if c.exactlyOnce {
		cfg.ProcessingGuarantee = streams.ExactlyOnceV2
	}
	for _, f := range change {
		f(&cfg)
	}
	app, err := streams.NewApp(topology, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, i.cancel = context.WithCancel(context.Background())
	i.app = app
	go func() {
		defer close(i.done)
		i.err = app.Run(ctx)
	}()
	t.Cleanup(func() {
		i.cancel()
		<-i.done
		if t.Failed() {
			t.Logf("log of an instance:\n%s", i.log)
		}
	})
	return i
}

// stop ends an instance and returns how it ended.
func (i *instance) stop() error {
	i.cancel()
	<-i.done
	return i.err
}

// ended waits until an instance ends by itself.
func (i *instance) ended(t *testing.T) error {
	t.Helper()
	select {
	case <-i.done:
	case <-time.After(patience):
		t.Fatalf("the application goes on, in state %v", i.app.State())
	}
	return i.err
}

// running waits until instances process all that they are assigned.
func running(t *testing.T, instances ...*instance) {
	t.Helper()
	for _, i := range instances {
		eventually(t, "an instance that runs", func() error {
			select {
			case <-i.done:
				t.Fatalf("the instance ended: %v", i.err)
			default:
			}
			if state := i.app.State(); state != streams.Running {
				return fmt.Errorf("it is %v", state)
			}
			return nil
		})
	}
}

// eventually waits until check returns no error.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		var ke *kerr.Error
		if time.Now().After(deadline) || errors.As(err, &ke) && !ke.Retriable {
			t.Fatalf("waited for %s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// text returns lines of random words, and how often each word is in them.
func text(lines int) ([]string, map[string]int64) {
	r := rand.New(rand.NewPCG(1, uint64(lines)))
	want := make(map[string]int64)
	var all []string
	for range lines {
		var line []string
		for range r.IntN(10) {
			word := fmt.Sprintf("word%d", int(r.ExpFloat64()*50))
			want[word]++
			line = append(line, word)
		}
		all = append(all, strings.Join(line, " "))
	}
	return all, want
}

// wordsOf returns how often each word is in lines.
func wordsOf(parts ...[]string) map[string]int64 {
	counts := make(map[string]int64)
	for _, part := range parts {
		for _, line := range part {
			for word := range strings.FieldsSeq(line) {
				counts[word]++
			}
		}
	}
	return counts
}

func total(counts map[string]int64) (n int) {
	for _, c := range counts {
		n += int(c)
	}
	return n
}

// chunks cuts a slice into n parts.
func chunks[T any](s []T, n int) [][]T {
	return slices.Collect(slices.Chunk(s, (len(s)+n-1)/n))
}
