package streamstest_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest"
)

func TestJoinAssignCommit(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	resp := a.join(counting())
	if resp.ErrorCode != 0 || len(resp.Status) != 1 || resp.Status[0].StatusCode != streamstest.StatusMissingInternalTopics {
		t.Fatalf("join: error %d, status %v", resp.ErrorCode, resp.Status)
	}
	changelog := b.Cluster().TopicInfo("app-counts-changelog")
	if changelog == nil || *changelog.Configs["cleanup.policy"] != "compact" || len(b.Cluster().PartitionInfos("app-counts-changelog")) != 4 {
		t.Fatalf("the changelog is %+v", changelog)
	}
	settle(t, b, a)
	if !slices.Equal(a.active(), []int32{0, 1, 2, 3}) {
		t.Fatalf("a runs %v", a.active())
	}
	in := b.Cluster().TopicInfo("in").TopicID
	if code := commit(t, b, a, in, 2, 42, a.epoch); code != 0 {
		t.Fatalf("commit: error %d", code)
	}
	if offset, code := fetch(t, b, a, in, 2, a.epoch); offset != 42 || code != 0 {
		t.Fatalf("fetch: offset %d, error %d", offset, code)
	}
	if offset, code := fetch(t, b, a, in, 1, a.epoch); offset != -1 || code != 0 {
		t.Fatalf("fetch without commit: offset %d, error %d", offset, code)
	}
	if _, code := fetch(t, b, a, in, 2, a.epoch-1); code != kerr.StaleMemberEpoch.Code {
		t.Fatalf("fetch with an old epoch: error %d", code)
	}
	if code := commit(t, b, a, in, 2, 43, a.epoch+1); code != kerr.StaleMemberEpoch.Code {
		t.Fatalf("commit with a new epoch: error %d", code)
	}
}

func commit(t *testing.T, b *streamstest.Broker, m *member, topic [16]byte, partition int32, offset int64, epoch int32) int16 {
	t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, m.id, epoch
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.TopicID = topic
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset = partition, offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp := request[*kmsg.OffsetCommitResponse](t, m.cl, b.Cluster().CoordinatorFor(group), req)
	return resp.Topics[0].Partitions[0].ErrorCode
}

func fetch(t *testing.T, b *streamstest.Broker, m *member, topic [16]byte, partition, epoch int32) (int64, int16) {
	t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group, rg.MemberID, rg.MemberEpoch = group, &m.id, epoch
	rt := kmsg.NewOffsetFetchRequestGroupTopic()
	rt.TopicID, rt.Partitions = topic, []int32{partition}
	rg.Topics = append(rg.Topics, rt)
	req.Groups = append(req.Groups, rg)
	g := request[*kmsg.OffsetFetchResponse](t, m.cl, b.Cluster().CoordinatorFor(group), req).Groups[0]
	if g.ErrorCode != 0 {
		return 0, g.ErrorCode
	}
	p := g.Topics[0].Partitions[0]
	return p.Offset, p.ErrorCode
}
