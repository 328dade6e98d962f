package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/odradek-go/odradek/mirror"
	"github.com/odradek-go/odradek/streamstest"
)

// start starts a cluster that keeps mirror states, and a client for them.
func start(t *testing.T, cfg mirror.Config, opts ...streamstest.Option) (*streamstest.Broker, *mirror.Client) {
	t.Helper()
	b := cluster(t, append([]streamstest.Option{streamstest.WithMirrorStates(keys)}, opts...)...)
	cfg.Keys = keys
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return b, client(t, connect(t, b), cfg)
}

func cluster(t *testing.T, opts ...streamstest.Option) *streamstest.Broker {
	t.Helper()
	b, err := streamstest.NewBroker(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func connect(t *testing.T, b *streamstest.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	kafka, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.Addrs()...), keys.ClientOption(), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	return kafka
}

func client(t *testing.T, kafka *kgo.Client, cfg mirror.Config) *mirror.Client {
	t.Helper()
	c, err := mirror.NewClient(kafka, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func withTimeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

var some = mirror.States{
	"in":     {0: {LastMirroredOffset: 10, State: mirror.Mirroring}, 1: {LastMirroredOffset: -1, State: mirror.Preparing}},
	"counts": {0: {LastMirroredOffset: 7, State: mirror.Stopped}},
}

// Whichever broker it is that answers, and however small the batches, what was
// written is read.
func TestWriteReadRemove(t *testing.T) {
	for _, size := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("batches of ", size), func(t *testing.T) {
			ctx := withTimeout(t)
			_, c := start(t, mirror.Config{BatchPartitions: size}, streamstest.WithNodes(3))
			for _, name := range []string{"one", "two", "three", "four"} {
				if err := c.Write(ctx, name, some); err != nil {
					t.Fatal(err)
				}
			}
			all, err := c.Read(ctx, "two")
			if err != nil || !reflect.DeepEqual(all, some) {
				t.Fatalf("read all: %v, %v", all, err)
			}
			in, err := c.Read(ctx, "two", "in", "in")
			if err != nil || !reflect.DeepEqual(in, mirror.States{"in": some["in"]}) {
				t.Fatalf("read a topic: %v, %v", in, err)
			}
			parts, err := c.ReadPartitions(ctx, "two", map[string][]int32{"in": {1}, "counts": nil})
			if err != nil || !reflect.DeepEqual(parts, mirror.States{"in": {1: some["in"][1]}, "counts": some["counts"]}) {
				t.Fatalf("read partitions: %v, %v", parts, err)
			}
			topics, err := c.Topics(ctx, "two")
			if err != nil || !slices.Equal(topics, []string{"counts", "in"}) {
				t.Fatalf("topics: %v, %v", topics, err)
			}
			if topics, err = c.Topics(ctx, "two", "in"); err != nil || !slices.Equal(topics, []string{"in"}) {
				t.Fatalf("topics: %v, %v", topics, err)
			}
			if err := c.Remove(ctx, "two", "in", "never was"); err != nil {
				t.Fatal(err)
			}
			if all, err = c.Read(ctx, "two"); err != nil || !reflect.DeepEqual(all, mirror.States{"counts": some["counts"]}) {
				t.Fatalf("read after the removal: %v, %v", all, err)
			}
			if all, err = c.Read(ctx, "one"); err != nil || !reflect.DeepEqual(all, some) {
				t.Fatalf("another mirror: %v, %v", all, err)
			}
			if all, err = c.Read(ctx, "nothing"); err != nil || len(all) != 0 {
				t.Fatalf("no mirror: %v, %v", all, err)
			}
		})
	}
}

// Errors of partitions name them; the rest is there.
func TestPartitionErrors(t *testing.T) {
	ctx := withTimeout(t)
	_, c := start(t, mirror.Config{})
	if err := c.Write(ctx, "dr", some); err != nil {
		t.Fatal(err)
	}
	states, err := c.ReadPartitions(ctx, "dr", map[string][]int32{"in": {0, 7}, "lost": nil})
	if !reflect.DeepEqual(states, mirror.States{"in": {0: some["in"][0]}}) {
		t.Errorf("read %v", states)
	}
	if !errors.Is(err, kerr.UnknownTopicOrPartition) || !errors.Is(err, mirror.ErrNoAnswer) {
		t.Fatalf("the error is %v", err)
	}
	var of *mirror.PartitionError
	if !errors.As(err, &of) || *of != (mirror.PartitionError{Op: "read", Mirror: "dr", Topic: "in", Partition: 7, Err: kerr.UnknownTopicOrPartition}) {
		t.Errorf("the first error is %+v", of)
	}
	for _, part := range []string{`read the mirror state of in-7 in mirror "dr"`, "topic lost"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
	err = c.Write(ctx, "dr", mirror.States{"in": {0: {LastMirroredOffset: 1, State: mirror.Paused}, -5: {}}})
	if !errors.As(err, &of) || of.Op != "write" || of.Partition != -5 || !errors.Is(err, kerr.InvalidRequest) {
		t.Errorf("write: %v", err)
	}
	if states, err := c.Read(ctx, "dr", "in"); err != nil || states["in"][0].State != mirror.Paused {
		t.Errorf("read %v, %v", states, err)
	}
}

// answering has the next requests answered by f instead of the cluster; f returns
// nil for those that are to go on.
func answering(b *streamstest.Broker, f func(node int32) kmsg.Response) {
	b.Cluster().ControlKey(int16(kmsg.DescribeCluster), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		resp := f(b.Cluster().CurrentNode())
		return resp, nil, resp != nil
	})
}

// What a broker says to some partitions is asked of others, and of it again.
func TestPartitionsElsewhere(t *testing.T) {
	ctx := withTimeout(t)
	b, c := start(t, mirror.Config{}, streamstest.WithNodes(2))
	var mu sync.Mutex
	var asked []int32
	answering(b, func(node int32) kmsg.Response {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, node)
		result := func(partition int32, err *kerr.Error) mirror.ReadPartitionResult {
			p := mirror.ReadPartitionResult{PartitionIndex: partition, LastMirroredOffset: int64(10*node) + int64(partition), State: 1}
			if err != nil {
				p.ErrorCode = err.Code
			}
			return p
		}
		topic := mirror.Topic[mirror.ReadPartitionResult]{Name: "in"}
		switch {
		case len(asked) == 1:
			topic.Partitions = []mirror.ReadPartitionResult{result(0, nil), result(1, kerr.NotCoordinator), result(2, kerr.NotLeaderForPartition)}
		case len(asked) == 2:
			topic.Partitions = []mirror.ReadPartitionResult{result(1, nil), result(2, kerr.CoordinatorLoadInProgress)}
		default:
			topic.Partitions = []mirror.ReadPartitionResult{result(2, nil)}
		}
		return &mirror.ReadMirrorStatesResponse{Topics: []mirror.Topic[mirror.ReadPartitionResult]{topic}}
	})
	states, err := c.Read(ctx, "dr", "in")
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != 3 || asked[0] == asked[1] {
		t.Fatalf("asked the brokers %v", asked)
	}
	for partition, node := range asked {
		want := mirror.Partition{LastMirroredOffset: int64(10*node) + int64(partition), State: mirror.Mirroring}
		if got := states["in"][int32(partition)]; got != want {
			t.Errorf("partition %d: %v, want %v", partition, got, want)
		}
	}
}

// A partition that can't be settled in time keeps the error that it had.
func TestPartitionStaysPending(t *testing.T) {
	b, c := start(t, mirror.Config{RetryTimeout: 50 * time.Millisecond})
	answering(b, func(int32) kmsg.Response {
		return &mirror.WriteMirrorStatesResponse{Topics: []mirror.Topic[mirror.WritePartitionResult]{{Name: "counts", Partitions: []mirror.WritePartitionResult{
			{PartitionIndex: 0, ErrorCode: kerr.CoordinatorNotAvailable.Code},
		}}}}
	})
	err := c.Write(withTimeout(t), "dr", mirror.States{"counts": some["counts"]})
	var of *mirror.PartitionError
	if !errors.As(err, &of) || of.Topic != "counts" || of.Err != kerr.CoordinatorNotAvailable {
		t.Errorf("the error is %v", err)
	}
}

// Errors that pass are waited for; others end it, naming broker and request.
func TestRetries(t *testing.T) {
	ctx := withTimeout(t)
	b, c := start(t, mirror.Config{}, streamstest.WithNodes(3))
	for _, err := range []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.RequestTimedOut, kerr.ThrottlingQuotaExceeded} {
		fault := b.Fault(kfake.Fault{Err: err, Nodes: []int32{b.Cluster().CoordinatorFor("dr")}, Count: 2})
		if err := c.Write(ctx, "dr", some); err != nil {
			t.Errorf("after %v: %v", err, err)
		}
		if fault.Hits() != 2 {
			t.Errorf("%v was answered %d times", err, fault.Hits())
		}
		fault.Remove()
	}
	fault := b.Fault(kfake.Fault{Err: kerr.ClusterAuthorizationFailed, Group: "dr", Count: -1})
	states, err := c.Read(ctx, "dr")
	if !errors.Is(err, kerr.ClusterAuthorizationFailed) || fault.Hits() != 1 || len(states) != 0 {
		t.Errorf("%v after %d requests, with %v", err, fault.Hits(), states)
	}
	if !strings.HasPrefix(err.Error(), `ReadMirrorStates of mirror "dr": broker `) {
		t.Errorf("the error is %q", err)
	}
}

// The coordinator moves; a broker dies.
func TestCoordinatorMoves(t *testing.T) {
	ctx := withTimeout(t)
	b, c := start(t, mirror.Config{}, streamstest.WithNodes(3))
	for range 3 {
		if err := c.Write(ctx, "dr", some); err != nil {
			t.Fatal(err)
		}
		was := b.Cluster().CoordinatorFor("dr")
		for b.Cluster().CoordinatorFor("dr") == was {
			b.Cluster().RehashCoordinators()
		}
	}
	if err := b.Cluster().RemoveNode(b.Cluster().CoordinatorFor("dr")); err != nil {
		t.Fatal(err)
	}
	if states, err := c.Read(ctx, "dr"); err != nil || !reflect.DeepEqual(states, some) {
		t.Errorf("read %v, %v", states, err)
	}
}

// throttles counts what brokers ask for.
type throttles struct {
	mu sync.Mutex
	of []time.Duration
}

func (h *throttles) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, after bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after {
		h.of = append(h.of, interval)
	}
}

// A broker that asks for it is left alone for a while.
func TestThrottled(t *testing.T) {
	ctx := withTimeout(t)
	b, _ := start(t, mirror.Config{})
	seen := new(throttles)
	c := client(t, connect(t, b, kgo.WithHooks(seen)), mirror.Config{Keys: keys})
	answering(b, func(int32) kmsg.Response { return &mirror.ReadMirrorStatesResponse{ThrottleMillis: 40} })
	began := time.Now()
	for range 3 {
		if _, err := c.Read(ctx, "dr"); err != nil {
			t.Fatal(err)
		}
	}
	if want := []time.Duration{40 * time.Millisecond, 40 * time.Millisecond, 40 * time.Millisecond}; !slices.Equal(seen.of, want) {
		t.Errorf("throttled for %v", seen.of)
	}
	if took := time.Since(began); took < 80*time.Millisecond {
		t.Errorf("three requests were made within %v", took)
	}
}

// Keys that the brokers don't announce are refused, and nothing is sent.
func TestUnsupported(t *testing.T) {
	ctx := withTimeout(t)
	for name, opts := range map[string][]streamstest.Option{
		"a broker of today":               nil,
		"a broker without streams groups": {streamstest.WithoutStreamsGroups()},
		"other keys":                      {streamstest.WithMirrorStates(mirror.Keys{ReadMirrorStates: 2000, WriteMirrorStates: 2001})},
	} {
		c := client(t, connect(t, cluster(t, opts...)), mirror.Config{Keys: keys, Logger: slog.New(slog.DiscardHandler)})
		_, err := c.Read(ctx, "dr")
		if !errors.Is(err, mirror.ErrUnsupported) || !strings.Contains(err.Error(), "1000") {
			t.Errorf("%s: read: %v", name, err)
		}
		if err := c.Write(ctx, "dr", some); !errors.Is(err, mirror.ErrUnsupported) || !strings.Contains(err.Error(), "1001") {
			t.Errorf("%s: write: %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	ok := mirror.Config{Keys: keys}
	for name, test := range map[string]struct {
		change func(*mirror.Config)
		says   string
	}{
		"no keys":        {func(c *mirror.Config) { c.Keys = mirror.Keys{} }, "the API key of ReadMirrorStates is 0"},
		"a taken key":    {func(c *mirror.Config) { c.Keys.WriteMirrorStates = 1 }, "which is that of Fetch"},
		"equal keys":     {func(c *mirror.Config) { c.Keys.WriteMirrorStates = 1000 }, "both API keys are 1000"},
		"double state":   {func(c *mirror.Config) { c.States = mirror.StateNumbers{3: mirror.Stopped, 4: mirror.Stopped} }, "STOPPED has two numbers, 3 and 4"},
		"negative batch": {func(c *mirror.Config) { c.BatchPartitions = -1 }, "BatchPartitions"},
		"negative time":  {func(c *mirror.Config) { c.RequestTimeout = -1 }, "RequestTimeout"},
	} {
		cfg := ok
		test.change(&cfg)
		if _, err := mirror.NewClient(nil, cfg); !errors.Is(err, mirror.ErrConfig) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Kafka client that would refuse the requests is refused.
func TestClientOption(t *testing.T) {
	kafka := connect(t, cluster(t), kgo.MaxVersions(kversion.Stable()))
	if _, err := mirror.NewClient(kafka, mirror.Config{Keys: keys}); !errors.Is(err, mirror.ErrConfig) || !strings.Contains(err.Error(), "ClientOption") {
		t.Errorf("the error is %v", err)
	}
	client(t, connect(t, cluster(t), kgo.MaxVersions(nil)), mirror.Config{Keys: keys})
}

// The numbers of the states are those of the configuration, both ways.
func TestStateNumbers(t *testing.T) {
	ctx := withTimeout(t)
	b, theirs := start(t, mirror.Config{States: mirror.StateNumbers{2: mirror.Mirroring, 6: mirror.Stopped}})
	err := theirs.Write(ctx, "dr", mirror.States{"in": {0: {State: mirror.Failed}}})
	if !errors.Is(err, mirror.ErrConfig) || !strings.Contains(err.Error(), "no number for the state FAILED of in-0") {
		t.Errorf("a state without a number: %v", err)
	}
	if err := theirs.Write(ctx, "dr", mirror.States{"in": {0: {State: mirror.Mirroring}, 1: {State: mirror.Stopped}}}); err != nil {
		t.Fatal(err)
	}
	draft := client(t, connect(t, b), mirror.Config{Keys: keys})
	states, err := draft.Read(ctx, "dr")
	if err != nil || states["in"][0].State != mirror.Pausing || states["in"][1].State != mirror.Failed {
		t.Errorf("by other numbers: %v, %v", states, err)
	}
	if err := draft.Write(ctx, "dr", mirror.States{"in": {0: {State: mirror.Stopped}}}); err != nil {
		t.Fatal(err)
	}
	if states, err = theirs.Read(ctx, "dr"); err != nil || states["in"][0].State != mirror.StateUnknown {
		t.Errorf("a number without a state: %v, %v", states, err)
	}
	for _, s := range []mirror.State{mirror.StateUnknown, mirror.Preparing, mirror.Mirroring, mirror.Pausing, mirror.Paused, mirror.Stopping, mirror.Stopped, mirror.Failed} {
		if back, err := mirror.ParseState(s.String()); err != nil || back != s {
			t.Errorf("%v is parsed as %v, %v", s, back, err)
		}
	}
	if _, err := mirror.ParseState("stopped"); err == nil {
		t.Error("a state that isn't one is parsed")
	}
}

// An end of the context ends it at once, and is said.
func TestContextEnds(t *testing.T) {
	b, c := start(t, mirror.Config{RetryTimeout: -1})
	fault := b.Fault(kfake.Fault{Err: kerr.CoordinatorNotAvailable, Count: -1})
	ctx, cancel := context.WithCancel(withTimeout(t))
	go func() {
		defer cancel()
		_ = fault.Wait(ctx, 2)
	}()
	if _, err := c.Read(ctx, "dr"); !errors.Is(err, context.Canceled) || !errors.Is(err, kerr.CoordinatorNotAvailable) {
		t.Errorf("the error is %v", err)
	}
}

func TestClosedClient(t *testing.T) {
	b, _ := start(t, mirror.Config{})
	kafka := connect(t, b)
	c := client(t, kafka, mirror.Config{Keys: keys})
	kafka.Close()
	if _, err := c.Read(withTimeout(t), "dr"); !errors.Is(err, kgo.ErrClientClosed) {
		t.Errorf("the error is %v", err)
	}
}
