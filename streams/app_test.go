package streams_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an embedded broker in simulated time.
type world struct {
	network kfake.VirtualNetwork
	broker  *streamstest.Broker
	client  *kgo.Client

	stateDir string
}

// simulate runs a test in simulated time with a broker that has the topics "in",
// of two partitions, and "out".
func simulate(t *testing.T, test func(t *testing.T, w *world), opts ...streamstest.Option) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{stateDir: t.TempDir()}
		var err error
		w.broker, err = streamstest.NewBroker(append(opts,
			streamstest.WithNetwork(&w.network), streamstest.WithKfake(kfake.SeedTopics(2, "in"), kfake.SeedTopics(1, "out")))...)
		if err != nil {
			t.Fatal(err)
		}
		defer w.broker.Close()
		w.client, err = kgo.NewClient(kgo.SeedBrokers(w.broker.Addrs()...), kgo.Dialer(w.network.DialContext))
		if err != nil {
			t.Fatal(err)
		}
		defer w.client.Close()
		test(t, w)
	})
}

func (w *world) config() streams.Config {
	return streams.Config{
		ApplicationID: "app",
		Brokers:       w.broker.Addrs(),
		StateDir:      w.stateDir,

		StateStoreCacheMaxBytes: -1, // each change is sent
		ClientOptions:           []kgo.Opt{kgo.Dialer(w.network.DialContext)},
		Logger:                  slog.New(slog.DiscardHandler),
	}
}

// run starts word count; stop ends it and returns how it ended.
func (w *world) run(t *testing.T, cfg streams.Config) (app *streams.App, stop func() error) {
	t.Helper()
	app, err := streams.NewApp(wordCount(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	return app, func() error {
		cancel()
		return <-done
	}
}

func wordCount() *streams.Topology {
	b := streams.NewBuilder()
	words := streams.FlatMapValues(streams.Stream[string, string](b, "in"), strings.Fields)
	streams.GroupBy(words, func(_, word string) string { return word }).Count().ToStream().To("out")
	return b.Build()
}

func (w *world) produce(t *testing.T, values ...string) {
	t.Helper()
	for _, v := range values {
		if err := w.client.ProduceSync(t.Context(), &kgo.Record{Topic: "in", Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// committed is how many records of "in" are committed.
func (w *world) committed(t *testing.T) (n int64) {
	t.Helper()
	offsets, err := kadm.NewClient(w.client).FetchOffsets(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range offsets["in"] {
		n += max(0, p.At)
	}
	return n
}

// TestAppLife follows an application's states and commits in simulated time.
func TestAppLife(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		var states []string
		cfg := w.config()
		cfg.StateListener = func(from, to streams.State) { states = append(states, from.String()+">"+to.String()) }
		app, stop := w.run(t, cfg)
		time.Sleep(10 * time.Second)
		if app.State() != streams.Running {
			t.Fatalf("is %v after 10 s", app.State())
		}
		w.produce(t, "a b", "a", "c")
		time.Sleep(10 * time.Second)
		if n := w.broker.Cluster().PartitionInfo("out", 0).HighWatermark; n != 4 {
			t.Errorf("%d counts in the output, want 4", n)
		}
		if n := w.committed(t); n != 0 {
			t.Errorf("%d records are committed before the commit interval of 30 s", n)
		}
		time.Sleep(15 * time.Second)
		if n := w.committed(t); n != 3 {
			t.Errorf("%d records are committed after the commit interval, want 3", n)
		}
		w.produce(t, "d")
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Errorf("ended with %v", err)
		}
		if n := w.committed(t); n != 4 {
			t.Errorf("%d records are committed at the end, want 4", n)
		}
		if group, ok := w.broker.Group("app"); !ok || len(group.Members) > 0 {
			t.Errorf("the group is %+v", group)
		}
		want := []string{"CREATED>REBALANCING", "REBALANCING>RUNNING", "RUNNING>PENDING_SHUTDOWN", "PENDING_SHUTDOWN>NOT_RUNNING"}
		if !slices.Equal(states, want) {
			t.Errorf("states were %v, want %v", states, want)
		}
		if err := app.Run(t.Context()); !errors.Is(err, streams.ErrStarted) {
			t.Errorf("running again: %v", err)
		}
	})
}

// TestAppUnreachable: no broker, and a bounded time until the error.
func TestAppUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network kfake.VirtualNetwork
		app, err := streams.NewApp(wordCount(), streams.Config{
			ApplicationID: "app", Brokers: []string{"localhost:9092"},
			ClientOptions: []kgo.Opt{kgo.Dialer(network.DialContext)},
			Logger:        slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := app.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no listener on port 9092") {
			t.Errorf("ended with %v", err)
		}
		if took := time.Since(begin); took > 90*time.Second {
			t.Errorf("took %v", took)
		}
		if app.State() != streams.Error {
			t.Errorf("is %v", app.State())
		}
	})
}

// TestAppStopsBeforeItJoined: a context that ends early is a normal end.
func TestAppStopsBeforeItJoined(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		app, err := streams.NewApp(wordCount(), w.config())
		if err != nil {
			t.Fatal(err)
		}
		if app.State() != streams.Created {
			t.Errorf("begins as %v", app.State())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := app.Run(ctx); err != nil {
			t.Errorf("ended with %v", err)
		}
		if app.State() != streams.NotRunning {
			t.Errorf("is %v", app.State())
		}
	})
}

// TestAppBrokerGoes: the cluster disappears under a running application; told to
// stop, it gives up after CloseTimeout and says so.
func TestAppBrokerGoes(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		cfg := w.config()
		cfg.CloseTimeout = 5 * time.Second
		_, stop := w.run(t, cfg)
		time.Sleep(10 * time.Second)
		w.produce(t, "a b c")
		time.Sleep(time.Second)
		w.broker.Close()
		time.Sleep(time.Minute)
		begin := time.Now()
		if err := stop(); err == nil {
			t.Error("could commit and leave without a broker")
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("took %v to close", took)
		}
	})
}

// TestAppHoldsWhenUnconfirmed: cut off from the group coordinator, a member stops
// processing well before its session can expire, and goes on when it is back.
func TestAppHoldsWhenUnconfirmed(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		_, stop := w.run(t, w.config())
		time.Sleep(10 * time.Second)
		outputs := func() int64 { return w.broker.Cluster().PartitionInfo("out", 0).HighWatermark }
		w.produce(t, "a")
		time.Sleep(time.Second)
		if n := outputs(); n != 1 {
			t.Fatalf("%d outputs, want 1", n)
		}

		var back atomic.Bool
		w.broker.Cluster().ControlKey(int16(kmsg.StreamsGroupHeartbeat), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.broker.Cluster().KeepControl()
			if back.Load() {
				w.broker.Cluster().DropControl()
				return nil, nil, false
			}
			return nil, errors.New("cut off"), true
		})
		time.Sleep(time.Second) // three heartbeat intervals of 100 ms, and then some
		w.produce(t, "b", "c")
		time.Sleep(5 * time.Second)
		if n := outputs(); n != 1 {
			t.Errorf("%d outputs while cut off, want 1", n)
		}
		back.Store(true)
		time.Sleep(5 * time.Second)
		if n := outputs(); n != 3 {
			t.Errorf("%d outputs when back, want 3", n)
		}
		if err := stop(); err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}
