package streamstest_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
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

// What kfake answers for the offsets decides: with a time-out they are deleted, and with another error nothing is.
func TestFaultyDelete(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	a.join(counting())
	a.leave(-1)
	for _, test := range []struct {
		err     *kerr.Error
		deleted bool
	}{{kerr.CoordinatorLoadInProgress, false}, {kerr.RequestTimedOut, true}} {
		b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DeleteGroups}, Group: group, Err: test.err})
		if got := deleteGroups(t, cl, group); got[group] != test.err.Code {
			t.Errorf("delete: %v, want %v", got, test.err)
		}
		if _, ok := b.Group(group); ok == test.deleted {
			t.Errorf("after %v the group is there: %v", test.err, ok)
		}
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
