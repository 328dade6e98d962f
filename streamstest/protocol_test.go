package streamstest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
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

func TestCommitErrors(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	in := b.Cluster().TopicInfo("in").TopicID
	if code := commit(t, b, a, in, 0, 1, 3); code != kerr.GroupIDNotFound.Code {
		t.Errorf("no group: error %d", code)
	}
	a.join(counting())
	settle(t, b, a)
	if code := commit(t, b, newMember(t, b, cl, "x"), in, 0, 1, 3); code != kerr.UnknownMemberID.Code {
		t.Errorf("unknown member: error %d", code)
	}
	if code := simpleCommit(t, b, cl, group, 1); code != kerr.UnknownMemberID.Code {
		t.Errorf("nobody, while there are members: error %d", code)
	}
	if code := commit(t, b, a, [16]byte{1}, 0, 1, a.epoch); code != kerr.UnknownTopicID.Code {
		t.Errorf("unknown topic: error %d", code)
	}
	if code := commit(t, b, a, [16]byte{1}, 0, 1, a.epoch+1); code != kerr.UnknownTopicID.Code {
		t.Errorf("unknown topic and epoch: error %d", code)
	}
	old := connect(t, b, kgo.MaxVersions(maxVersion(8, 8)))
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, a.id, a.epoch
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = "in"
	rt.Partitions = append(rt.Partitions, kmsg.NewOffsetCommitRequestTopicPartition())
	req.Topics = append(req.Topics, rt)
	if code := request[*kmsg.OffsetCommitResponse](t, old, 0, req).Topics[0].Partitions[0].ErrorCode; code != kerr.UnsupportedVersion.Code {
		t.Errorf("version 8: error %d", code)
	}
	a.leave(-1)
	if code := simpleCommit(t, b, cl, group, 9); code != 0 {
		t.Errorf("nobody, while there are no members: error %d", code)
	}
}

// Offsets in a transaction are checked like others, and seen when it commits.
func TestTxnOffsetCommit(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	a.join(counting())
	settle(t, b, a)
	in := b.Cluster().TopicInfo("in").TopicID
	initialize := kmsg.NewPtrInitProducerIDRequest()
	initialize.TransactionalID, initialize.TransactionTimeoutMillis = kmsg.StringPtr("tx"), 10_000
	pid := request[*kmsg.InitProducerIDResponse](t, cl, 0, initialize)
	txnCommit := func(epoch int32, memberID string) int16 {
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.TransactionalID, req.Group = "tx", group
		req.ProducerID, req.ProducerEpoch = pid.ProducerID, pid.ProducerEpoch
		req.MemberID, req.Generation = memberID, epoch
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = "in", in
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Offset = 11
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return request[*kmsg.TxnOffsetCommitResponse](t, cl, 0, req).Topics[0].Partitions[0].ErrorCode
	}
	if code := txnCommit(a.epoch+1, "a"); code != kerr.StaleMemberEpoch.Code {
		t.Errorf("new epoch: error %d", code)
	}
	if code := txnCommit(a.epoch, "x"); code != kerr.UnknownMemberID.Code {
		t.Errorf("unknown member: error %d", code)
	}
	if code := txnCommit(a.epoch, "a"); code != 0 {
		t.Fatalf("error %d", code)
	}
	if _, code := fetchStable(t, b, a, in); code != kerr.UnstableOffsetCommit.Code {
		t.Errorf("before the end of the transaction: error %d", code)
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = "tx", pid.ProducerID, pid.ProducerEpoch, true
	if resp := request[*kmsg.EndTxnResponse](t, cl, 0, end); resp.ErrorCode != 0 {
		t.Fatalf("end: error %d", resp.ErrorCode)
	}
	if offset, code := fetchStable(t, b, a, in); offset != 11 || code != 0 {
		t.Errorf("after the end: offset %d, error %d", offset, code)
	}
	old := connect(t, b, kgo.MaxVersions(maxVersion(28, 5)))
	cl = old
	if code := txnCommit(a.epoch+1, "a"); code != kerr.IllegalGeneration.Code {
		t.Errorf("new epoch at version 5: error %d", code)
	}
}

func fetchStable(t *testing.T, b *streamstest.Broker, m *member, topic [16]byte) (int64, int16) {
	t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group, rg.MemberID, rg.MemberEpoch = group, &m.id, m.epoch
	rt := kmsg.NewOffsetFetchRequestGroupTopic()
	rt.TopicID, rt.Partitions = topic, []int32{0}
	rg.Topics = append(rg.Topics, rt)
	req.Groups = append(req.Groups, rg)
	p := request[*kmsg.OffsetFetchResponse](t, m.cl, b.Cluster().CoordinatorFor(group), req).Groups[0].Topics[0].Partitions[0]
	return p.Offset, p.ErrorCode
}

func TestTopicStatuses(t *testing.T) {
	status := func(resp *kmsg.StreamsGroupHeartbeatResponse) string {
		var out []string
		for _, s := range resp.Status {
			out = append(out, fmt.Sprintf("%d %s", s.StatusCode, s.StatusDetail))
		}
		return strings.Join(out, "; ")
	}
	t.Run("a source topic is missing, appears, and is deleted", func(t *testing.T) {
		b, cl := start(t)
		topology := counting()
		topology.Subtopologies[0].SourceTopics = []string{"late"}
		a := newMember(t, b, cl, "a")
		if got := status(a.join(topology)); got != "1 Source topics late are missing." {
			t.Errorf("join: %s", got)
		}
		if err := b.Cluster().CreateTopic("late", 2, nil); err != nil {
			t.Fatal(err)
		}
		if got := status(a.heartbeat()); got != "3 Internal topics are missing: app-counts-changelog" {
			t.Errorf("with the source topic: %s", got)
		}
		settle(t, b, a)
		if !slices.Equal(a.active(), []int32{0, 1}) {
			t.Errorf("a runs %v", a.active())
		}
		if err := b.Cluster().DeleteTopic("late"); err != nil {
			t.Fatal(err)
		}
		if got := status(a.heartbeat()); got != "1 Source topics late are missing." || len(a.active()) != 0 {
			t.Errorf("without it again: %s, a runs %v", got, a.active())
		}
	})
	t.Run("partitions are added below a changelog", func(t *testing.T) {
		b, cl := start(t)
		a := newMember(t, b, cl, "a")
		a.join(counting())
		settle(t, b, a)
		more := kmsg.NewPtrCreatePartitionsRequest()
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = "in", 6
		more.Topics, more.TimeoutMillis = append(more.Topics, topic), 1000
		if resp := request[*kmsg.CreatePartitionsResponse](t, cl, 0, more); resp.Topics[0].ErrorCode != 0 {
			t.Fatalf("error %d", resp.Topics[0].ErrorCode)
		}
		want := "2 Existing topic app-counts-changelog has different number of partitions: expected 6, found 4"
		if got := status(a.heartbeat()); got != want {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an internal topic cannot be created", func(t *testing.T) {
		b, cl := start(t)
		b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.PolicyViolation})
		a := newMember(t, b, cl, "a")
		got := status(a.join(counting()))
		if !strings.HasPrefix(got, "3 Internal topics are missing: app-counts-changelog; Creation failed: app-counts-changelog (") {
			t.Errorf("got %s", got)
		}
		settle(t, b, a)
	})
	t.Run("a replication factor is respected", func(t *testing.T) {
		b, cl := start(t, streamstest.WithNodes(2))
		topology := counting()
		topology.Subtopologies[0].StateChangelogTopics[0].ReplicationFactor = 3
		a := newMember(t, b, cl, "a")
		if got := status(a.join(topology)); !strings.Contains(got, "Creation failed") {
			t.Errorf("3 of 2: %s", got)
		}
		a.leave(-1)
		for node := range int32(2) {
			req := kmsg.NewPtrDeleteGroupsRequest()
			req.Groups = []string{group}
			request[*kmsg.DeleteGroupsResponse](t, cl, node, req)
		}
		topology.Subtopologies[0].StateChangelogTopics[0].ReplicationFactor = 1
		a.join(topology)
		if info := b.Cluster().TopicInfo("app-counts-changelog"); info == nil || info.NumReplicas != 1 {
			t.Errorf("1 of 2: %+v", info)
		}
	})
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

// Time-outs are not tested here but in simulated time, see TestSimulatedTime.
func TestGroupConfigs(t *testing.T) {
	b, cl := start(t)
	alter := func(op kmsg.IncrementalAlterConfigOp, name, value string) int16 {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = name, op, &value
		r.Configs = append(r.Configs, c)
		req.Resources = append(req.Resources, r)
		return request[*kmsg.IncrementalAlterConfigsResponse](t, cl, 0, req).Resources[0].ErrorCode
	}
	describe := func(names ...string) map[string]string {
		req := kmsg.NewPtrDescribeConfigsRequest()
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeGroupConfig, group, names
		req.Resources = append(req.Resources, r)
		out := make(map[string]string)
		for _, c := range request[*kmsg.DescribeConfigsResponse](t, cl, 0, req).Resources[0].Configs {
			if c.Value != nil {
				out[c.Name] = fmt.Sprintf("%s %d", *c.Value, c.Source)
			}
		}
		return out
	}
	const standbys = "streams.num.standby.replicas"
	if code := alter(kmsg.IncrementalAlterConfigOpSet, standbys, "1"); code != 0 {
		t.Errorf("set: error %d", code)
	}
	for name, value := range map[string]string{standbys: "9", "streams.nonsense": "1", "streams.session.timeout.ms": "soon", "consumer.nonsense": "1"} {
		if code := alter(kmsg.IncrementalAlterConfigOpSet, name, value); code != kerr.InvalidConfig.Code {
			t.Errorf("set %s to %s: error %d", name, value, code)
		}
	}
	if got := describe(standbys, "streams.heartbeat.interval.ms"); len(got) != 2 || got[standbys] != fmt.Sprintf("1 %d", kmsg.ConfigSourceGroupConfig) ||
		got["streams.heartbeat.interval.ms"] != fmt.Sprintf("100 %d", kmsg.ConfigSourceDefaultConfig) {
		t.Errorf("describe: %v", got)
	}
	a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
	a.join(counting())
	c.join(counting())
	settle(t, b, a, c)
	if got := partitions(c.owned.StandbyTasks); !slices.Equal(got, a.active()) {
		t.Errorf("c stands by for %v, a runs %v", got, a.active())
	}
	if code := alter(kmsg.IncrementalAlterConfigOpDelete, standbys, ""); code != 0 {
		t.Errorf("delete: error %d", code)
	}
	a.heartbeat() // the first heartbeat after the change makes it known
	settle(t, b, a, c)
	if got := partitions(c.owned.StandbyTasks); len(got) != 0 {
		t.Errorf("c still stands by for %v", got)
	}
	if err := b.SetGroupConfig(group, map[string]string{"streams.heartbeat.interval.ms": "123"}); err != nil {
		t.Fatal(err)
	}
	if resp := a.heartbeat(); resp.HeartbeatIntervalMillis != 123 {
		t.Errorf("heartbeats every %d ms", resp.HeartbeatIntervalMillis)
	}
	if err := b.SetGroupConfig(group, map[string]string{"streams.heartbeat.interval.ms": "20000"}); err == nil {
		t.Error("heartbeats that are rarer than the session time-out allows are no error")
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
