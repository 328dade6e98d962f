package streamstest_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
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
	b, _ := start(t, streamstest.WithNodes(2))
	if _, _, err := b.Cluster().AddNode(-1, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Cluster().RemoveNode(0); err != nil {
		t.Fatal(err)
	}
	cl := connect(t, b)
	a := newMember(t, b, cl, "a")
	for node := range int32(3) { // so that the client knows them
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if _, err := cl.Request(ctx, kmsg.NewPtrMetadataRequest()); err != nil {
			t.Fatalf("node %d: %v", node, err)
		}
		cancel()
	}
	a.join(counting())
	for _, node := range []int32{1, 2} {
		for b.Cluster().CoordinatorFor(group) != node {
			b.Cluster().RehashCoordinators()
		}
		settle(t, b, a)
		if _, listed := listGroups(t, cl, node)[group]; !listed {
			t.Errorf("the group is not listed at node %d", node)
		}
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
