package streamstest_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest"
)

func TestDescribe(t *testing.T) {
	b, cl := start(t, streamstest.WithTopologyDescriptions())
	simpleCommit(t, b, cl, "classic", 1)
	cl = connect(t, b, kgo.ClientID("thread-1"))
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
		m.TaskOffsets[0].Offset != 10 || m.ClientID != "thread-1" || m.ClientHost != "/127.0.0.1" ||
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
