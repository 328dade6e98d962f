package streamstest

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// OffsetCommit
//
// Behavior:
// * For a streams group, checks member and member epoch; kfake stores the offsets
// * An older epoch is good for a task that has been the member's since
// * With a member epoch, a group that does not exist is GROUP_ID_NOT_FOUND from v9 on

func (b *Broker) offsetCommit(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.OffsetCommitRequest)
	if !b.coordinates(node, req.Group) {
		return nil, false, nil
	}
	byID := req.Version >= 10
	var code int16
	switch {
	case b.isStreams(req.Group):
		var partitions []coordinator.TopicPartition
		for _, t := range req.Topics {
			if name := b.topicName(t.Topic, t.TopicID, byID); name != "" {
				for _, p := range t.Partitions {
					partitions = append(partitions, coordinator.TopicPartition{Topic: name, Partition: p.Partition})
				}
			}
		}
		code = b.checkCommit(coordinator.Commit{
			Group: req.Group, MemberID: req.MemberID, MemberEpoch: req.Generation, InstanceID: req.InstanceID, Version: req.Version,
		}, partitions)
		if code == 0 {
			req.MemberID, req.Generation, req.InstanceID = "", simpleGeneration, nil
			return nil, false, nil
		}
	case req.Version >= 9 && req.Generation >= 0 && b.unknownGroup(req.Group):
		code = kerr.GroupIDNotFound.Code
	default:
		return nil, false, nil
	}
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetCommitResponseTopicPartition()
			rp.Partition = p.Partition
			rp.ErrorCode = topicCode(b.topicName(t.Topic, t.TopicID, byID), code)
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp, true, nil
}
