package streamstest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest"
)

// A second member gets tasks only after the first has given them up, and only when it asks.
func TestTasksMoveInSteps(t *testing.T) {
	b, cl := start(t)
	a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
	a.join(counting())
	settle(t, b, a)
	before := a.epoch
	if resp := c.join(counting()); resp.MemberEpoch != before+1 || len(c.active()) != 0 {
		t.Fatalf("c joins at epoch %d with %v", resp.MemberEpoch, c.active())
	}
	resp := a.send(nil)
	if resp.MemberEpoch != before || !slices.Equal(partitions(resp.ActiveTasks), []int32{0, 1}) {
		t.Fatalf("a is told to keep %v at epoch %d", resp.ActiveTasks, resp.MemberEpoch)
	}
	if resp := c.heartbeat(); resp.ActiveTasks != nil {
		t.Fatalf("c gets %v before a has given it up", resp.ActiveTasks)
	}
	in := b.Cluster().TopicInfo("in").TopicID
	if code := commit(t, b, a, in, 3, 30, a.epoch); code != 0 {
		t.Fatalf("a cannot commit for a task that it gives up: error %d", code)
	}
	a.take(resp)
	if resp := a.acknowledge(); resp.MemberEpoch != before+1 {
		t.Fatalf("a is at epoch %d after it has given up tasks", resp.MemberEpoch)
	}
	if code := commit(t, b, a, in, 0, 10, before); code != 0 {
		t.Fatalf("a cannot commit with the epoch before for a task that it kept: error %d", code)
	}
	if code := commit(t, b, a, in, 3, 31, before); code != kerr.StaleMemberEpoch.Code {
		t.Fatalf("a commits with the epoch before for a task that it gave up: error %d", code)
	}
	c.heartbeat()
	if !slices.Equal(c.active(), []int32{2, 3}) {
		t.Fatalf("c runs %v", c.active())
	}
	if g, _ := b.Group(group); g.State != streamstest.StateStable {
		t.Errorf("the group is %s", g.State)
	}
	if offset, _ := fetch(t, b, c, in, 3, c.epoch); offset != 30 {
		t.Errorf("c starts task 0_3 at %d", offset)
	}
	c.leave(-1)
	settle(t, b, a)
	if !slices.Equal(a.active(), []int32{0, 1, 2, 3}) {
		t.Errorf("a runs %v alone", a.active())
	}
}

func TestHeartbeatErrors(t *testing.T) {
	b, cl := start(t, streamstest.WithMaxGroupSize(2))
	a := newMember(t, b, cl, "a")
	if resp := a.send(func(r *kmsg.StreamsGroupHeartbeatRequest) { r.MemberEpoch = 3 }); resp.ErrorCode != kerr.GroupIDNotFound.Code {
		t.Errorf("no group: error %d", resp.ErrorCode)
	}
	a.join(counting())
	settle(t, b, a)
	for name, test := range map[string]struct {
		change func(*kmsg.StreamsGroupHeartbeatRequest)
		code   *kerr.Error
	}{
		"epoch too great":         {func(r *kmsg.StreamsGroupHeartbeatRequest) { r.MemberEpoch = 9 }, kerr.FencedMemberEpoch},
		"epoch too small":         {func(r *kmsg.StreamsGroupHeartbeatRequest) { r.MemberEpoch = 1 }, kerr.FencedMemberEpoch},
		"previous epoch, no list": {func(r *kmsg.StreamsGroupHeartbeatRequest) { r.MemberEpoch = 2 }, kerr.FencedMemberEpoch},
		"unknown member":          {func(r *kmsg.StreamsGroupHeartbeatRequest) { r.MemberID = "x" }, kerr.UnknownMemberID},
		"unknown instance": {func(r *kmsg.StreamsGroupHeartbeatRequest) { r.InstanceID = kmsg.StringPtr("i") },
			kerr.UnknownMemberID},
		"unknown member leaves": {func(r *kmsg.StreamsGroupHeartbeatRequest) { r.MemberID, r.MemberEpoch = "x", -1 }, kerr.UnknownMemberID},
		"one list": {func(r *kmsg.StreamsGroupHeartbeatRequest) { r.ActiveTasks = []kmsg.TaskIDs{} },
			kerr.InvalidRequest},
		"no such task": {func(r *kmsg.StreamsGroupHeartbeatRequest) {
			r.ActiveTasks = []kmsg.TaskIDs{{SubtopologyID: "0", Partitions: []int32{4}}}
			r.StandbyTasks, r.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		}, kerr.InvalidRequest},
		"a topology after joining": {func(r *kmsg.StreamsGroupHeartbeatRequest) { r.Topology = counting() }, kerr.InvalidRequest},
	} {
		if resp := a.send(test.change); resp.ErrorCode != test.code.Code {
			t.Errorf("%s: error %d, want %v", name, resp.ErrorCode, test.code)
		}
		a.epoch = 3
	}
	if resp := a.heartbeat(); resp.ErrorCode != 0 || resp.MemberEpoch != 3 {
		t.Errorf("refused heartbeats changed the member: error %d, epoch %d", resp.ErrorCode, resp.MemberEpoch)
	}

	other := counting()
	other.Subtopologies[0].SourceTopics = []string{"in", "more"}
	c := newMember(t, b, cl, "c")
	if resp := c.join(other); resp.ErrorCode != kerr.InvalidRequest.Code || *resp.ErrorMessage != "Topology updates are not supported yet." {
		t.Errorf("another topology: error %d", resp.ErrorCode)
	}
	if resp := c.join(counting()); resp.ErrorCode != 0 {
		t.Errorf("second member: error %d", resp.ErrorCode)
	}
	if resp := newMember(t, b, cl, "d").join(counting()); resp.ErrorCode != kerr.GroupMaxSizeReached.Code {
		t.Errorf("third member: error %d", resp.ErrorCode)
	}
	if resp := c.join(counting()); resp.ErrorCode != 0 {
		t.Errorf("second member again: error %d", resp.ErrorCode)
	}
}

// A heartbeat whose answer got lost is sent again, with the epoch before and the tasks owned then.
func TestRetriedHeartbeat(t *testing.T) {
	b, cl := start(t)
	a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
	a.join(counting())
	settle(t, b, a)
	c.join(counting())
	a.take(a.send(nil))
	before := a.epoch
	a.acknowledge()
	for _, owned := range [][]int32{{0, 1}, {0}} {
		resp := a.send(func(r *kmsg.StreamsGroupHeartbeatRequest) {
			r.MemberEpoch = before
			r.ActiveTasks = []kmsg.TaskIDs{{SubtopologyID: "0", Partitions: owned}}
			r.StandbyTasks, r.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		})
		if resp.ErrorCode != 0 || resp.MemberEpoch != before+1 {
			t.Errorf("owning %v: error %d, epoch %d", owned, resp.ErrorCode, resp.MemberEpoch)
		}
	}
	resp := a.send(func(r *kmsg.StreamsGroupHeartbeatRequest) {
		r.MemberEpoch = before
		r.ActiveTasks = []kmsg.TaskIDs{{SubtopologyID: "0", Partitions: []int32{0, 2}}}
		r.StandbyTasks, r.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
	})
	if resp.ErrorCode != kerr.FencedMemberEpoch.Code {
		t.Errorf("owning what it gave up: error %d", resp.ErrorCode)
	}
}

func TestShutdownApplication(t *testing.T) {
	b, cl := start(t)
	a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
	a.join(counting())
	c.join(counting())
	settle(t, b, a, c)
	a.send(func(r *kmsg.StreamsGroupHeartbeatRequest) { r.ShutdownApplication = true })
	for _, m := range []*member{a, c} {
		resp := m.heartbeat()
		if len(resp.Status) != 1 || resp.Status[0].StatusCode != streamstest.StatusShutdownApplication ||
			resp.Status[0].StatusDetail != "Streams group member a encountered a fatal error and requested a shutdown for the entire application." {
			t.Errorf("%s is told %v", m.id, resp.Status)
		}
	}
	a.leave(-1)
	c.leave(-1)
	if resp := a.join(counting()); len(resp.Status) != 0 {
		t.Errorf("a later member is told %v", resp.Status)
	}
}

func TestStaticMembers(t *testing.T) {
	b, cl := start(t)
	static := func(id, instance string) *member {
		m := newMember(t, b, cl, id)
		m.instance, m.process = &instance, "process of "+instance
		return m
	}
	a, c := static("a", "ia"), static("c", "ic")
	a.join(counting())
	c.join(counting())
	g := settle(t, b, a, c)
	tasks, epoch := c.active(), c.epoch

	c2 := static("c2", "ic")
	if resp := c2.join(counting()); resp.ErrorCode != kerr.UnreleasedInstanceID.Code {
		t.Errorf("while the other lives: error %d", resp.ErrorCode)
	}
	if resp := c.leave(-2); resp.ErrorCode != 0 || resp.MemberEpoch != -2 {
		t.Errorf("leave for a while: error %d, epoch %d", resp.ErrorCode, resp.MemberEpoch)
	}
	if resp := c2.join(counting()); resp.ErrorCode != 0 || resp.MemberEpoch != epoch || !slices.Equal(c2.active(), tasks) {
		t.Errorf("return: error %d, epoch %d, tasks %v", resp.ErrorCode, resp.MemberEpoch, c2.active())
	}
	c.epoch = epoch
	if resp := c.send(nil); resp.ErrorCode != kerr.FencedInstanceID.Code {
		t.Errorf("the former self: error %d", resp.ErrorCode)
	}
	if after := settle(t, b, a, c2); after.Epoch != g.Epoch {
		t.Errorf("the return made the group epoch %d of %d", after.Epoch, g.Epoch)
	}
	c2.leave(-1)
	settle(t, b, a)
	if len(a.active()) != 4 {
		t.Errorf("a runs %v after c has left for good", a.active())
	}
}

// A member warms up before it takes over.
func TestWarmup(t *testing.T) {
	b, cl := start(t, streamstest.WithWarmups(1, 10))
	a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
	a.join(counting())
	settle(t, b, a)
	report := func(m *member, partition int32, at, end int64) {
		m.take(m.send(func(r *kmsg.StreamsGroupHeartbeatRequest) {
			r.TaskOffsets = []kmsg.TaskOffset{{SubtopologyID: "0", Partition: partition, Offset: at}}
			r.TaskEndOffsets = []kmsg.TaskOffset{{SubtopologyID: "0", Partition: partition, Offset: end}}
		}))
	}
	c.join(counting())
	for _, partition := range []int32{2, 3} {
		settle(t, b, a, c)
		if got := partitions(c.owned.WarmupTasks); !slices.Equal(got, []int32{partition}) {
			t.Fatalf("c warms up %v, not %d", got, partition)
		}
		if !slices.Contains(a.active(), partition) {
			t.Fatalf("a has lost the task that warms up: it runs %v", a.active())
		}
		report(c, partition, 500, 1000)
		if settle(t, b, a, c); slices.Contains(c.active(), partition) {
			t.Fatalf("c runs %d before it is warm", partition)
		}
		report(c, partition, 991, 1000)
		settle(t, b, a, c)
		if !slices.Contains(c.active(), partition) || slices.Contains(a.active(), partition) {
			t.Fatalf("the task has not moved: a runs %v, c runs %v", a.active(), c.active())
		}
		report(c, partition, 0, 0)
	}
	if got := partitions(c.owned.WarmupTasks); len(got) != 0 {
		t.Errorf("c still warms up %v", got)
	}
}

// A coordinator that knows only v0 gets no offsets, and gives no warm-up tasks.
func TestNoWarmupWithVersion0(t *testing.T) {
	b, cl := start(t, streamstest.WithWarmups(2, 10), streamstest.WithStreamsGroupVersion(0))
	a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
	a.join(counting())
	settle(t, b, a)
	c.join(counting())
	settle(t, b, a, c)
	if !slices.Equal(c.active(), []int32{2, 3}) || len(c.owned.WarmupTasks) != 0 {
		t.Errorf("c runs %v and warms up %v", c.active(), c.owned.WarmupTasks)
	}
}

func TestEndpoints(t *testing.T) {
	b, cl := start(t)
	a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
	a.send(func(r *kmsg.StreamsGroupHeartbeatRequest) {
		r.Topology, r.RebalanceTimeoutMillis, r.ProcessID = counting(), 1000, &a.process
		r.ActiveTasks, r.StandbyTasks, r.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		r.UserEndpoint = &kmsg.StreamsGroupHeartbeatRequestUserEndpoint{Host: "here", Port: 1}
	})
	c.join(counting())
	settle(t, b, a, c)
	resp := c.send(nil)
	if len(resp.PartitionsByUserEndpoint) != 1 || !slices.Equal(resp.PartitionsByUserEndpoint[0].ActivePartitions[0].Partitions, a.active()) {
		t.Errorf("c is told %+v", resp.PartitionsByUserEndpoint)
	}
	resp = c.send(func(r *kmsg.StreamsGroupHeartbeatRequest) { r.EndpointInformationEpoch = resp.EndpointInformationEpoch })
	if resp.PartitionsByUserEndpoint != nil {
		t.Error("c is told again what it knows")
	}
}

func TestInitialRebalanceDelayOption(t *testing.T) {
	b, cl := start(t, streamstest.WithKafkaDefaults(), streamstest.WithInitialRebalanceDelay(time.Hour))
	a := newMember(t, b, cl, "a")
	a.join(counting())
	resp := a.heartbeat()
	if len(resp.Status) != 1 || resp.Status[0].StatusCode != streamstest.StatusAssignmentDelayed || len(a.active()) != 0 || resp.HeartbeatIntervalMillis != 5000 {
		t.Errorf("status %v, tasks %v, interval %d", resp.Status, a.active(), resp.HeartbeatIntervalMillis)
	}
	g, _ := b.Group(group)
	if len(g.Statuses) != 1 || g.Statuses[0].Code != streamstest.StatusAssignmentDelayed {
		t.Errorf("the group's statuses are %v", g.Statuses)
	}
}
