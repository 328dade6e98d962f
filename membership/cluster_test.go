package membership

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// cluster is a kfake cluster in virtual time whose coordinator's answers a
// test makes itself. Use it within synctest.Test.
type cluster struct {
	t       *testing.T
	fake    *kfake.Cluster
	network *kfake.VirtualNetwork
	client  *kgo.Client

	mu         sync.Mutex
	began      time.Time
	node       int32 // coordinates the group
	maxVersion int16 // of heartbeats; −1: the brokers don't know them
	lookups    int
	requests   []received
	inquiries  int
	given      []kmsg.TaskIDs // active, as a description has them; nil: as plain gives them
	pushes     []kmsg.StreamsGroupTopologyDescriptionUpdateRequest
	// answer makes the answer to a heartbeat; nil, nil closes the connection.
	answer func(r received) (*kmsg.StreamsGroupHeartbeatResponse, error)
	// pushCode makes the answer to a description.
	pushCode func(n int) int16
	// late holds an answer back; it is called with a number, from 0.
	late func(n int)
}

// received is a heartbeat as it arrived.
type received struct {
	n    int // from 0
	at   time.Duration
	node int32
	kmsg.StreamsGroupHeartbeatRequest
}

func newCluster(t *testing.T, opts ...kgo.Opt) *cluster {
	t.Helper()
	c := &cluster{t: t, network: new(kfake.VirtualNetwork), began: time.Now(), maxVersion: 1}
	fake, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.Ports(9092, 9093), kfake.ListenFn(c.network.Listen))
	if err != nil {
		t.Fatal(err)
	}
	c.fake = fake
	c.control(18, c.apiVersions)
	c.control(10, c.findCoordinator)
	c.control(88, c.heartbeat)
	c.control(89, c.inquiry)
	c.control(93, c.describe)
	c.client, err = kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers("localhost:9092", "localhost:9093"), kgo.Dialer(c.network.DialContext),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.client.Close()
		c.fake.Close()
		synctest.Wait()
	})
	return c
}

func (c *cluster) control(key int16, fn func(kmsg.Request) (kmsg.Response, error)) {
	c.fake.ControlKey(key, func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.fake.KeepControl()
		resp, err := fn(req)
		return resp, err, true
	})
}

func (c *cluster) apiVersions(kreq kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resp := kreq.ResponseKind().(*kmsg.ApiVersionsResponse)
	if resp.Version > 4 {
		resp.Version = 4
	}
	add := func(key, most int16) {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MaxVersion = key, most
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	add(0, 11) // kgo takes a broker without it for one that reported nothing
	add(3, 12)
	add(10, 5)
	add(18, 4)
	if c.maxVersion >= 0 {
		add(88, c.maxVersion)
		add(89, c.maxVersion)
	}
	if c.maxVersion >= 1 {
		add(93, 0)
	}
	return resp, nil
}

func (c *cluster) findCoordinator(kreq kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookups++
	req := kreq.(*kmsg.FindCoordinatorRequest)
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	found := kmsg.NewFindCoordinatorResponseCoordinator()
	found.Key, found.NodeID, found.Host, found.Port = req.CoordinatorKeys[0], c.node, "localhost", 9092+c.node
	resp.Coordinators = append(resp.Coordinators, found)
	return resp, nil
}

func (c *cluster) heartbeat(kreq kmsg.Request) (kmsg.Response, error) {
	req := kreq.(*kmsg.StreamsGroupHeartbeatRequest)
	c.mu.Lock()
	r := received{len(c.requests), time.Since(c.began), c.fake.CurrentNode(), *req}
	c.requests = append(c.requests, r)
	answer, late := c.answer, c.late
	c.mu.Unlock()
	if late != nil {
		c.fake.SleepControl(func() { late(r.n) })
	}
	resp, err := answer(r)
	if err != nil {
		return nil, err
	}
	resp.Version = req.Version
	return resp, nil
}

// inquiry describes a group of one member, which has what plain gives it, or what
// the test says.
func (c *cluster) inquiry(kreq kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inquiries++
	req := kreq.(*kmsg.StreamsGroupDescribeRequest)
	resp := req.ResponseKind().(*kmsg.StreamsGroupDescribeResponse)
	given := tasks("0", 0, 1)
	if c.given != nil {
		given = c.given
	}
	group := describedAs(1, given)
	group.Group = req.Groups[0]
	resp.Groups = append(resp.Groups, group)
	return resp, nil
}

func (c *cluster) describe(kreq kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	req := kreq.(*kmsg.StreamsGroupTopologyDescriptionUpdateRequest)
	c.pushes = append(c.pushes, *req)
	resp := req.ResponseKind().(*kmsg.StreamsGroupTopologyDescriptionUpdateResponse)
	if c.pushCode != nil {
		resp.ErrorCode = c.pushCode(len(c.pushes))
	}
	return resp, nil
}

// got returns the heartbeats so far.
func (c *cluster) got() []received {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]received(nil), c.requests...)
}

func (c *cluster) set(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
}

var errHangUp = errors.New("the broker hangs up")

// plain is a coordinator of one member: it gives it the epoch 1, and nothing
// to do.
func plain(r received) (*kmsg.StreamsGroupHeartbeatResponse, error) {
	switch r.MemberEpoch {
	case 0:
		return granted(1, tasks("0", 0, 1), none, none), nil
	case -1, -2:
		return ok(r.MemberEpoch), nil
	}
	return ok(r.MemberEpoch), nil
}

var none = []kmsg.TaskIDs{}

func tasks(subtopology string, partitions ...int32) []kmsg.TaskIDs {
	return []kmsg.TaskIDs{{SubtopologyID: subtopology, Partitions: partitions}}
}

// ok is an answer that changes nothing.
func ok(epoch int32) *kmsg.StreamsGroupHeartbeatResponse {
	return &kmsg.StreamsGroupHeartbeatResponse{
		Version: 1, MemberEpoch: epoch, HeartbeatIntervalMillis: 1000, TaskOffsetIntervalMillis: 3000,
		AcceptableRecoveryLag: 100, Status: []kmsg.StreamsGroupHeartbeatResponseStatus{},
	}
}

func granted(epoch int32, active, standby, warmup []kmsg.TaskIDs) *kmsg.StreamsGroupHeartbeatResponse {
	r := ok(epoch)
	r.ActiveTasks, r.StandbyTasks, r.WarmupTasks = active, standby, warmup
	return r
}

func refusal(code int16, message string) *kmsg.StreamsGroupHeartbeatResponse {
	return &kmsg.StreamsGroupHeartbeatResponse{Version: 1, ErrorCode: code, ErrorMessage: &message, AcceptableRecoveryLag: -1}
}

func withStatus(r *kmsg.StreamsGroupHeartbeatResponse, codes ...StatusCode) *kmsg.StreamsGroupHeartbeatResponse {
	r.Status = []kmsg.StreamsGroupHeartbeatResponseStatus{}
	for _, c := range codes {
		r.Status = append(r.Status, kmsg.StreamsGroupHeartbeatResponseStatus{StatusCode: int8(c), StatusDetail: "detail of " + c.String()})
	}
	return r
}

func testConfig() Config {
	return Config{
		Group: "app", MemberID: "member", ProcessID: "process",
		Topology: &kmsg.StreamsGroupHeartbeatRequestTopology{
			Subtopologies: []kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{{SubtopologyID: "0", SourceTopics: []string{"in"}}},
		},
		Description: &kmsg.TopologyDescription{Subtopologies: []kmsg.TopologyDescriptionSubtopology{{SubtopologyID: "0"}}},
		Logger:      slog.New(slog.DiscardHandler),
		Random:      middle{},
	}
}

// host is the package above: it owns what it is given at once, unless told
// otherwise, and makes progress.
type host struct {
	*Loop
	c      *cluster
	cancel context.CancelFunc
	ended  chan error

	mu       sync.Mutex
	manual   bool // the test calls Reconciled and LostDone
	assigned []Assignment
	lost     []error
	ready    []bool
	warnings []error
	states   []State
	ends     []EndpointPartitions
}

func (c *cluster) start(cfg Config) *host {
	c.t.Helper()
	h := &host{c: c, ended: make(chan error, 1)}
	loop, err := NewLoop(c.client, cfg, Callbacks{
		OnAssignment: func(a Assignment) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.assigned = append(h.assigned, a)
			if !h.manual {
				h.Reconciled(a.LocalEpoch)
			}
		},
		OnTasksLost: func(reason error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.lost = append(h.lost, reason)
			if !h.manual {
				h.LostDone()
			}
		},
		OnReady:       func(ready bool, _ []Status) { h.mu.Lock(); h.ready = append(h.ready, ready); h.mu.Unlock() },
		OnStateChange: func(_, to State) { h.mu.Lock(); h.states = append(h.states, to); h.mu.Unlock() },
		OnWarning:     func(err error) { h.mu.Lock(); h.warnings = append(h.warnings, err); h.mu.Unlock() },
		OnEndpoints:   func(_ int32, e []EndpointPartitions) { h.mu.Lock(); h.ends = e; h.mu.Unlock() },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	h.Loop = loop
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	go func() { h.ended <- loop.Run(ctx) }()
	c.t.Cleanup(func() { cancel(); synctest.Wait() })
	return h
}

// end waits for Run.
func (h *host) end() error {
	h.c.t.Helper()
	select {
	case err := <-h.ended:
		return err
	case <-time.After(10 * time.Minute):
		h.c.t.Fatal("Run doesn't end")
		return nil
	}
}

func (h *host) leave(how LeaveMode) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return h.Leave(ctx, how)
}
