package streamstest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest"
)

func listGroups(t *testing.T, cl *kgo.Client, node int32, states ...string) map[string]kmsg.ListGroupsResponseGroup {
	t.Helper()
	req := kmsg.NewPtrListGroupsRequest()
	req.StatesFilter = states
	out := make(map[string]kmsg.ListGroupsResponseGroup)
	for _, g := range request[*kmsg.ListGroupsResponse](t, cl, node, req).Groups {
		if _, twice := out[g.Group]; twice {
			t.Errorf("group %s is listed twice", g.Group)
		}
		out[g.Group] = g
	}
	return out
}

func deleteGroups(t *testing.T, cl *kgo.Client, groups ...string) map[string]int16 {
	t.Helper()
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = groups
	out := make(map[string]int16)
	for _, g := range request[*kmsg.DeleteGroupsResponse](t, cl, 0, req).Groups {
		out[g.Group] = g.ErrorCode
	}
	return out
}

// simpleCommit commits as nobody's, which makes a classic group.
func simpleCommit(t *testing.T, b *streamstest.Broker, cl *kgo.Client, group string, offset int64) int16 {
	t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = group
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic, rt.TopicID = "in", b.Cluster().TopicInfo("in").TopicID
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Offset = offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return request[*kmsg.OffsetCommitResponse](t, cl, 0, req).Topics[0].Partitions[0].ErrorCode
}

func simpleFetch(t *testing.T, b *streamstest.Broker, cl *kgo.Client, groups ...string) map[string]kmsg.OffsetFetchResponseGroup {
	t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	for _, group := range groups {
		rg := kmsg.NewOffsetFetchRequestGroup()
		rg.Group = group
		rt := kmsg.NewOffsetFetchRequestGroupTopic()
		rt.Topic, rt.TopicID, rt.Partitions = "in", b.Cluster().TopicInfo("in").TopicID, []int32{0}
		rg.Topics = append(rg.Topics, rt)
		req.Groups = append(req.Groups, rg)
	}
	out := make(map[string]kmsg.OffsetFetchResponseGroup)
	for _, g := range request[*kmsg.OffsetFetchResponse](t, cl, 0, req).Groups {
		out[g.Group] = g
	}
	return out
}

func TestListAndDescribeAndDelete(t *testing.T) {
	b, cl := start(t)
	if code := simpleCommit(t, b, cl, "classic", 5); code != 0 {
		t.Fatalf("commit: error %d", code)
	}
	a := newMember(t, b, cl, "a")
	a.join(counting())
	if got := listGroups(t, cl, 0, "not_ready"); len(got) != 1 || got[group].GroupState != streamstest.StateNotReady {
		t.Errorf("not ready: %+v", got)
	}
	settle(t, b, a)
	commit(t, b, a, b.Cluster().TopicInfo("in").TopicID, 0, 7, a.epoch)
	all := listGroups(t, cl, 0)
	if g := all[group]; g.GroupState != "Stable" || g.GroupType != "streams" || g.ProtocolType != "streams" {
		t.Errorf("the streams group is listed as %+v", g)
	}
	if g := all["classic"]; g.GroupType != "classic" {
		t.Errorf("the classic group is listed as %+v", g)
	}
	if len(listGroups(t, cl, 0, "empty")) > 1 {
		t.Error("a stable streams group is listed as empty")
	}

	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{group, "classic"}
	for _, g := range request[*kmsg.DescribeGroupsResponse](t, cl, 0, describe).Groups {
		switch g.Group {
		case group:
			if g.State != "Dead" || g.ErrorCode != kerr.GroupIDNotFound.Code || *g.ErrorMessage != "Group app is not a classic group." {
				t.Errorf("the streams group is described as %+v", g)
			}
		default:
			if g.State != "Empty" || g.ErrorCode != 0 {
				t.Errorf("the classic group is described as %+v", g)
			}
		}
	}

	got := deleteGroups(t, cl, group, "classic", "nobody")
	if got[group] != kerr.NonEmptyGroup.Code || got["classic"] != 0 || got["nobody"] != kerr.GroupIDNotFound.Code {
		t.Errorf("delete: %v", got)
	}
	a.leave(-1)
	if g, _ := b.Group(group); g.State != streamstest.StateEmpty {
		t.Errorf("the group is %s without members", g.State)
	}
	if got := deleteGroups(t, cl, group); got[group] != 0 {
		t.Errorf("delete an empty group: %v", got)
	}
	if _, ok := b.Group(group); ok {
		t.Error("the group is still there")
	}
	if b.Cluster().GroupInfo(group) != nil {
		t.Error("its offsets are still there")
	}
	if got := deleteGroups(t, cl, group); got[group] != kerr.GroupIDNotFound.Code {
		t.Errorf("delete a deleted group: %v", got)
	}
}

func TestDeleteAGroupThatNeverCommitted(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	a.join(counting())
	a.leave(-1)
	if got := deleteGroups(t, cl, group); got[group] != 0 {
		t.Errorf("delete: %v", got)
	}
}

func TestOffsetFetchOfSeveralGroups(t *testing.T) {
	b, cl := start(t)
	simpleCommit(t, b, cl, "classic", 5)
	a := newMember(t, b, cl, "a")
	a.join(counting())
	got := simpleFetch(t, b, cl, "nobody", "classic", group)
	for g, want := range map[string]int64{"nobody": -1, "classic": 5, group: -1} {
		if got[g].ErrorCode != 0 || got[g].Topics[0].Partitions[0].Offset != want {
			t.Errorf("%s: %+v", g, got[g])
		}
	}
	if b.Cluster().GroupInfo("nobody") != nil {
		t.Error("asking for offsets made a group")
	}
}

// An old client, from before there could be several groups in a request.
func TestOldOffsetFetch(t *testing.T) {
	b, _ := start(t)
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = "nobody"
	rt := kmsg.NewOffsetFetchRequestTopic()
	rt.Topic, rt.Partitions = "in", []int32{0, 3}
	req.Topics = append(req.Topics, rt)
	old := connect(t, b, kgo.MaxVersions(maxVersion(9, 5)))
	resp := request[*kmsg.OffsetFetchResponse](t, old, 0, req)
	if resp.Version != 5 || resp.ErrorCode != 0 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 || resp.Topics[0].Partitions[1].Offset != -1 {
		t.Errorf("version %d: %+v", resp.Version, resp)
	}
}

func TestOffsetDelete(t *testing.T) {
	b, cl := start(t)
	if err := b.Cluster().CreateTopic("other", 1, nil); err != nil {
		t.Fatal(err)
	}
	a := newMember(t, b, cl, "a")
	a.join(counting())
	settle(t, b, a)
	remove := func(topics ...string) map[string]int16 {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		for _, topic := range topics {
			rt := kmsg.NewOffsetDeleteRequestTopic()
			rt.Topic = topic
			rt.Partitions = append(rt.Partitions, kmsg.NewOffsetDeleteRequestTopicPartition())
			req.Topics = append(req.Topics, rt)
		}
		resp := request[*kmsg.OffsetDeleteResponse](t, cl, 0, req)
		if resp.ErrorCode != 0 {
			t.Errorf("delete offsets: error %d", resp.ErrorCode)
		}
		out := make(map[string]int16)
		for _, rt := range resp.Topics {
			out[rt.Topic] = rt.Partitions[0].ErrorCode
		}
		return out
	}
	for _, when := range []string{"before a commit", "after a commit"} {
		got := remove("in", "other")
		if got["in"] != kerr.GroupSubscribedToTopic.Code || got["other"] != 0 {
			t.Errorf("%s: %v", when, got)
		}
		commit(t, b, a, b.Cluster().TopicInfo("in").TopicID, 0, 7, a.epoch)
	}
	a.leave(-1)
	if got := remove("in"); got["in"] != 0 {
		t.Errorf("without members: %v", got)
	}
	if got := simpleFetch(t, b, cl, group); got[group].Topics[0].Partitions[0].Offset != -1 {
		t.Errorf("the offset is still there: %+v", got)
	}
}

func joinClassic(t *testing.T, cl *kgo.Client) *kmsg.JoinGroupResponse {
	t.Helper()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType = group, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 10_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = "range"
	req.Protocols = append(req.Protocols, p)
	return request[*kmsg.JoinGroupResponse](t, cl, 0, req)
}

func TestOtherKindsOfGroups(t *testing.T) {
	t.Run("a live classic group keeps its id", func(t *testing.T) {
		b, cl := start(t)
		old := connect(t, b, kgo.MaxVersions(maxVersion(11, 3)))
		if resp := joinClassic(t, old); resp.ErrorCode != 0 {
			t.Fatalf("classic join: error %d", resp.ErrorCode)
		}
		a := newMember(t, b, cl, "a")
		resp := a.join(counting())
		if resp.ErrorCode != kerr.GroupIDNotFound.Code || *resp.ErrorMessage != "Group app is not a streams group." {
			t.Errorf("join: error %d", resp.ErrorCode)
		}
	})
	t.Run("an empty classic group becomes a streams group with its offsets", func(t *testing.T) {
		b, cl := start(t)
		simpleCommit(t, b, cl, group, 42)
		a := newMember(t, b, cl, "a")
		a.join(counting())
		settle(t, b, a)
		if offset, code := fetch(t, b, a, b.Cluster().TopicInfo("in").TopicID, 0, a.epoch); offset != 42 || code != 0 {
			t.Errorf("offset %d, error %d", offset, code)
		}
	})
	t.Run("an empty streams group becomes a classic group, one with members does not", func(t *testing.T) {
		b, cl := start(t)
		old := connect(t, b, kgo.MaxVersions(maxVersion(11, 3)))
		a := newMember(t, b, cl, "a")
		a.join(counting())
		if resp := joinClassic(t, old); resp.ErrorCode != kerr.InconsistentGroupProtocol.Code {
			t.Errorf("with members: error %d", resp.ErrorCode)
		}
		a.leave(-1)
		if resp := joinClassic(t, old); resp.ErrorCode != 0 {
			t.Errorf("without members: error %d", resp.ErrorCode)
		}
		if _, ok := b.Group(group); ok {
			t.Error("the streams group is still there")
		}
	})
	t.Run("consumer and share groups cannot have the id of a streams group", func(t *testing.T) {
		b, cl := start(t)
		newMember(t, b, cl, "a").join(counting())
		consumer := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		consumer.Group, consumer.MemberID, consumer.RebalanceTimeoutMillis = group, "c", 1000
		consumer.SubscribedTopicNames = []string{"in"}
		consumer.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		if resp := request[*kmsg.ConsumerGroupHeartbeatResponse](t, cl, 0, consumer); resp.ErrorCode != kerr.GroupIDNotFound.Code {
			t.Errorf("consumer: error %d", resp.ErrorCode)
		}
		share := kmsg.NewPtrShareGroupHeartbeatRequest()
		share.GroupID, share.MemberID = group, "s"
		share.SubscribedTopicNames = []string{"in"}
		if resp := request[*kmsg.ShareGroupHeartbeatResponse](t, cl, 0, share); resp.ErrorCode != kerr.GroupIDNotFound.Code {
			t.Errorf("share: error %d", resp.ErrorCode)
		}
	})
	t.Run("a consumer group keeps its id, also when it is empty", func(t *testing.T) {
		b, cl := start(t)
		beat := func(epoch int32) int16 {
			req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = group, "c", epoch, 1000
			req.SubscribedTopicNames = []string{"in"}
			req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			return request[*kmsg.ConsumerGroupHeartbeatResponse](t, cl, 0, req).ErrorCode
		}
		if code := beat(0); code != 0 {
			t.Fatalf("consumer join: error %d", code)
		}
		a := newMember(t, b, cl, "a")
		if resp := a.join(counting()); resp.ErrorCode != kerr.GroupIDNotFound.Code {
			t.Errorf("with a consumer: error %d", resp.ErrorCode)
		}
		if code := beat(-1); code != 0 {
			t.Fatalf("consumer leave: error %d", code)
		}
		if resp := a.join(counting()); resp.ErrorCode != kerr.GroupIDNotFound.Code {
			t.Errorf("empty: error %d", resp.ErrorCode)
		}
	})
}

func TestDescribe(t *testing.T) {
	b, cl := start(t, streamstest.WithTopologyDescriptions())
	simpleCommit(t, b, cl, "classic", 1)
	a := newMember(t, b, cl, "a")
	resp := a.send(func(req *kmsg.StreamsGroupHeartbeatRequest) {
		req.Topology, req.RebalanceTimeoutMillis, req.ProcessID = counting(), 1000, &a.process
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		req.UserEndpoint = &kmsg.StreamsGroupHeartbeatRequestUserEndpoint{Host: "here", Port: 7001}
		req.ClientTags = []kmsg.StreamsGroupHeartbeatRequestClientTag{{Key: "zone", Value: "z1"}}
	})
	if !resp.TopologyDescriptionRequired {
		t.Fatal("the broker does not ask for a description")
	}
	describe := func() kmsg.StreamsGroupDescribeResponseGroup {
		req := kmsg.NewPtrStreamsGroupDescribeRequest()
		req.Groups = []string{group, "classic", "nobody"}
		req.IncludeTopologyDescription = true
		resp := request[*kmsg.StreamsGroupDescribeResponse](t, cl, 0, req)
		for i, want := range []string{"Group classic is not a streams group.", "Group nobody not found."} {
			if g := resp.Groups[i+1]; g.ErrorCode != kerr.GroupIDNotFound.Code || *g.ErrorMessage != want {
				t.Errorf("%s: error %d %q", g.Group, g.ErrorCode, *g.ErrorMessage)
			}
		}
		return resp.Groups[0]
	}
	if g := describe(); g.State != streamstest.StateNotReady || g.TopologyDescriptionStatus != 1 || g.TopologyDescription != nil ||
		g.Topology.Subtopologies[0].StateChangelogTopics[0].NumPartitions != 0 {
		t.Errorf("before: %+v", g)
	}
	push := kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()
	push.Group, push.MemberID = group, a.id
	node := kmsg.NewTopologyDescriptionNode()
	node.Name, node.NodeType, node.SourceTopics = "source", 1, []string{"in"}
	sub := kmsg.NewTopologyDescriptionSubtopology()
	sub.SubtopologyID, sub.Nodes = "0", []kmsg.TopologyDescriptionNode{node}
	push.TopologyDescription.Subtopologies = []kmsg.TopologyDescriptionSubtopology{sub}
	if resp := request[*kmsg.StreamsGroupTopologyDescriptionUpdateResponse](t, cl, 0, push); resp.ErrorCode != 0 {
		t.Fatalf("push: error %d", resp.ErrorCode)
	}
	settle(t, b, a)
	a.send(func(req *kmsg.StreamsGroupHeartbeatRequest) {
		req.TaskOffsets = []kmsg.TaskOffset{{SubtopologyID: "0", Partition: 1, Offset: 10}}
	})
	g := describe()
	if g.State != streamstest.StateStable || g.Epoch != 3 || g.AssignmentEpoch != 3 || *g.AssignorName != "sticky" || g.TopologyDescriptionStatus != 3 ||
		g.TopologyDescription.Subtopologies[0].Nodes[0].Name != "source" {
		t.Errorf("after: %+v", g)
	}
	if s := g.Topology.Subtopologies[0]; !slices.Equal(s.SourceTopics, []string{"in"}) || s.StateChangelogTopics[0].NumPartitions != 4 ||
		s.StateChangelogTopics[0].Configs[0].Value != "compact" {
		t.Errorf("topology: %+v", s)
	}
	m := g.Members[0]
	if m.MemberID != "a" || m.MemberEpoch != 3 || m.ProcessID != a.process || m.UserEndpoint.Port != 7001 || m.ClientTags[0].Value != "z1" ||
		m.TaskOffsets[0].Offset != 10 || !strings.HasPrefix(m.ClientHost, "/") ||
		!slices.Equal(partitions(m.Assignment.ActiveTasks), []int32{0, 1, 2, 3}) || !slices.Equal(partitions(m.TargetAssignment.ActiveTasks), []int32{0, 1, 2, 3}) {
		t.Errorf("member: %+v", m)
	}
}

func TestTopologyDescriptionRefused(t *testing.T) {
	push := func(b *streamstest.Broker, cl *kgo.Client, change func(*kmsg.StreamsGroupTopologyDescriptionUpdateRequest)) int16 {
		req := kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()
		req.Group, req.MemberID = group, "a"
		change(req)
		return request[*kmsg.StreamsGroupTopologyDescriptionUpdateResponse](t, cl, 0, req).ErrorCode
	}
	nothing := func(*kmsg.StreamsGroupTopologyDescriptionUpdateRequest) {}
	b, cl := start(t)
	newMember(t, b, cl, "a").join(counting())
	if code := push(b, cl, nothing); code != kerr.UnsupportedVersion.Code {
		t.Errorf("without descriptions: error %d", code)
	}
	b, cl = start(t, streamstest.WithTopologyDescriptions())
	if code := push(b, cl, nothing); code != kerr.GroupIDNotFound.Code {
		t.Errorf("without a group: error %d", code)
	}
	newMember(t, b, cl, "a").join(counting())
	for name, test := range map[string]struct {
		change func(*kmsg.StreamsGroupTopologyDescriptionUpdateRequest)
		code   int16
	}{
		"good":           {nothing, 0},
		"no member":      {func(r *kmsg.StreamsGroupTopologyDescriptionUpdateRequest) { r.MemberID = "" }, kerr.InvalidRequest.Code},
		"unknown member": {func(r *kmsg.StreamsGroupTopologyDescriptionUpdateRequest) { r.MemberID = "b" }, kerr.UnknownMemberID.Code},
		"other topology": {func(r *kmsg.StreamsGroupTopologyDescriptionUpdateRequest) { r.TopologyEpoch = 1 }, kerr.InvalidRequest.Code},
		"unknown node": {func(r *kmsg.StreamsGroupTopologyDescriptionUpdateRequest) {
			sub := kmsg.NewTopologyDescriptionSubtopology()
			sub.Nodes = []kmsg.TopologyDescriptionNode{{NodeType: 4}}
			r.TopologyDescription.Subtopologies = []kmsg.TopologyDescriptionSubtopology{sub}
		}, kerr.InvalidRequest.Code},
	} {
		if code := push(b, cl, test.change); code != test.code {
			t.Errorf("%s: error %d, want %d", name, code, test.code)
		}
	}
}
