package streams

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/internal/javahash"
)

// copartitionGroups are the sets of topics that must have equal numbers of
// partitions: the topics of the groups of sources, joined where they overlap. Their
// order and their topics' is Java's, and so is how overlapping groups are joined.
func (t *Topology) copartitionGroups(topicName func(string) string) [][]string {
	type group struct{ topics []string }
	of := make(map[string]*group)
	var topics []string // that are in a group, in the order in which they got there
	for _, sources := range t.copartitioned {
		var own []string
		for _, source := range javahash.Strings(sources) {
			// A source that was merged into another one is not there.
			if n := t.byName[source]; n != nil {
				for _, topic := range n.topics {
					if name := topicName(topic); !slices.Contains(own, name) {
						own = append(own, name)
					}
				}
				if n.pattern != nil {
					own = append(own, patternName(n.pattern))
				}
			}
		}
		own = javahash.Strings(own)
		g := &group{}
		if i := slices.IndexFunc(own, func(topic string) bool { return of[topic] != nil }); i >= 0 {
			g = of[own[i]]
		}
		for _, topic := range own {
			if !slices.Contains(g.topics, topic) {
				g.topics = append(g.topics, topic)
			}
			if of[topic] == nil {
				topics = append(topics, topic)
			}
			of[topic] = g
		}
	}
	var groups [][]string
	for _, topic := range topics {
		sorted := javahash.Strings(of[topic].topics)
		if !slices.ContainsFunc(groups, func(g []string) bool { return slices.Equal(g, sorted) }) {
			groups = append(groups, sorted)
		}
	}
	return javahash.Order(groups, func(g []string) (h int32) {
		for _, topic := range g {
			h += javahash.String(topic)
		}
		return h
	})
}

// addCopartitionGroups adds each group to the subtopology that reads its topics.
func addCopartitionGroups(wire *kmsg.StreamsGroupHeartbeatRequestTopology, groups [][]string) error {
	for _, group := range groups {
		i := slices.IndexFunc(wire.Subtopologies, func(sub kmsg.StreamsGroupHeartbeatRequestTopologySubtopology) bool {
			return indexes(&sub, group) != nil
		})
		if i < 0 {
			return fmt.Errorf("%w: topics %q must have equal numbers of partitions, but no subtopology reads all of them", ErrTopology, group)
		}
		sub := &wire.Subtopologies[i]
		g := indexes(sub, group)
		if err := checkPartitions(sub, g); err != nil {
			return err
		}
		sub.CopartitionGroups = append(sub.CopartitionGroups, *g)
	}
	return nil
}

// checkPartitions checks that the repartition topics of a group whose numbers of
// partitions are given have the same.
func checkPartitions(sub *kmsg.StreamsGroupHeartbeatRequestTopologySubtopology, group *kmsg.StreamsGroupHeartbeatRequestTopologySubtopologyCopartitionGroup) error {
	var first *kmsg.TopicInfo
	for _, i := range group.RepartitionSourceTopics {
		topic := &sub.RepartitionSourceTopics[i]
		switch {
		case topic.NumPartitions == 0:
		case first == nil:
			first = topic
		case topic.NumPartitions != first.NumPartitions:
			return fmt.Errorf("%w: repartition topics %q and %q, which are processed together, have %d and %d partitions: give both the same NumberOfPartitions",
				ErrTopology, first.Topic, topic.Topic, first.NumPartitions, topic.NumPartitions)
		}
	}
	return nil
}

// indexes tells the topics of a group by their places in the subtopology; it is nil
// where one is not there.
func indexes(sub *kmsg.StreamsGroupHeartbeatRequestTopologySubtopology, group []string) *kmsg.StreamsGroupHeartbeatRequestTopologySubtopologyCopartitionGroup {
	g := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopologyCopartitionGroup()
	for _, topic := range group {
		if i := slices.Index(sub.SourceTopics, topic); i >= 0 {
			g.SourceTopics = append(g.SourceTopics, int16(i))
			continue
		}
		if pattern, ok := strings.CutPrefix(topic, patternPrefix); ok {
			i := slices.Index(sub.SourceTopicRegex, pattern)
			if i < 0 {
				return nil
			}
			g.SourceTopicRegex = append(g.SourceTopicRegex, int16(i))
			continue
		}
		i := slices.IndexFunc(sub.RepartitionSourceTopics, func(t kmsg.TopicInfo) bool { return t.Topic == topic })
		if i < 0 {
			return nil
		}
		g.RepartitionSourceTopics = append(g.RepartitionSourceTopics, int16(i))
	}
	return &g
}
