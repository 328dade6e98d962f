package coordinator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topic is what the coordinator needs to know about an existing topic.
type Topic struct {
	ID         [16]byte
	Partitions int32
}

// Topics looks up an existing topic.
type Topics func(name string) (Topic, bool)

// NewTopic is an internal topic that is to be created.
type NewTopic struct {
	Name              string
	Partitions        int32
	ReplicationFactor int16 // -1 for the cluster's default
	Configs           map[string]string
}

// configuredTopology is a topology matched with the topics that exist: how many tasks each subtopology has, and what
// is missing or wrong. It is ready if nothing is.
type configuredTopology struct {
	epoch         int32
	subtopologies []configuredSubtopology // by id; nil if the topics cannot be used at all
	missing       []NewTopic              // by name
	problem       *Status
}

type configuredSubtopology struct {
	id                      string
	tasks                   int32
	sourceTopics            []string // sorted, as are all lists here
	repartitionSinkTopics   []string
	repartitionSourceTopics []NewTopic
	stateChangelogTopics    []NewTopic
}

func (c *configuredTopology) ready() bool { return c.problem == nil }

func (c *configuredTopology) subtopology(id string) *configuredSubtopology {
	i, ok := slices.BinarySearchFunc(c.subtopologies, id, func(s configuredSubtopology, id string) int {
		return cmp.Compare(s.id, id)
	})
	if !ok {
		return nil
	}
	return &c.subtopologies[i]
}

// readTopics are the topics whose partitions make the subtopology's tasks, sorted.
func (s *configuredSubtopology) readTopics() []string {
	topics := slices.Clone(s.sourceTopics)
	for _, t := range s.repartitionSourceTopics {
		topics = append(topics, t.Name)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

func (s *configuredSubtopology) stateful() bool { return len(s.stateChangelogTopics) > 0 }

// fingerprint changes whenever a required topic is created, deleted, recreated, or gets more partitions. It is empty
// while none exists.
func fingerprint(t *topology, topics Topics) string {
	var b strings.Builder
	for _, name := range t.required {
		if topic, ok := topics(name); ok {
			fmt.Fprintf(&b, "%s %x %d\n", name, topic.ID, topic.Partitions)
		}
	}
	return b.String()
}

// sizer decides the partition counts of internal topics. Counts already decided are kept in decided; a topic that
// exists is taken as it is.
type sizer struct {
	topology *topology
	topics   Topics
	decided  map[string]int32
}

// configure matches the topology with the topics that exist. Its error, STREAMS_INVALID_TOPOLOGY, means that no set
// of topics could ever do.
func configure(t *topology, topics Topics) (*configuredTopology, *Error) {
	unusable := func(s *Status) (*configuredTopology, *Error) {
		return &configuredTopology{epoch: t.epoch, problem: s}, nil
	}
	if s := missingSourceTopics(t, topics); s != nil {
		return unusable(s)
	}
	z := &sizer{topology: t, topics: topics, decided: make(map[string]int32)}
	if err := z.sizeRepartitionTopics(); err != nil {
		return nil, err
	}
	if s, err := z.enforceCopartitioning(); s != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return unusable(s)
	}
	c := &configuredTopology{epoch: t.epoch}
	for _, s := range t.subtopologies {
		cs, err := z.subtopology(s)
		if err != nil {
			return nil, err
		}
		c.subtopologies = append(c.subtopologies, cs)
	}
	var wrong *Status
	c.missing, wrong = missingInternalTopics(c.subtopologies, topics)
	if wrong != nil {
		return unusable(wrong)
	}
	if len(c.missing) > 0 {
		var names []string
		for _, m := range c.missing {
			names = append(names, m.Name)
		}
		c.problem = &Status{StatusMissingInternalTopics, "Internal topics are missing: " + summarize(names)}
	}
	return c, nil
}

func missingSourceTopics(t *topology, topics Topics) *Status {
	missing := make(map[string]struct{})
	for _, pattern := range t.unmatched {
		missing["matching "+pattern] = struct{}{}
	}
	for _, s := range t.subtopologies {
		for _, name := range s.SourceTopics {
			if _, ok := topics(name); !ok {
				missing[name] = struct{}{}
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &Status{
		StatusMissingSourceTopics,
		"Source topics " + summarize(slices.Sorted(maps.Keys(missing))) + " are missing.",
	}
}

// missingInternalTopics compares the internal topics that must exist with those that do.
func missingInternalTopics(subtopologies []configuredSubtopology, topics Topics) ([]NewTopic, *Status) {
	missing := make(map[string]NewTopic)
	for _, s := range subtopologies {
		for _, want := range slices.Concat(s.repartitionSourceTopics, s.stateChangelogTopics) {
			have, ok := topics(want.Name)
			if !ok {
				missing[want.Name] = want
			} else if have.Partitions != want.Partitions {
				return nil, &Status{StatusIncorrectlyPartitionedTopics, fmt.Sprintf(
					"Existing topic %s has different number of partitions: expected %d, found %d",
					want.Name, want.Partitions, have.Partitions)}
			}
		}
	}
	return slices.SortedFunc(maps.Values(missing), func(a, b NewTopic) int { return cmp.Compare(a.Name, b.Name) }), nil
}

// count is the partition count of a topic as far as it is known.
func (z *sizer) count(topic string) (int32, bool) {
	if t, ok := z.topics(topic); ok {
		return t.Partitions, true
	}
	n, ok := z.decided[topic]
	return n, ok
}

// sizeRepartitionTopics gives each repartition topic without a count of its own the largest count among the topics
// that the subtopology which writes it reads. Subtopologies feed each other, so this repeats until nothing is open.
func (z *sizer) sizeRepartitionTopics() *Error {
	counts := make(map[string]int32)
	for _, s := range z.topology.subtopologies {
		for _, t := range s.RepartitionSourceTopics {
			if t.NumPartitions != 0 {
				counts[t.Topic] = t.NumPartitions
			}
		}
	}
	for open, progress := true, true; open; {
		if !progress {
			return errorf(kerr.StreamsInvalidTopology, "Failed to compute number of partitions for all repartition topics. There may be loops in the topology that cannot be resolved.")
		}
		open, progress = false, false
		for _, s := range z.topology.subtopologies {
			for _, sink := range s.RepartitionSinkTopics {
				if _, ok := counts[sink]; ok {
					continue
				}
				var n int32
				for _, t := range s.RepartitionSourceTopics {
					n = max(n, counts[t.Topic])
				}
				for _, name := range s.SourceTopics {
					if t, ok := z.topics(name); ok {
						n = max(n, t.Partitions)
					}
				}
				if n == 0 {
					open = true
					continue
				}
				counts[sink] = n
				progress = true
			}
		}
	}
	for _, s := range z.topology.subtopologies {
		for _, t := range s.RepartitionSourceTopics {
			if _, ok := counts[t.Topic]; !ok {
				return errorf(kerr.StreamsInvalidTopology, "Failed to compute number of partitions for all repartition topics, because a repartition source topic is never used as a sink topic.")
			}
		}
	}
	maps.Copy(z.decided, counts)
	return nil
}

// subtopology sizes what belongs to one subtopology. Changelogs have one partition per task.
func (z *sizer) subtopology(s subtopology) (configuredSubtopology, *Error) {
	c := configuredSubtopology{
		id:                    s.SubtopologyID,
		sourceTopics:          slices.Sorted(slices.Values(s.SourceTopics)),
		repartitionSinkTopics: slices.Sorted(slices.Values(s.RepartitionSinkTopics)),
	}
	for _, name := range s.SourceTopics {
		n, _ := z.count(name)
		c.tasks = max(c.tasks, n)
	}
	for _, t := range s.RepartitionSourceTopics {
		n, _ := z.count(t.Topic)
		c.tasks = max(c.tasks, n)
		partitions := t.NumPartitions
		if partitions == 0 {
			partitions = z.decided[t.Topic]
		}
		c.repartitionSourceTopics = append(c.repartitionSourceTopics, newTopic(t, partitions))
	}
	if c.tasks == 0 && len(s.SourceTopicRegex) > 0 {
		return c, nil
	}
	if c.tasks == 0 {
		return c, errorf(kerr.StreamsInvalidTopology, "No source topics found for subtopology %s", s.SubtopologyID)
	}
	for _, t := range s.StateChangelogTopics {
		c.stateChangelogTopics = append(c.stateChangelogTopics, newTopic(t, c.tasks))
	}
	byName := func(a, b NewTopic) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(c.repartitionSourceTopics, byName)
	slices.SortFunc(c.stateChangelogTopics, byName)
	return c, nil
}

func newTopic(t kmsg.TopicInfo, partitions int32) NewTopic {
	n := NewTopic{Name: t.Topic, Partitions: partitions, ReplicationFactor: t.ReplicationFactor, Configs: make(map[string]string)}
	if n.ReplicationFactor == 0 {
		n.ReplicationFactor = -1
	}
	for _, c := range t.Configs {
		n.Configs[c.Key] = c.Value
	}
	return n
}

// summarize lists at most three names.
func summarize(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d additional topics", strings.Join(names[:most], ", "), len(names)-most)
}
