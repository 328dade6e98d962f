package iq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

const (
	usersTopic = "users"
	usersKeys  = 60
)

// users is an application with a table of its input's latest values.
func users() *streams.Topology {
	b := streams.NewBuilder()
	store := streams.MaterializedWith("users", serde.String, serde.String)
	store.StoreType = streams.InMemory
	streams.Table(b, usersTopic, streams.ConsumedWith(serde.String, serde.String), store)
	return b.Build()
}

// host is one instance of the application.
type host struct {
	app     *streams.App
	cut     atomic.Bool // its network to the brokers is
	conns   sync.Map
	stop    context.CancelFunc
	stopped chan error
}

// group is the application with the truth about it.
type group struct {
	t        *testing.T
	topology func() *streams.Topology
	brokers  []string
	client   *kgo.Client

	mu        sync.Mutex
	addresses []string
	hosts     map[string]*host
	latest    map[string]int         // the last value of each key that was sent
	written   map[string]iq.Position // where that is, once it is known
}

// newGroup is a group without instances, on a broker of its own.
func newGroup(t *testing.T, topology func() *streams.Topology) *group {
	broker, err := streamstest.NewBroker(
		streamstest.WithStandbyReplicas(1), streamstest.WithHeartbeatInterval(100*time.Millisecond),
		streamstest.WithSessionTimeout(2*time.Second), streamstest.WithInitialRebalanceDelay(0),
		streamstest.WithAssignmentInterval(0), streamstest.WithTaskOffsetInterval(100*time.Millisecond),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 6, 1, nil, usersTopic); err != nil {
		t.Fatal(err)
	}
	return &group{
		t: t, topology: topology, brokers: broker.Addrs(), client: client,
		hosts: make(map[string]*host), latest: make(map[string]int), written: make(map[string]iq.Position),
	}
}

func (g *group) start() (address string, h *host) {
	g.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	address = listener.Addr().String()
	listener.Close()
	h = &host{stopped: make(chan error, 1)}
	dialer := &net.Dialer{}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if h.cut.Load() {
			return nil, errors.New("the network is cut")
		}
		conn, err := dialer.DialContext(ctx, network, addr)
		if err == nil {
			h.conns.Store(conn, nil)
		}
		return conn, err
	}
	log := io.Discard
	if os.Getenv("ODRADEK_TEST_LOG") != "" {
		log = os.Stderr
	}
	h.app, err = streams.NewApp(g.topology(), streams.Config{
		ApplicationID: "users", Brokers: g.brokers, ApplicationServer: address,
		CommitInterval: 100 * time.Millisecond, StateStoreCacheMaxBytes: -1, CloseTimeout: 3 * time.Second,
		ClientOptions: []kgo.Opt{kgo.Dialer(dial)},
		Queries: iq.Options{Listen: true, TryTimeout: 300 * time.Millisecond, Transport: &iq.HTTPTransport{Client: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true},
		}}},
		Logger: slog.New(slog.NewTextHandler(log, nil)).With("host", address),
	})
	if err != nil {
		g.t.Fatal(err)
	}
	var ctx context.Context
	ctx, h.stop = context.WithCancel(context.Background())
	go func() { h.stopped <- h.app.Run(ctx) }()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hosts[address] = h
	g.addresses = append(g.addresses, address)
	return address, h
}

// isolate takes an instance's brokers away, as if its machine had stopped.
func (h *host) isolate() {
	h.cut.Store(true)
	h.conns.Range(func(conn, _ any) bool { conn.(net.Conn).Close(); return true })
}

func (g *group) end(address string) {
	g.mu.Lock()
	h := g.hosts[address]
	delete(g.hosts, address)
	g.addresses = slices.DeleteFunc(g.addresses, func(a string) bool { return a == address })
	g.mu.Unlock()
	h.stop()
	if err := <-h.stopped; err != nil && !h.cut.Load() {
		g.t.Errorf("%s: %v", address, err)
	}
}

// write gives a key its next value, and waits until the broker has it.
func (g *group) write(ctx context.Context, key string) error {
	g.mu.Lock()
	g.latest[key]++
	value := key + ":" + strconv.Itoa(g.latest[key])
	g.mu.Unlock()
	rec := &kgo.Record{Topic: usersTopic, Key: []byte(key), Value: []byte(value)}
	if err := g.client.ProduceSync(ctx, rec).FirstErr(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written[key] = iq.Position{}.With(usersTopic, rec.Partition, rec.Offset)
	return nil
}

// tally is what came of queries.
type tally struct {
	mu      sync.Mutex
	queries int
	copies  int
	errs    map[error]int
	took    []time.Duration
}

func (c *tally) add(v iq.Value[string], err error, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queries++
	c.took = append(c.took, took)
	switch {
	case err == nil && !v.Meta.Active:
		c.copies++
	case err != nil:
		for _, kind := range []error{iq.ErrNotReady, iq.ErrMigrated, iq.ErrTooStale, iq.ErrBehind, iq.ErrUnreachable, iq.ErrNotRunning} {
			if errors.Is(err, kind) {
				c.errs[kind]++
				return
			}
		}
		c.errs[err]++
	}
}

// check asks one instance, or a client, for one key, in one of several ways, and
// compares the answer with what is known to be true.
func (g *group) check(q iq.Querier, c *tally) {
	g.mu.Lock()
	key := "user-" + strconv.Itoa(rand.IntN(usersKeys))
	position := g.written[key]
	atLeast := g.latest[key] // as of position
	g.mu.Unlock()
	of := iq.NewKeyValue(q, "users", serde.String, serde.String)
	fresh := false
	switch rand.IntN(3) {
	case 0:
		fresh = true
		of = of.Accepting(iq.Accept{Position: position})
	case 1:
		of = of.Accepting(iq.Accept{Lag: 50})
	}
	const deadline = 4 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	began := time.Now()
	v, err := of.Get(ctx, key)
	took := time.Since(began)
	c.add(v, err, took)
	var typed *iq.Error
	switch {
	case took > deadline+2*time.Second:
		g.t.Errorf("%s: it took %v", key, took)
	case err != nil && !errors.As(err, &typed):
		g.t.Errorf("%s: an error without a type: %v", key, err)
	case err != nil:
		return
	}
	g.mu.Lock()
	most := g.latest[key]
	g.mu.Unlock()
	n := 0
	if v.OK {
		if _, err := fmt.Sscanf(v.Value, key+":%d", &n); err != nil {
			g.t.Errorf("%s: the value is %q, another key's", key, v.Value)
		}
	}
	if n > most || fresh && n < atLeast-1 {
		g.t.Errorf("%s: %q from %+v, when from %d to %d were written, asked for %v", key, v.Value, v.Meta, atLeast, most, position)
	}
}

// TestApp: three instances, with a standby each, are asked all the time, while they
// stop, die and come.
func TestApp(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a quarter of a minute")
	}
	g := newGroup(t, users)
	first, _ := g.start()
	g.start()
	g.start()

	ctx, cancel := context.WithCancel(context.Background())
	var load sync.WaitGroup
	tally := &tally{errs: make(map[error]int)}
	load.Go(func() {
		for ctx.Err() == nil {
			if err := g.write(context.Background(), "user-"+strconv.Itoa(rand.IntN(usersKeys))); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	for range 6 {
		load.Go(func() {
			for ctx.Err() == nil {
				g.mu.Lock()
				h := g.hosts[g.addresses[rand.IntN(len(g.addresses))]]
				g.mu.Unlock()
				g.check(h.app.Queries(), tally)
				time.Sleep(time.Millisecond)
			}
		})
	}
	pause := func() { time.Sleep(2500 * time.Millisecond) }
	pause()
	g.end(first)
	pause()
	_, dead := g.start()
	pause()
	dead.isolate()
	pause()
	pause()
	for address, h := range g.hosts {
		if h == dead {
			g.end(address)
		}
	}
	pause()
	cancel()
	load.Wait()
	g.settled()
	for _, address := range slices.Clone(g.addresses) {
		g.end(address)
	}
	slices.Sort(tally.took)
	n := len(tally.took)
	t.Logf("%d queries, %d answered by copies, errors %v, p50 %v, p99 %v", n, tally.copies, tally.errs, tally.took[n/2], tally.took[n*99/100])
	failed := 0
	for _, count := range tally.errs {
		failed += count
	}
	if n < 100 || failed > n/4 {
		t.Errorf("of %d queries %d failed: %v", n, failed, tally.errs)
	}
}

// settled checks, when nothing is written any more, that all instances and a client
// know the latest values, one by one and all together, and that copies come to have
// them.
func (g *group) settled() {
	client, err := iq.NewClient(g.addresses, iq.ClientOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	defer client.Close()
	queriers := []iq.Querier{client}
	for _, h := range g.hosts {
		queriers = append(queriers, h.app.Queries())
	}
	for _, q := range queriers {
		of := iq.NewKeyValue(q, "users", serde.String, serde.String)
		for key, latest := range g.latest {
			v, err := of.Accepting(iq.Accept{Position: g.written[key]}).Get(context.Background(), key)
			if err != nil || v.Value != fmt.Sprint(key, ":", latest) {
				g.t.Errorf("%s: %+v, %v; want %d", key, v, err, latest)
			}
		}
		n := 0
		for item, err := range of.All(context.Background()) {
			if err != nil {
				g.t.Fatal(err)
			}
			if n++; item.Value != fmt.Sprint(item.Key, ":", g.latest[item.Key]) {
				g.t.Errorf("%s: %s in a range, want %d", item.Key, item.Value, g.latest[item.Key])
			}
		}
		if n != len(g.latest) {
			g.t.Errorf("%d entries in a range of %d", n, len(g.latest))
		}
	}
}
