package integration

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

var schedules = flag.Int("schedules", 25, "random schedules of TestSimulatedExactlyOnce")

// TestSimulatedExactlyOnce: on the embedded broker and in simulated time, random
// schedules of refused requests, cut connections and instances that come and go. Each
// word's counts must be 1, 2, 3 …
func TestSimulatedExactlyOnce(t *testing.T) {
	for seed := range *schedules {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulateExactlyOnce(t, uint64(seed)) })
		})
	}
}

// refusals are what the broker answers, and to which requests.
var refusals = []struct {
	key  kmsg.Key
	errs []*kerr.Error
}{
	{kmsg.EndTxn, []*kerr.Error{
		kerr.UnknownServerError, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.RequestTimedOut, kerr.ConcurrentTransactions,
		kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.InvalidTxnState, kerr.TransactionAbortable,
	}},
	{kmsg.TxnOffsetCommit, []*kerr.Error{
		kerr.UnknownMemberID, kerr.StaleMemberEpoch, kerr.FencedMemberEpoch, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress,
		kerr.RequestTimedOut, kerr.InvalidProducerEpoch, kerr.TransactionAbortable, kerr.ConcurrentTransactions,
	}},
	{kmsg.InitProducerID, []*kerr.Error{kerr.ConcurrentTransactions, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress}},
	{kmsg.Produce, []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut, kerr.InvalidProducerEpoch, kerr.OutOfOrderSequenceNumber,
	}},
	{kmsg.OffsetFetch, []*kerr.Error{kerr.NotCoordinator, kerr.UnstableOffsetCommit, kerr.StaleMemberEpoch}},
	{kmsg.OffsetCommit, []*kerr.Error{kerr.NotCoordinator, kerr.UnknownMemberID, kerr.StaleMemberEpoch}},
	{kmsg.ListOffsets, []*kerr.Error{kerr.NotLeaderForPartition}},
}

func simulateExactlyOnce(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	network := new(kfake.VirtualNetwork)
	broker, err := streamstest.NewBroker(streamstest.WithNodes(2), streamstest.WithNetwork(network), streamstest.WithSessionTimeout(3*time.Second),
		streamstest.WithKfake(kfake.SeedTopics(2, "in"), kfake.SeedTopics(1, "out")))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	direct := []kgo.Opt{kgo.SeedBrokers(broker.Addrs()...), kgo.Dialer(network.DialContext)}
	client, err := kgo.NewClient(direct...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	log := new(strings.Builder)
	logger := slog.New(slog.NewTextHandler(log, nil)) // one for all instances: it locks the builder
	wires := &wires{dial: network.DialContext}
	run := func() (stop func()) {
		app, err := streams.NewApp(inMemoryWordCount(), streams.Config{
			ApplicationID: "app", Brokers: broker.Addrs(), ClientOptions: []kgo.Opt{kgo.Dialer(wires.DialContext)},
			ProcessingGuarantee: streams.ExactlyOnceV2, StateStoreCacheMaxBytes: -1,
			UncaughtExceptionHandler: func(error) streams.UncaughtExceptionResponse { return streams.ReplaceThread },
			Logger:                   logger,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			app.Run(ctx)
		}()
		return func() { cancel(); <-done }
	}
	instances := []func(){run(), run()}
	defer func() {
		for _, stop := range instances {
			stop()
		}
		if t.Failed() {
			t.Log(log)
		}
	}()

	lines, want := text(400)
	for _, part := range chunks(lines, 20) {
		var records []*kgo.Record
		for _, line := range part {
			records = append(records, &kgo.Record{Topic: "in", Value: []byte(line)})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		switch n := random.IntN(10); {
		case n < 7:
			r := refusals[random.IntN(len(refusals))]
			broker.Cluster().Fault(kfake.Fault{
				Keys: []kmsg.Key{r.key}, Err: r.errs[random.IntN(len(r.errs))], Count: 1 + random.IntN(2),
				When: func(req kmsg.Request) bool { return !ofOthers(req) },
			})
		case n < 9:
			wires.cut(random)
		default:
			i := random.IntN(len(instances))
			instances[i]()
			instances[i] = run()
		}
	}
	checkCounts(t, append(direct, kgo.ConsumeTopics("out")), want)
}

func inMemoryWordCount() *streams.Topology {
	b := streams.NewBuilder()
	words := streams.FlatMapValues(streams.Stream[string, string](b, "in"), strings.Fields)
	streams.GroupBy(words, func(_, word string) string { return word }).Count().ToStream().To("out")
	return b.Build(streams.TopologyConfig{StoreType: streams.InMemory})
}

// ofOthers says whether a request is not of an instance: it produces the input.
func ofOthers(req kmsg.Request) bool {
	r, ok := req.(*kmsg.ProduceRequest)
	return ok && r.TransactionID == nil
}

// checkCounts reads what is committed of the output until all is counted, and a little
// longer.
func checkCounts(t *testing.T, opts []kgo.Opt, want map[string]int64) {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	got := make(map[string]int64)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	for n := 0; n < total(want); {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d words are counted: %s", n, total(want), difference(got, want))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			word, count := string(r.Key), int64(binary.BigEndian.Uint64(r.Value))
			if count != got[word]+1 {
				t.Errorf("%q: count %d follows %d", word, count, got[word])
			}
			got[word] = count
			n++
		})
	}
	ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if n := client.PollFetches(ctx).NumRecords(); n > 0 {
		t.Errorf("%d counts too many", n)
	}
}

// wires dials connections that can be cut.
type wires struct {
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	mu    sync.Mutex
	conns []net.Conn
}

func (w *wires) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := w.dial(ctx, network, address)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conns = append(w.conns, conn)
	}
	return conn, err
}

// cut cuts about half of the connections.
func (w *wires) cut(random *rand.Rand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		if random.IntN(2) == 0 {
			c.Close()
		}
	}
}
