package coordinator

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A 4.4 coordinator says once what a member's tasks are. If that answer is lost, the member does not learn of them by
// telling what it owns, but only by joining again.
func TestLostAnswer(t *testing.T) {
	f := newFixture(t, nil)
	f.alone()
	f.expect("c joins", f.send("c", 0), 0, 4, []int32{})
	f.expect("a is told, in vain", f.send("a", 3), 0, 3, []int32{0, 1})
	f.expect("a tells what it owns", f.send("a", 3, owns(0, 1, 2, 3)), 0, 3, nil)
	f.expect("a joins again", f.send("a", 0), 0, 4, []int32{0, 1})
	f.expect("c is told, in vain", f.send("c", 4), 0, 4, []int32{2, 3})
	f.expect("c tells what it owns", f.send("c", 4, owns()), 0, 4, nil)
	f.expect("c joins again", f.send("c", 0), 0, 4, []int32{2, 3})
}

// A static member that is away keeps its tasks; when it is back, it no longer owes what it was to give up.
func TestStaticMemberAwayWhileRevoking(t *testing.T) {
	f := newFixture(t, nil)
	f.expect("a joins", f.send("a", 0, instance("i")), 0, 2, []int32{})
	f.expect("a is told", f.send("a", 2, instance("i")), 0, 3, []int32{0, 1, 2, 3})
	f.expect("a acknowledges", f.send("a", 3, instance("i"), owns(0, 1, 2, 3)), 0, 3, nil)
	f.expect("c joins", f.send("c", 0), 0, 4, []int32{})
	f.expect("a is to give up", f.send("a", 3, instance("i")), 0, 3, []int32{0, 1})
	f.expect("a is away", f.send("a", -2, instance("i")), 0, -2, nil)
	f.expect("c is told", f.send("c", 4), 0, 4, []int32{2, 3})
	f.now = f.now.Add(20 * time.Second) // more than the rebalance time-out
	f.expect("a is back", f.send("b", 0, instance("i"), ofProcess("process of a")), 0, 4, []int32{0, 1})
	commit := Commit{Group: app, MemberID: "b", MemberEpoch: 0, Version: 9}
	if err := f.c.ValidateCommit(f.now, commit, []TopicPartition{{"in", 0}}); err != nil {
		t.Errorf("the tasks of one who was away are its own since any epoch: %v", err)
	}
	if err := f.c.ValidateCommit(f.now, commit, []TopicPartition{{"in", 2}}); err == nil {
		t.Error("it commits for a task that it gave up")
	}
}

// Another process takes over the instance id: the group must be assigned again.
func TestStaticMemberMovesToAnotherProcess(t *testing.T) {
	f := newFixture(t, nil)
	f.send("a", 0, instance("i"))
	f.send("a", 2, instance("i"))
	f.send("a", -2, instance("i"))
	f.expect("b takes over", f.send("b", 0, instance("i")), 0, 4, []int32{0, 1, 2, 3})
	if s, _ := f.c.Snapshot(f.now, app); s.Epoch != 4 || len(s.Members) != 1 || s.Members[0].ID != "b" {
		t.Errorf("%+v", s)
	}
}

func TestRebalanceTimeout(t *testing.T) {
	start := func() *fixture {
		f := newFixture(t, nil)
		f.alone()
		f.expect("c joins", f.send("c", 0), 0, 4, []int32{})
		f.expect("a is to give up", f.send("a", 3), 0, 3, []int32{0, 1})
		return f
	}
	wait := func(f *fixture, d time.Duration) { f.now = f.now.Add(d) }
	t.Run("kept", func(t *testing.T) {
		f := start()
		wait(f, 9*time.Second)
		f.expect("a gives up", f.send("a", 3, owns(0, 1)), 0, 4, nil)
		wait(f, 9*time.Second)
		f.expect("a lives on", f.send("a", 4), 0, 4, nil)
	})
	t.Run("missed", func(t *testing.T) {
		f := start()
		wait(f, 10*time.Second)
		f.expect("a is gone", f.send("a", 3, owns(0, 1)), kerr.UnknownMemberID.Code, 0, nil)
		f.expect("c gets all", f.send("c", 4), 0, 5, []int32{0, 1, 2, 3})
	})
	t.Run("the coordinator moves", func(t *testing.T) {
		f := start()
		wait(f, 9*time.Second)
		f.c.Moved(f.now, app)
		wait(f, 9*time.Second)
		f.expect("a has the whole time again", f.send("a", 3), 0, 3, nil)
		wait(f, time.Second)
		f.expect("but not more", f.send("a", 3), kerr.UnknownMemberID.Code, 0, nil)
	})
}

func TestSessionTimeout(t *testing.T) {
	f := newFixture(t, nil)
	f.alone()
	f.now = f.now.Add(44 * time.Second)
	f.expect("just in time", f.send("a", 3), 0, 3, nil)
	f.now = f.now.Add(45 * time.Second)
	if state := f.c.State(f.now, app); state != StateEmpty {
		t.Errorf("the group is %s", state)
	}
	f.expect("too late", f.send("a", 3), kerr.UnknownMemberID.Code, 0, nil)
}

func TestAssignmentInterval(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.AssignmentInterval = 10 * time.Second })
	f.create = false
	f.topics["changelog"] = Topic{ID: [16]byte{9}, Partitions: 4}
	f.expect("a joins", f.send("a", 0), 0, 2, []int32{0, 1, 2, 3})
	f.now = f.now.Add(4 * time.Second)
	resp := f.send("c", 0)
	f.expect("c joins too soon", resp, 0, 2, []int32{})
	if !hasStatus(resp, StatusAssignmentDelayed) {
		t.Errorf("c is told %v", resp.Status)
	}
	if state := f.c.State(f.now, app); state != StateAssigning {
		t.Errorf("the group is %s", state)
	}
	f.now = f.now.Add(6 * time.Second)
	f.expect("a gives up after the interval", f.send("a", 2), 0, 2, []int32{0, 1})
	f.send("a", -1)
	f.send("c", -1)
	f.expect("the first member of an empty group does not wait", f.send("a", 0), 0, 6, []int32{0, 1, 2, 3})
}

func TestInitialRebalanceDelay(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.InitialRebalanceDelay = 3 * time.Second })
	f.topics["changelog"] = Topic{ID: [16]byte{9}, Partitions: 4}
	resp := f.send("a", 0)
	f.expect("a joins", resp, 0, 1, []int32{})
	if !hasStatus(resp, StatusAssignmentDelayed) {
		t.Errorf("a is told %v", resp.Status)
	}
	f.now = f.now.Add(time.Second)
	f.expect("c joins meanwhile", f.send("c", 0), 0, 1, []int32{})
	f.now = f.now.Add(1999 * time.Millisecond)
	f.expect("a waits", f.send("a", 1), 0, 1, nil)
	f.now = f.now.Add(time.Millisecond)
	f.expect("a gets its share", f.send("a", 1), 0, 3, []int32{0, 2})
	f.expect("c gets its share", f.send("c", 1), 0, 3, []int32{1, 3})
	if resp := f.send("c", 3); hasStatus(resp, StatusAssignmentDelayed) {
		t.Errorf("c is told %v", resp.Status)
	}

	f.send("a", -1)
	f.send("c", -1)
	f.send("a", 0)
	f.send("a", -1)
	f.now = f.now.Add(time.Minute)
	if state := f.c.State(f.now, app); state != StateEmpty {
		t.Errorf("the group is %s after all have left during the delay", state)
	}
}

func TestStates(t *testing.T) {
	f := newFixture(t, nil)
	state := func(want string) {
		t.Helper()
		if got := f.c.State(f.now, app); got != want {
			t.Errorf("the group is %s, not %s", got, want)
		}
	}
	state(StateDead)
	f.send("a", 0)
	state(StateNotReady)
	f.send("a", 2)
	state(StateStable)
	f.send("c", 0)
	state(StateReconciling)
	f.send("c", -1)
	state(StateAssigning)
	f.send("a", -1)
	state(StateEmpty)
	if err := f.c.Delete(f.now, app); err != nil {
		t.Error(err)
	}
	state(StateDead)
}

func TestStaleTopology(t *testing.T) {
	f := newFixture(t, nil)
	f.topology.Epoch = 2
	f.alone()
	newer := *f.topology
	older := newer
	older.Epoch = 1
	f.topology = &older
	resp := f.send("c", 0)
	if resp.ErrorCode != 0 || len(resp.Status) != 1 || resp.Status[0].StatusDetail != "The member's topology epoch 1 is behind the group's topology epoch 2." || resp.TopologyDescriptionRequired {
		t.Errorf("error %d, status %v", resp.ErrorCode, resp.Status)
	}
	newer.Epoch = 3
	f.topology = &newer
	f.expect("a newer one", f.send("d", 0), kerr.InvalidRequest.Code, 0, nil)
}

func TestMissingClientTags(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.RackAwareTags = []string{"zone", "rack"} })
	tag := func(req *kmsg.StreamsGroupHeartbeatRequest) {
		req.ClientTags = []kmsg.StreamsGroupHeartbeatRequestClientTag{{Key: "rack", Value: "1"}}
	}
	resp := f.send("a", 0, tag)
	if !hasStatus(resp, StatusMissingClientTags) {
		t.Errorf("status %v", resp.Status)
	}
	resp = f.send("a", resp.MemberEpoch, func(req *kmsg.StreamsGroupHeartbeatRequest) { req.Version = 0 })
	if hasStatus(resp, StatusMissingClientTags) {
		t.Error("a member that speaks version 0 is told a status that it does not know")
	}
}

// What a group is created with is on record, what its first heartbeat says besides is not.
func TestSoftStateOfANewGroup(t *testing.T) {
	f := newFixture(t, nil)
	resp := f.send("a", 0, endpoint("here"), offsetsOf([3]int64{0, 5, 5}), func(req *kmsg.StreamsGroupHeartbeatRequest) { req.ShutdownApplication = true })
	if !hasStatus(resp, StatusShutdownApplication) || len(resp.PartitionsByUserEndpoint) != 1 || resp.EndpointInformationEpoch != 0 {
		t.Errorf("%+v", resp)
	}
	s, _ := f.c.Snapshot(f.now, app)
	if len(s.Statuses) != 0 || len(s.Members[0].TaskOffsets) != 0 || s.Members[0].Endpoint.Host != "here" {
		t.Errorf("%+v", s)
	}
}

func TestEndpoints(t *testing.T) {
	f := newFixture(t, nil)
	f.topology.Subtopologies[0].SourceTopics = []string{"in", "small"}
	f.topics["small"] = Topic{ID: [16]byte{2}, Partitions: 2}
	f.send("a", 0, endpoint("here"))
	resp := f.send("a", 2)
	got := resp.PartitionsByUserEndpoint
	if len(got) != 1 || len(got[0].ActivePartitions) != 2 || !slices.Equal(got[0].ActivePartitions[0].Partitions, []int32{0, 1, 2, 3}) ||
		!slices.Equal(got[0].ActivePartitions[1].Partitions, []int32{0, 1}) || got[0].StandbyPartitions == nil {
		t.Errorf("%+v", got)
	}
	epoch := resp.EndpointInformationEpoch
	if epoch != 1 {
		t.Errorf("endpoint epoch %d", epoch)
	}
	known := func(req *kmsg.StreamsGroupHeartbeatRequest) { req.EndpointInformationEpoch = epoch }
	if resp := f.send("a", 3, known); resp.PartitionsByUserEndpoint != nil {
		t.Error("a is told what it knows")
	}
	if resp := f.send("a", 3, known, endpoint("there")); resp.EndpointInformationEpoch != 2 || len(resp.PartitionsByUserEndpoint) != 1 || resp.PartitionsByUserEndpoint[0].UserEndpoint.Host != "there" {
		t.Errorf("a new endpoint: %+v", resp)
	}
	if resp := f.send("a", 0); len(resp.PartitionsByUserEndpoint) != 0 || resp.PartitionsByUserEndpoint == nil || resp.EndpointInformationEpoch != 3 {
		t.Errorf("a joins again without an endpoint: %+v", resp)
	}
}

func TestValidateCommit(t *testing.T) {
	f := newFixture(t, nil)
	f.alone()
	f.expect("c joins", f.send("c", 0), 0, 4, []int32{})
	f.expect("a is to give up", f.send("a", 3), 0, 3, []int32{0, 1})
	in := func(partitions ...int32) []TopicPartition {
		var out []TopicPartition
		for _, p := range partitions {
			out = append(out, TopicPartition{"in", p})
		}
		return out
	}
	check := func(what string, c Commit, partitions []TopicPartition, want *kerr.Error) {
		t.Helper()
		c.Group = app
		if c.Version == 0 {
			c.Version = 10
		}
		err := f.c.ValidateCommit(f.now, c, partitions)
		if want == nil && err != nil || want != nil && (err == nil || !errors.Is(err, want)) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	a, c := Commit{MemberID: "a", MemberEpoch: 3}, Commit{MemberID: "c", MemberEpoch: 4}
	at := func(c Commit, epoch int32) Commit { c.MemberEpoch = epoch; return c }
	check("kept and given up", a, in(0, 3), nil)
	check("the epoch before, kept and to be given up", at(a, 2), in(0, 3), kerr.StaleMemberEpoch) // assigned at 3
	check("the next epoch", at(a, 4), in(0), kerr.StaleMemberEpoch)
	f.expect("a gives up", f.send("a", 3, owns(0, 1)), 0, 4, nil)
	check("old epoch, kept", a, in(0, 1), nil)
	check("old epoch, given up", a, in(0, 2), kerr.StaleMemberEpoch)
	check("new epoch", at(a, 4), in(0, 2), nil) // as in Kafka, the current epoch is good for anything
	f.expect("c is told", f.send("c", 4), 0, 4, []int32{2, 3})
	check("c", c, in(2), nil)
	check("c, before it had the task", at(c, 3), in(2), kerr.StaleMemberEpoch)
	check("another topic with an old epoch", a, []TopicPartition{{"other", 0}}, kerr.StaleMemberEpoch)
	check("an old request", Commit{MemberID: "a", MemberEpoch: 4, Version: 8}, in(0), kerr.UnsupportedVersion)
	check("nobody", Commit{MemberEpoch: -1}, in(0), kerr.UnknownMemberID)
	check("a producer that is nobody", Commit{MemberEpoch: -1, Transactional: true}, in(0), nil)
	check("a producer with an old epoch", Commit{MemberID: "a", MemberEpoch: 3, Transactional: true, Version: 6}, in(2), kerr.StaleMemberEpoch)
	check("an old producer with an old epoch", Commit{MemberID: "a", MemberEpoch: 3, Transactional: true, Version: 5}, in(2), kerr.IllegalGeneration)
	f.expect("c is to give up while a is away", f.send("d", 0), 0, 5, []int32{})
	f.expect("c is to give up", f.send("c", 4), 0, 4, []int32{2})
	check("to be given up, with the epoch that it has", c, in(3), nil)
	check("to be given up, with the epoch before", at(c, 3), in(3), kerr.StaleMemberEpoch)
	f.send("a", -1)
	f.send("c", -1)
	f.send("d", -1)
	check("nobody, without members", Commit{MemberEpoch: -1}, in(0), nil)
	check("a member, without members", a, in(0), kerr.UnknownMemberID)
}

// An older epoch is good for a task that the member is about to give up.
func TestCommitOfARevokedTaskWithAnOlderEpoch(t *testing.T) {
	f := newFixture(t, nil)
	f.alone()
	f.expect("c joins", f.send("c", 0), 0, 4, []int32{})
	f.send("a", 3)
	f.expect("a gives up", f.send("a", 3, owns(0, 1)), 0, 4, nil)
	f.expect("c is told", f.send("c", 4), 0, 4, []int32{2, 3})
	f.expect("d joins", f.send("d", 0), 0, 5, []int32{})
	f.send("e", 0)
	f.expect("a is to give up another", f.send("a", 4), 0, 4, []int32{0})
	if err := f.c.ValidateCommit(f.now, Commit{Group: app, MemberID: "a", MemberEpoch: 3, Version: 9}, []TopicPartition{{"in", 1}}); err != nil {
		t.Error(err)
	}
}

func TestDuplicateTaskOffsets(t *testing.T) {
	f := newFixture(t, nil)
	f.alone()
	f.expect("twice", f.send("a", 3, offsetsOf([3]int64{0, 1, 1}, [3]int64{0, 2, 2})), kerr.InvalidRequest.Code, 0, nil)
	f.expect("once", f.send("a", 3, offsetsOf([3]int64{0, 1, 1})), 0, 3, nil)
	f.expect("not at all", f.send("a", 3), 0, 3, nil)
	s, _ := f.c.Snapshot(f.now, app)
	if got := s.Members[0].TaskOffsets; len(got) != 1 || got[TaskID{"0", 0}] != 1 {
		t.Errorf("%v", got)
	}
}

// Members are asked one at a time, less and less often, until there is a description.
func TestTopologyDescriptionIsAskedFor(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.SessionTimeout = 24 * time.Hour })
	if !f.send("a", 0).TopologyDescriptionRequired {
		t.Fatal("the first member is not asked")
	}
	if f.send("c", 0).TopologyDescriptionRequired {
		t.Fatal("a second member is asked at the same time")
	}
	for _, pause := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		f.now = f.now.Add(pause - time.Millisecond)
		if f.send("a", 0).TopologyDescriptionRequired {
			t.Fatalf("asked again before %v", pause)
		}
		f.now = f.now.Add(time.Millisecond)
		if f.send("a", 0, func(req *kmsg.StreamsGroupHeartbeatRequest) { req.Version = 0 }).TopologyDescriptionRequired {
			t.Fatal("a member that cannot is asked")
		}
		if !f.send("a", 0).TopologyDescriptionRequired {
			t.Fatalf("not asked again after %v", pause)
		}
	}
	f.now = f.now.Add(4 * time.Hour)
	push := kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()
	push.Group, push.MemberID = app, "c"
	if resp := f.c.UpdateTopologyDescription(f.now, push); resp.ErrorCode != 0 {
		t.Fatalf("error %d", resp.ErrorCode)
	}
	if f.send("a", 0).TopologyDescriptionRequired {
		t.Error("asked for what there is")
	}
}

func TestGlobalStoresInDescriptions(t *testing.T) {
	f := newFixture(t, nil)
	f.send("a", 0)
	push := kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()
	push.Group, push.MemberID = app, "a"
	push.TopologyDescription.GlobalStores = []kmsg.TopologyDescriptionGlobalStore{{
		Source: kmsg.TopologyDescriptionNode{NodeType: 2}, Processor: kmsg.TopologyDescriptionNode{NodeType: 1},
	}}
	if resp := f.c.UpdateTopologyDescription(f.now, push); resp.ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("error %d", resp.ErrorCode)
	}
}
