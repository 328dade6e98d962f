package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// enforceCopartitioning makes the topics of each copartition group have equally many partitions: source topics must
// have, repartition topics are given the same count unless the topology fixes another.
func (z *sizer) enforceCopartitioning() (*Status, *Error) {
	fixed, repartition := make(map[string]bool), make(map[string]bool)
	for _, s := range z.topology.subtopologies {
		for _, t := range s.RepartitionSourceTopics {
			repartition[t.Topic] = true
			if t.NumPartitions != 0 {
				fixed[t.Topic] = true
			}
		}
	}
	for _, s := range z.topology.subtopologies {
		for _, g := range s.CopartitionGroups {
			group, err := copartitionedTopics(s, g)
			if err != nil {
				return nil, err
			}
			if status, err := z.enforce(group, fixed, repartition); status != nil || err != nil {
				return status, err
			}
		}
	}
	return nil, nil
}

// copartitionedTopics resolves the indexes of a copartition group, which point into the subtopology's own lists.
func copartitionedTopics(s subtopology, g copartitionGroup) ([]string, *Error) {
	var topics []string
	for _, i := range g.SourceTopics {
		if i < 0 || int(i) >= len(s.SourceTopics) {
			return nil, errorf(kerr.StreamsInvalidTopology, "Copartition group of subtopology %s refers to source topic %d of %d.", s.SubtopologyID, i, len(s.SourceTopics))
		}
		topics = append(topics, s.SourceTopics[i])
	}
	for _, i := range g.RepartitionSourceTopics {
		if i < 0 || int(i) >= len(s.RepartitionSourceTopics) {
			return nil, errorf(kerr.StreamsInvalidTopology, "Copartition group of subtopology %s refers to repartition source topic %d of %d.", s.SubtopologyID, i, len(s.RepartitionSourceTopics))
		}
		topics = append(topics, s.RepartitionSourceTopics[i].Topic)
	}
	return topics, nil
}

func (z *sizer) enforce(group []string, fixed, repartition map[string]bool) (*Status, *Error) {
	internal, external := make(map[string]int32), make(map[string]int32)
	for _, topic := range group {
		n, ok := z.count(topic)
		if !ok {
			return nil, errorf(kerr.StreamsInvalidTopology, "Number of partitions is not set for topic: %s", topic)
		}
		if repartition[topic] {
			internal[topic] = n
		} else {
			external[topic] = n
		}
	}
	var partitions int32
	switch {
	case len(internal) == 0 && len(external) == 0:
		return nil, nil
	case len(external) > 0:
		n, same := sameCount(external)
		if !same {
			return differentCounts(external), nil
		}
		partitions = n
	case len(fixed) > 0:
		// As in Kafka, every fixed repartition topic of the topology counts here, not only those of the group.
		all := make(map[string]int32)
		for topic := range fixed {
			all[topic], _ = z.count(topic)
		}
		n, same := sameCount(all)
		if !same {
			return differentCounts(internal), nil
		}
		partitions = n
	default:
		for _, n := range internal {
			partitions = max(partitions, n)
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(internal)) {
		z.decided[topic] = partitions
		if fixed[topic] && internal[topic] != partitions {
			return &Status{StatusIncorrectlyPartitionedTopics, fmt.Sprintf(
				"Number of partitions [%d] of repartition topic [%s] doesn't match number of partitions [%d] of the source topic.",
				internal[topic], topic, partitions)}, nil
		}
	}
	return nil, nil
}

func sameCount(counts map[string]int32) (int32, bool) {
	first := int32(-1)
	for _, n := range counts {
		if first >= 0 && n != first {
			return 0, false
		}
		first = n
	}
	return first, true
}

func differentCounts(counts map[string]int32) *Status {
	var pairs []string
	for _, topic := range slices.Sorted(maps.Keys(counts)) {
		pairs = append(pairs, fmt.Sprintf("%s=%d", topic, counts[topic]))
	}
	return &Status{StatusIncorrectlyPartitionedTopics,
		"Following topics do not have the same number of partitions: [{" + strings.Join(pairs, ", ") + "}]"}
}
