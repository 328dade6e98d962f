package coordinator

import (
	"cmp"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type (
	subtopology      = kmsg.StreamsGroupHeartbeatRequestTopologySubtopology
	copartitionGroup = kmsg.StreamsGroupHeartbeatRequestTopologySubtopologyCopartitionGroup
)

// topology is the topology that a group's first member brought. It never changes.
type topology struct {
	epoch         int32
	subtopologies []subtopology // by id

	// reader is the subtopology that reads a source or repartition topic.
	reader map[string]string

	// required are the topics whose existence and partition counts the assignment depends on, sorted.
	required []string

	// unmatched are patterns of source topics that no topic matches, though it takes one to go on.
	unmatched []string
}

func newTopology(wire *kmsg.StreamsGroupHeartbeatRequestTopology) *topology {
	t := &topology{
		epoch: wire.Epoch,
		subtopologies: slices.SortedFunc(slices.Values(wire.Subtopologies), func(a, b subtopology) int {
			return cmp.Compare(a.SubtopologyID, b.SubtopologyID)
		}),
		reader: make(map[string]string),
	}
	required := make(map[string]struct{})
	for _, s := range t.subtopologies {
		for _, topic := range s.SourceTopics {
			t.reader[topic] = s.SubtopologyID
		}
		for _, topic := range s.RepartitionSourceTopics {
			t.reader[topic.Topic] = s.SubtopologyID
		}
		for _, topic := range s.StateChangelogTopics {
			required[topic.Topic] = struct{}{}
		}
	}
	for topic := range t.reader {
		required[topic] = struct{}{}
	}
	t.required = slices.Sorted(maps.Keys(required))
	return t
}

// equal compares as Kafka does: the order of subtopologies does not matter, the order within each list does.
func (t *topology) equal(o *topology) bool {
	return t.epoch == o.epoch && slices.EqualFunc(t.subtopologies, o.subtopologies, func(a, b subtopology) bool {
		return a.SubtopologyID == b.SubtopologyID &&
			slices.Equal(a.SourceTopics, b.SourceTopics) &&
			slices.Equal(a.SourceTopicRegex, b.SourceTopicRegex) &&
			slices.Equal(a.RepartitionSinkTopics, b.RepartitionSinkTopics) &&
			slices.EqualFunc(a.RepartitionSourceTopics, b.RepartitionSourceTopics, equalTopicInfo) &&
			slices.EqualFunc(a.StateChangelogTopics, b.StateChangelogTopics, equalTopicInfo) &&
			slices.EqualFunc(a.CopartitionGroups, b.CopartitionGroups, equalCopartitionGroup)
	})
}

func equalTopicInfo(a, b kmsg.TopicInfo) bool {
	return a.Topic == b.Topic && a.NumPartitions == b.NumPartitions && a.ReplicationFactor == b.ReplicationFactor &&
		slices.EqualFunc(a.Configs, b.Configs, func(a, b kmsg.TopicInfoConfig) bool {
			return a.Key == b.Key && a.Value == b.Value
		})
}

func equalCopartitionGroup(a, b copartitionGroup) bool {
	return slices.Equal(a.SourceTopics, b.SourceTopics) &&
		slices.Equal(a.SourceTopicRegex, b.SourceTopicRegex) &&
		slices.Equal(a.RepartitionSourceTopics, b.RepartitionSourceTopics)
}
