package iq_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

const (
	storePartitions = 4
	source          = "in"
	changelogTopic  = "app-counts-changelog"
)

// cluster is a group without Kafka: what its instances have is up to the test.
type cluster struct {
	mu        sync.Mutex
	instances []*instance
	ends      map[int32]int64 // of the changelog
	listErr   error
	listWait  chan struct{} // a look at the ends is over when it is closed; nil: at once
	looks     atomic.Int32
}

// set changes what the brokers say.
func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// instance is one member of the group, with a server.
type instance struct {
	*iq.Service
	cluster  *cluster
	self     membership.Endpoint
	registry *state.Registry
	tasks    map[int32]*fakeTask
	stopped  atomic.Bool
	requests atomic.Int32
	delay    atomic.Pointer[chan struct{}] // requests wait for it to be closed
}

// fakeTask has a store partition.
type fakeTask struct {
	gate      state.Gate
	partition int32
	store     *state.TimestampedKeyValue[string, int64]
	readable  *state.Readable

	// With the gate.
	active, loading bool
	unconfirmed     bool // though active
	inputs          map[string]int64
	next            int64 // in the changelog
}

func (f *fakeTask) Active() bool      { return f.active && !f.unconfirmed }
func (f *fakeTask) Unconfirmed() bool { return f.active && f.unconfirmed }
func (f *fakeTask) Loading() bool     { return f.loading }

func (f *fakeTask) Inputs() iter.Seq[state.InputPosition] {
	return func(yield func(state.InputPosition) bool) {
		for topic, offset := range f.inputs {
			if !yield(state.InputPosition{Topic: topic, Partition: f.partition, Offset: offset}) {
				return
			}
		}
	}
}

func (f *fakeTask) Changelog() (string, int64, bool) { return changelogTopic, f.next, !f.active }

// with calls f as the task's owner.
func (f *fakeTask) with(do func()) {
	f.gate.Lock()
	defer f.gate.Unlock()
	do()
}

func (f *fakeTask) put(t testing.TB, key string, value int64) {
	t.Helper()
	f.with(func() {
		if err := f.store.Put(key, value, value); err != nil {
			t.Error(err)
		}
	})
}

var errStopped = errors.New("stopped by the test")

func newCluster(t *testing.T, n int, options func(i int, o *iq.Options)) *cluster {
	c := &cluster{ends: make(map[int32]int64)}
	for i := range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		in := &instance{cluster: c, registry: &state.Registry{}, tasks: make(map[int32]*fakeTask)}
		in.self = membership.Endpoint{Host: "127.0.0.1", Port: uint16(listener.Addr().(*net.TCPAddr).Port)}
		transport := &http.Transport{}
		o := iq.Options{Transport: &iq.HTTPTransport{Client: &http.Client{Transport: transport}}}
		if options != nil {
			options(i, &o)
		}
		in.Service = iq.New(iq.Config{
			Options: o, Self: &in.self, Registry: in.registry,
			Stores: []iq.StoreInfo{counts(source)},
			Running: func() error {
				if in.stopped.Load() {
					return errStopped
				}
				return nil
			},
			EndOffsets: func(ctx context.Context, _ string) (map[int32]int64, error) {
				c.mu.Lock()
				ends, err, wait := maps.Clone(c.ends), c.listErr, c.listWait
				c.mu.Unlock()
				c.looks.Add(1)
				if wait != nil {
					select {
					case <-wait:
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				return ends, err
			},
		})
		handler := in.Handler()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			in.requests.Add(1)
			if wait := in.delay.Load(); wait != nil {
				select {
				case <-*wait:
				case <-r.Context().Done():
				}
			}
			handler.ServeHTTP(w, r)
		})}
		go server.Serve(listener)
		t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
		c.instances = append(c.instances, in)
	}
	return c
}

// give has an instance have a partition.
func (in *instance) give(t testing.TB, partition int32, active bool) *fakeTask {
	t.Helper()
	f := &fakeTask{partition: partition, active: active, inputs: make(map[string]int64)}
	f.store = state.NewTimestampedKeyValue("counts", serde.String, serde.Int64, state.Memory)
	if err := f.store.Open(state.OpenContext{}); err != nil {
		t.Fatal(err)
	}
	f.readable = &state.Readable{Name: "counts", Partition: partition, Owner: f, Kind: f.store, Views: state.NewViews(f.store, &f.gate)}
	in.registry.Add(f.readable)
	in.tasks[partition] = f
	return f
}

// take takes a partition away.
func (in *instance) take(t testing.TB, partition int32) {
	t.Helper()
	f := in.tasks[partition]
	in.registry.Remove(f.readable)
	f.with(func() {
		if err := f.store.Close(); err != nil {
			t.Error(err)
		}
	})
	delete(in.tasks, partition)
}

// publish tells all instances who has what.
func (c *cluster) publish() {
	var endpoints []membership.EndpointPartitions
	for _, in := range c.instances {
		var active, standby []int32
		for p, f := range in.tasks {
			if f.active {
				active = append(active, p)
			} else {
				standby = append(standby, p)
			}
		}
		endpoints = append(endpoints, has(in.self, source, active, standby))
	}
	c.tell(endpoints...)
}

func (c *cluster) tell(endpoints ...membership.EndpointPartitions) {
	for _, in := range c.instances {
		in.Router().Update(1, endpoints, map[string]int{source: storePartitions})
	}
}

// handle is one to the store, which reads what is here by the short way where q is an
// instance.
func handle(q iq.Querier) iq.KeyValue[string, int64] {
	if in, ok := q.(*instance); ok {
		q = in.Service
	}
	return iq.NewKeyValue(q, "counts", serde.String, serde.Int64)
}

// keyIn is a key that is in a partition.
func keyIn(partition int32) string {
	for n := 0; ; n++ {
		if key := "key-" + strconv.Itoa(n); iq.DefaultPartition([]byte(key), storePartitions) == partition {
			return key
		}
	}
}

func put(t testing.TB, key string, value int64, in ...*instance) {
	t.Helper()
	p := iq.DefaultPartition([]byte(key), storePartitions)
	for _, in := range in {
		if f := in.tasks[p]; f != nil {
			f.put(t, key, value)
		}
	}
}
