package streamstest

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// OffsetDelete: v0
//
// Behavior:
// * While a streams group has members, offsets of the topics that it reads cannot be deleted
// * A streams group that never committed has none to delete, which is not an error

func (b *Broker) offsetDelete(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.OffsetDeleteRequest)
	if !b.coordinates(node, req.Group) || !b.isStreams(req.Group) {
		return nil, false, nil
	}
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	theirs := *req
	theirs.Topics = nil
	for _, t := range req.Topics {
		var reads bool
		b.with(func(groups *coordinator.Coordinator, now time.Time) { reads = groups.Reads(now, req.Group, t.Topic) })
		if reads {
			resp.Topics = append(resp.Topics, offsetDeleteTopic(t, kerr.GroupSubscribedToTopic.Code))
		} else {
			theirs.Topics = append(theirs.Topics, t)
		}
	}
	if b.cluster.GroupInfo(req.Group) == nil {
		for _, t := range theirs.Topics {
			resp.Topics = append(resp.Topics, offsetDeleteTopic(t, 0))
		}
		return resp, true, nil
	}
	if len(resp.Topics) == 0 {
		return nil, false, nil
	}
	if len(theirs.Topics) > 0 {
		// This request cannot be marked as asked, but comes back here without anything to refuse.
		answer, err := b.ask.node(node, &theirs)
		if err != nil {
			return nil, true, err
		}
		asked := answer.(*kmsg.OffsetDeleteResponse)
		resp.ErrorCode = asked.ErrorCode
		resp.Topics = append(resp.Topics, asked.Topics...)
	}
	return resp, true, nil
}

func offsetDeleteTopic(t kmsg.OffsetDeleteRequestTopic, code int16) kmsg.OffsetDeleteResponseTopic {
	out := kmsg.NewOffsetDeleteResponseTopic()
	out.Topic = t.Topic
	for _, p := range t.Partitions {
		rp := kmsg.NewOffsetDeleteResponseTopicPartition()
		rp.Partition, rp.ErrorCode = p.Partition, code
		out.Partitions = append(out.Partitions, rp)
	}
	return out
}
