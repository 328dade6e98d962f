package streamstest_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/odradek-go/odradek/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Only the node that is the group's coordinator answers.
func TestOtherNodesRefuse(t *testing.T) {
	b, cl := start(t, streamstest.WithNodes(3))
	a := newMember(t, b, cl, "a")
	a.join(counting())
	settle(t, b, a)
	for node := range int32(3) {
		if node == b.Cluster().CoordinatorFor(group) {
			continue
		}
		beat := kmsg.NewPtrStreamsGroupHeartbeatRequest()
		beat.Group, beat.MemberID, beat.MemberEpoch = group, a.id, a.epoch
		if resp := request[*kmsg.StreamsGroupHeartbeatResponse](t, cl, node, beat); resp.ErrorCode != kerr.NotCoordinator.Code {
			t.Errorf("heartbeat at node %d: error %d", node, resp.ErrorCode)
		}
		describe := kmsg.NewPtrStreamsGroupDescribeRequest()
		describe.Groups = []string{group}
		if resp := request[*kmsg.StreamsGroupDescribeResponse](t, cl, node, describe); resp.Groups[0].ErrorCode != kerr.NotCoordinator.Code {
			t.Errorf("describe at node %d: error %d", node, resp.Groups[0].ErrorCode)
		}
		push := kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()
		push.Group, push.MemberID = group, a.id
		if resp := request[*kmsg.StreamsGroupTopologyDescriptionUpdateResponse](t, cl, node, push); resp.ErrorCode != kerr.NotCoordinator.Code {
			t.Errorf("push at node %d: error %d", node, resp.ErrorCode)
		}
		if _, listed := listGroups(t, cl, node)[group]; listed {
			t.Errorf("node %d lists the group", node)
		}
	}
}

// When the coordinator moves, the group goes on. What a coordinator only has in memory is lost.
func TestRehashCoordinators(t *testing.T) {
	b, cl := start(t, streamstest.WithNodes(3))
	a := newMember(t, b, cl, "a")
	a.send(func(r *kmsg.StreamsGroupHeartbeatRequest) {
		r.Topology, r.RebalanceTimeoutMillis, r.ProcessID = counting(), 1000, &a.process
		r.ActiveTasks, r.StandbyTasks, r.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		r.UserEndpoint = &kmsg.StreamsGroupHeartbeatRequestUserEndpoint{Host: "here", Port: 1}
	})
	before := settle(t, b, a)
	if before.EndpointInformationEpoch == 0 {
		t.Fatal("the endpoint epoch is 0")
	}
	in := b.Cluster().TopicInfo("in").TopicID
	was := b.Cluster().CoordinatorFor(group)
	for b.Cluster().CoordinatorFor(group) == was {
		b.Cluster().RehashCoordinators()
	}
	resp := a.heartbeat()
	if resp.ErrorCode != 0 || resp.MemberEpoch != before.Members[0].Epoch || resp.ActiveTasks != nil {
		t.Errorf("error %d, epoch %d, tasks %v", resp.ErrorCode, resp.MemberEpoch, resp.ActiveTasks)
	}
	after, _ := b.Group(group)
	if after.Epoch != before.Epoch || after.EndpointInformationEpoch != 0 {
		t.Errorf("group epoch %d of %d, endpoint epoch %d", after.Epoch, before.Epoch, after.EndpointInformationEpoch)
	}
	if code := commit(t, b, a, in, 0, 5, a.epoch); code != 0 {
		t.Errorf("commit: error %d", code)
	}
}

// Nodes that come and go are found.
func TestNodesChange(t *testing.T) {
	b, cl := start(t, streamstest.WithNodes(2))
	if _, _, err := b.Cluster().AddNode(-1, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Cluster().RemoveNode(0); err != nil {
		t.Fatal(err)
	}
	cl = connect(t, b)
	a := newMember(t, b, cl, "a")
	for node := range int32(3) { // so that the client knows them
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if _, err := cl.Request(ctx, kmsg.NewPtrMetadataRequest()); err != nil {
			t.Fatalf("node %d: %v", node, err)
		}
		cancel()
	}
	a.join(counting())
	settle(t, b, a)
	if _, listed := listGroups(t, cl, b.Cluster().CoordinatorFor(group))[group]; !listed {
		t.Error("the group is not listed")
	}
}

func TestFaults(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	heartbeats := []kmsg.Key{kmsg.StreamsGroupHeartbeat}

	before := b.Fault(kfake.Fault{Keys: heartbeats, Group: group, Err: kerr.CoordinatorLoadInProgress, Count: 2})
	for range 2 {
		if resp := a.join(counting()); resp.ErrorCode != kerr.CoordinatorLoadInProgress.Code {
			t.Errorf("error %d", resp.ErrorCode)
		}
	}
	if _, ok := b.Group(group); ok {
		t.Error("a request that failed has made the group")
	}
	after := b.Fault(kfake.Fault{Keys: heartbeats, Err: kerr.RequestTimedOut})
	if resp := a.join(counting()); resp.ErrorCode != kerr.RequestTimedOut.Code {
		t.Errorf("error %d", resp.ErrorCode)
	}
	if _, ok := b.Group(group); !ok {
		t.Error("a request whose answer was lost has not made the group")
	}
	watch := b.Fault(kfake.Fault{Keys: heartbeats, Observe: true, Count: -1})
	elsewhere := b.Fault(kfake.Fault{Group: "other", Count: -1}, kfake.Fault{Nodes: []int32{7}, Count: -1},
		kfake.Fault{When: func(r kmsg.Request) bool { return r.(*kmsg.StreamsGroupHeartbeatRequest).MemberID == "x" }, Count: -1})
	a.join(counting())
	settle(t, b, a)
	if before.Hits() != 2 || after.Hits() != 1 || watch.Hits() < 2 || elsewhere.Hits() != 0 {
		t.Errorf("hits: %d, %d, %d, %d", before.Hits(), after.Hits(), watch.Hits(), elsewhere.Hits())
	}
	elsewhere.Remove()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	waited := make(chan error, 1)
	more := watch.Hits() + 1
	go func() { waited <- watch.Wait(ctx, more) }()
	a.heartbeat()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	watch.Remove()
	hits := watch.Hits()
	a.heartbeat()
	if watch.Hits() != hits {
		t.Error("a removed fault still watches")
	}
	cancel()
	if err := watch.Wait(ctx, hits+1); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with a cancelled context: %v", err)
	}

	all := b.Fault(kfake.Fault{Count: -1})
	defer all.Remove()
	describe := kmsg.NewPtrStreamsGroupDescribeRequest()
	describe.Groups = []string{group}
	if resp := request[*kmsg.StreamsGroupDescribeResponse](t, cl, 0, describe); resp.Groups[0].ErrorCode != kerr.UnknownServerError.Code {
		t.Errorf("describe: error %d", resp.Groups[0].ErrorCode)
	}
	if resp := request[*kmsg.StreamsGroupTopologyDescriptionUpdateResponse](t, cl, 0, kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()); resp.ErrorCode != kerr.UnknownServerError.Code {
		t.Errorf("push: error %d", resp.ErrorCode)
	}
}

// kfake's own faults and control functions work for members of streams groups.
func TestKfakeFaults(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	b.Cluster().ControlKey(int16(kmsg.StreamsGroupHeartbeat), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		resp := kreq.ResponseKind().(*kmsg.StreamsGroupHeartbeatResponse)
		resp.ErrorCode = kerr.CoordinatorNotAvailable.Code
		return resp, nil, true
	})
	if resp := a.join(counting()); resp.ErrorCode != kerr.CoordinatorNotAvailable.Code {
		t.Errorf("a control function: error %d", resp.ErrorCode)
	}
	a.join(counting())
	settle(t, b, a)
	in := b.Cluster().TopicInfo("in").TopicID
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Group: group, Topic: "in", Err: kerr.UnstableOffsetCommit})
	if _, code := fetch(t, b, a, in, 0, a.epoch); code != kerr.UnstableOffsetCommit.Code {
		t.Errorf("fetch: error %d", code)
	}
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: group, Err: kerr.CoordinatorLoadInProgress})
	if code := commit(t, b, a, in, 0, 1, a.epoch); code != kerr.CoordinatorLoadInProgress.Code {
		t.Errorf("commit: error %d", code)
	}
	if code := commit(t, b, a, in, 0, 1, a.epoch); code != 0 {
		t.Errorf("commit again: error %d", code)
	}
}

func TestClose(t *testing.T) {
	var log strings.Builder
	b, err := streamstest.NewBroker(streamstest.WithLogger(slog.New(slog.NewTextHandler(&syncWriter{w: &log}, nil))),
		streamstest.WithKfake(kfake.SeedTopics(4, "in")))
	if err != nil {
		t.Fatal(err)
	}
	cl := connect(t, b)
	a := newMember(t, b, cl, "a")
	a.join(counting())
	b.Close()
	b.Close()
	if b.Addrs() != nil {
		t.Error("a closed broker has addresses")
	}
	if g, ok := b.Group(group); !ok || len(g.Members) != 1 {
		t.Error("the group cannot be looked at after Close")
	}
	if !strings.Contains(log.String(), "streams target assignment computed") {
		t.Errorf("the log says %q", log.String())
	}
}

type syncWriter struct {
	mu sync.Mutex
	w  *strings.Builder
}

func (w *syncWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

// Many members, administrators and topics at once; at the end every task runs exactly once.
func TestConcurrency(t *testing.T) {
	b, _ := start(t, streamstest.WithNodes(3), streamstest.WithStandbyReplicas(1))
	const members = 6
	var wg sync.WaitGroup
	all := make([]*member, members)
	for i := range members {
		cl := connect(t, b)
		all[i] = newMember(t, b, cl, string(rune('a'+i)))
		all[i].process = "process " + string(rune('x'+i%3))
		wg.Go(func() {
			m := all[i]
			for round := range 20 {
				switch {
				case m.epoch <= 0:
					m.join(counting())
				case round%7 == 6 && i%2 == 0:
					m.leave(-1)
				default:
					m.heartbeat()
				}
			}
			if m.epoch <= 0 {
				m.join(counting())
			}
		})
	}
	admin := connect(t, b)
	wg.Go(func() {
		for range 20 {
			for node := range int32(3) {
				listGroups(t, admin, node)
			}
			b.Group(group)
		}
	})
	wg.Wait()
	g := settle(t, b, all...)
	var active []streamstest.Task
	for _, m := range g.Members {
		active = append(active, m.Assigned.Active...)
	}
	slices.SortFunc(active, func(x, y streamstest.Task) int { return int(x.Partition - y.Partition) })
	want := []streamstest.Task{{Subtopology: "0", Partition: 0}, {Subtopology: "0", Partition: 1}, {Subtopology: "0", Partition: 2}, {Subtopology: "0", Partition: 3}}
	if !slices.Equal(active, want) {
		t.Errorf("active tasks are %v", active)
	}
}

// In simulated time nothing takes long: a session runs out while its member is silent.
func TestSimulatedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(kfake.VirtualNetwork)
		b, err := streamstest.NewBroker(streamstest.WithKafkaDefaults(), streamstest.WithNodes(2),
			streamstest.WithNetwork(network), streamstest.WithKfake(kfake.SeedTopics(4, "in")))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.Dialer(network.DialContext))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
		a.join(counting())
		c.join(counting())
		time.Sleep(3 * time.Second) // the initial rebalance delay
		settle(t, b, a, c)
		if len(a.active()) != 2 || len(c.active()) != 2 {
			t.Fatalf("a runs %v, c runs %v", a.active(), c.active())
		}
		for range 8 { // 40 s
			time.Sleep(5 * time.Second)
			a.heartbeat()
		}
		if g, _ := b.Group(group); len(g.Members) != 2 {
			t.Fatalf("c is gone after 40 s of its session of 45 s")
		}
		time.Sleep(5 * time.Second)
		if g, _ := b.Group(group); len(g.Members) != 1 {
			t.Fatalf("c is still there after its session")
		}
		a.heartbeat()
		settle(t, b, a)
		if len(a.active()) != 4 {
			t.Errorf("a runs %v alone", a.active())
		}
		if resp := c.send(nil); resp.ErrorCode != kerr.UnknownMemberID.Code {
			t.Errorf("c: error %d", resp.ErrorCode)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := b.WaitStable(ctx, group, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for a second member: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.join(counting())
		settle(t, b, a, c)
		if g, err := b.WaitStable(ctx, group, 2); err != nil || len(g.Members) != 2 {
			t.Errorf("waiting for two members: %v", err)
		}
	})
}

// A member that does not give up its tasks within its rebalance time-out is removed.
func TestSimulatedRebalanceTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(kfake.VirtualNetwork)
		b, err := streamstest.NewBroker(streamstest.WithNetwork(network), streamstest.WithSessionTimeout(time.Hour),
			streamstest.WithKfake(kfake.SeedTopics(4, "in")))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.Dialer(network.DialContext))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
		a.join(counting())
		settle(t, b, a)
		c.join(counting())
		a.send(nil) // is told to give up two tasks, within the 60 s of its rebalance time-out
		time.Sleep(59 * time.Second)
		if resp := a.send(nil); resp.ErrorCode != 0 {
			t.Fatalf("after 59 s: error %d", resp.ErrorCode)
		}
		time.Sleep(time.Second)
		if resp := a.send(nil); resp.ErrorCode != kerr.UnknownMemberID.Code {
			t.Errorf("after 60 s: error %d", resp.ErrorCode)
		}
		settle(t, b, c)
		if len(c.active()) != 4 {
			t.Errorf("c runs %v", c.active())
		}
	})
}
