package streamstest_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest"
)

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
