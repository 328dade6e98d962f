package streamstest

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// TxnOffsetCommit
//
// Behavior:
// * For a streams group, checks member and member epoch as OffsetCommit does; kfake stages the offsets
// * Before v6, a stale member epoch is ILLEGAL_GENERATION (KIP-1319)

func (b *Broker) txnOffsetCommit(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.TxnOffsetCommitRequest)
	if !b.coordinates(node, req.Group) || !b.isStreams(req.Group) {
		return nil, false, nil
	}
	byID := req.Version >= 6
	var partitions []coordinator.TopicPartition
	for _, t := range req.Topics {
		if name := b.topicName(t.Topic, t.TopicID, byID); name != "" {
			for _, p := range t.Partitions {
				partitions = append(partitions, coordinator.TopicPartition{Topic: name, Partition: p.Partition})
			}
		}
	}
	code := b.checkCommit(coordinator.Commit{
		Group: req.Group, MemberID: req.MemberID, MemberEpoch: req.Generation, InstanceID: req.InstanceID,
		Transactional: true, Version: req.Version,
	}, partitions)
	if code == 0 {
		req.MemberID, req.Generation, req.InstanceID = "", simpleGeneration, nil
		return nil, false, nil
	}
	resp := req.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewTxnOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			rp.Partition = p.Partition
			rp.ErrorCode = topicCode(b.topicName(t.Topic, t.TopicID, byID), code)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp, true, nil
}
