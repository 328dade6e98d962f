package streams

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/taskmgr"
)

// internalTopic is a repartition topic.
type internalTopic struct {
	partitions int32 // 0: as many as the widest topic that feeds it
}

// internalTopics says how the internal topics of an application are named and set
// up.
type internalTopics struct {
	applicationID       string            // their names begin with it
	replicationFactor   int16             // −1: the broker's default
	config              map[string]string // over the defaults
	additionalRetention time.Duration     // of the changelogs of windows and sessions
}

// Compiled is a topology under an application's configuration: what its threads run
// and what its members tell the group coordinator. Applications have no need of it;
// [NewApp] makes its own. It is for what runs tasks without a stream thread, such
// as a test driver.
type Compiled struct {
	// Tasks are the subtopologies.
	Tasks taskmgr.Topology

	// Global is what fills the global stores; nil where there are none.
	Global *taskmgr.GlobalTopology

	// Heartbeat is the topology of the heartbeat with which a member joins.
	Heartbeat *kmsg.StreamsGroupHeartbeatRequestTopology

	// Description is what a broker is told that asks (KIP-1331).
	Description *kmsg.TopologyDescription

	// OnRecordError decides about a record that could not be processed as the
	// configuration's handlers say. It may send a dead letter to out. Nil goes on
	// with the next record.
	OnRecordError func(task membership.TaskID, rec *kgo.Record, err error, out taskmgr.Collector) error
}

// Persistent says whether a store keeps its data on disk.
func (c *Compiled) Persistent() bool { return c.Tasks.Persistent() || c.Global.Persistent() }

// Compile checks the topology and puts it under an application's configuration.
// Brokers need not be given. The error is ErrTopology, with all that is wrong, or
// ErrConfig.
func (t *Topology) Compile(cfg Config) (*Compiled, error) {
	if err := checkTopicName(cfg.ApplicationID); err != nil {
		return nil, fmt.Errorf("%w: ApplicationID %q, which begins the names of topics: %w", ErrConfig, cfg.ApplicationID, err)
	}
	internal := cfg.internalTopics()
	if err := t.check(); err != nil {
		return nil, err
	}
	topicName := func(topic string) string {
		if _, ok := t.internal[topic]; ok {
			return internal.applicationID + "-" + topic
		}
		return topic
	}
	repartitionConfig := maps.Clone(repartitionConfig)
	maps.Copy(repartitionConfig, internal.config)
	subs := t.subtopologies()
	c := &Compiled{
		Tasks:         make(taskmgr.Topology, len(subs)),
		Heartbeat:     &kmsg.StreamsGroupHeartbeatRequestTopology{},
		Description:   &kmsg.TopologyDescription{},
		OnRecordError: cfg.onRecordError,
	}
	global := t.globalStores()
	for _, sub := range subs {
		id := strconv.Itoa(sub.id)
		if sub.global() {
			c.addGlobal(sub, topicName)
			continue
		}
		spec := taskmgr.Subtopology{
			NewGraph: func(ctx *taskmgr.Context) (taskmgr.Graph, error) {
				return newGraph(sub.nodes, &taskContext{Context: ctx, topicName: topicName, global: global, format: t.format})
			},
		}
		wire := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
		wire.SubtopologyID = id
		for _, n := range sub.nodes {
			for _, topic := range n.topics {
				spec.SourceTopics = append(spec.SourceTopics, topicName(topic))
				if n.reset != (OffsetReset{}) {
					if spec.Reset == nil {
						spec.Reset = make(map[string]taskmgr.Reset)
					}
					spec.Reset[topicName(topic)] = n.reset.offset
				}
			}
			if n.pattern != nil {
				pattern := taskmgr.SourcePattern{Match: wholeNames(n.pattern)}
				if n.reset != (OffsetReset{}) {
					pattern.Reset = n.reset.offset
				}
				spec.SourcePatterns = append(spec.SourcePatterns, pattern)
				wire.SourceTopicRegex = append(wire.SourceTopicRegex, n.pattern.String())
			}
		}
		for _, topic := range sub.sourceTopics() {
			if repartition, ok := t.internal[topic]; ok {
				wire.RepartitionSourceTopics = append(wire.RepartitionSourceTopics, topicInfo(
					topicName(topic), repartition.partitions, internal.replicationFactor, repartitionConfig))
			} else {
				wire.SourceTopics = append(wire.SourceTopics, topic)
			}
		}
		for _, n := range sub.nodes {
			if _, ok := t.internal[n.topic]; ok && n.kind == sinkKind {
				wire.RepartitionSinkTopics = append(wire.RepartitionSinkTopics, topicName(n.topic))
			}
		}
		for _, s := range sub.stores {
			var changelog string
			if !s.LoggingDisabled {
				if changelog = s.sourceTopic; changelog == "" {
					changelog = internal.applicationID + "-" + s.Name + "-changelog"
				}
				wire.StateChangelogTopics = append(wire.StateChangelogTopics, topicInfo(changelog, 0, internal.replicationFactor, s.changelogConfig(internal)))
			}
			spec.Stores = append(spec.Stores, taskmgr.StoreSpec{
				Changelog: changelog, ChangelogIsSource: s.sourceTopic != "", Persistent: s.Type != InMemory, New: s.new,
			})
		}
		// Equal topologies give equal bytes whatever the order of the calls, and
		// the coordinator compares them.
		slices.Sort(wire.SourceTopics)
		slices.Sort(wire.SourceTopicRegex)
		slices.Sort(wire.RepartitionSinkTopics)
		wire.RepartitionSinkTopics = slices.Compact(wire.RepartitionSinkTopics)
		sortTopics(wire.RepartitionSourceTopics)
		sortTopics(wire.StateChangelogTopics)

		c.Tasks[id] = spec
		c.Heartbeat.Subtopologies = append(c.Heartbeat.Subtopologies, wire)
		c.Description.Subtopologies = append(c.Description.Subtopologies, sub.describe(id, topicName))
	}
	slices.SortFunc(c.Heartbeat.Subtopologies, func(a, b kmsg.StreamsGroupHeartbeatRequestTopologySubtopology) int {
		return cmp.Compare(a.SubtopologyID, b.SubtopologyID) // as strings, so "10" before "2"
	})
	if c.Global != nil {
		c.Global.NewGraph = func(ctx *taskmgr.Context) (taskmgr.Graph, error) {
			return newGraph(globalNodes(subs), &taskContext{Context: ctx, topicName: topicName, global: global})
		}
	}
	if err := checkInternalTopics(c.Heartbeat); err != nil {
		return nil, err
	}
	return c, addCopartitionGroups(c.Heartbeat, t.copartitionGroups(topicName))
}

// checkInternalTopics checks the names of internal topics, which are longer than what
// they are made of.
func checkInternalTopics(wire *kmsg.StreamsGroupHeartbeatRequestTopology) error {
	var errs []error
	for _, sub := range wire.Subtopologies {
		for _, topics := range [][]kmsg.TopicInfo{sub.StateChangelogTopics, sub.RepartitionSourceTopics} {
			for _, topic := range topics {
				if err := checkTopicName(topic.Topic); err != nil {
					errs = append(errs, fmt.Errorf("internal topic %q: %w", topic.Topic, err))
				}
			}
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrTopology, errors.Join(errs...))
	}
	return nil
}

// repartitionConfig are the settings that Java gives repartition topics.
var repartitionConfig = map[string]string{
	"cleanup.policy":         "delete",
	"message.timestamp.type": "CreateTime",
	"retention.ms":           "-1",
	"segment.bytes":          "52428800",
}

func topicInfo(name string, partitions int32, replicationFactor int16, config map[string]string) kmsg.TopicInfo {
	info := kmsg.TopicInfo{Topic: name, NumPartitions: partitions, ReplicationFactor: replicationFactor}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		info.Configs = append(info.Configs, kmsg.TopicInfoConfig{Key: key, Value: config[key]})
	}
	return info
}

func sortTopics(topics []kmsg.TopicInfo) {
	slices.SortFunc(topics, func(a, b kmsg.TopicInfo) int { return cmp.Compare(a.Topic, b.Topic) })
}

// describe is the subtopology as the broker keeps it for tools (KIP-1331).
func (s *subtopology) describe(id string, topicName func(string) string) kmsg.TopologyDescriptionSubtopology {
	d := kmsg.TopologyDescriptionSubtopology{SubtopologyID: id}
	for _, n := range s.nodes {
		d.Nodes = append(d.Nodes, n.wireDescription(topicName))
	}
	slices.SortFunc(d.Nodes, func(a, b kmsg.TopologyDescriptionNode) int { return cmp.Compare(a.Name, b.Name) })
	return d
}

// wireDescription is the node as the broker keeps it.
func (n *node) wireDescription(topicName func(string) string) kmsg.TopologyDescriptionNode {
	d := kmsg.TopologyDescriptionNode{Name: n.name, NodeType: int8(n.kind), Stores: slices.Sorted(slices.Values(n.stores))}
	for _, topic := range n.topics {
		d.SourceTopics = append(d.SourceTopics, topicName(topic))
	}
	slices.Sort(d.SourceTopics)
	if n.topic != "" {
		d.SinkTopic = kmsg.StringPtr(topicName(n.topic))
	}
	for _, child := range n.children {
		d.Successors = append(d.Successors, child.name)
	}
	slices.Sort(d.Successors)
	return d
}
