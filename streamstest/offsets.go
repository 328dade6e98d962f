package streamstest

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// topicName resolves a topic that a request names, or only has the id of. It is empty for an unknown id.
func (b *Broker) topicName(name string, id [16]byte, byID bool) string {
	if !byID {
		return name
	}
	if info := b.cluster.TopicIDInfo(id); info != nil {
		return info.Topic
	}
	return ""
}

// checkCommit asks the coordinator whether a member may commit. The answer is 0 if so.
func (b *Broker) checkCommit(c coordinator.Commit, partitions []coordinator.TopicPartition) int16 {
	code := int16(0)
	b.with(func(groups *coordinator.Coordinator, now time.Time) {
		if err := groups.ValidateCommit(now, c, partitions); err != nil {
			code = err.Code.Code
		}
	})
	return code
}

// simpleGeneration makes a commit one of nobody's, which kfake takes for any group without members of its own. The
// coordinator has checked the sender by then.
const simpleGeneration = -1

// createGroup makes kfake know a group, so that it can hold offsets for it.
func (b *Broker) createGroup(node int32, group string) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = 8
	req.Group = group
	req.Generation = simpleGeneration
	req.Topics = []kmsg.OffsetCommitRequestTopic{}
	_, err := b.ask.node(node, req)
	return err
}

// unknownGroup reports whether neither the coordinator nor kfake knows the group.
func (b *Broker) unknownGroup(group string) bool {
	return !b.isStreams(group) && b.cluster.GroupInfo(group) == nil
}

// topicCode is what a commit gets for a topic, given what it gets as a whole: unknown ids come first.
func topicCode(name string, code int16) int16 {
	if name == "" {
		return kerr.UnknownTopicID.Code
	}
	return code
}
