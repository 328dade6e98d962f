package coordinator

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Describe answers for one group of a StreamsGroupDescribe.
func (c *Coordinator) Describe(now time.Time, group string, withDescription bool) kmsg.StreamsGroupDescribeResponseGroup {
	out := kmsg.NewStreamsGroupDescribeResponseGroup()
	out.Group = group
	out.Members = []kmsg.StreamsGroupDescribeResponseGroupMember{}
	if group == "" {
		out.ErrorCode = kerr.InvalidGroupID.Code
		return out
	}
	g := c.at(now, group)
	if g == nil {
		err := errorf(kerr.GroupIDNotFound, "Group %s not found.", group)
		out.ErrorCode, out.ErrorMessage = err.Code.Code, kmsg.StringPtr(err.Message)
		return out
	}
	out.State = g.state()
	out.Epoch = g.epoch
	out.AssignmentEpoch = g.assignmentEpoch
	out.AssignorName = kmsg.StringPtr(AssignorName)
	out.Topology = g.describeTopology()
	for _, id := range g.memberIDs() {
		out.Members = append(out.Members, g.describeMember(g.members[id]))
	}
	if withDescription {
		out.TopologyDescription, out.TopologyDescriptionStatus = g.description.describe(c.config.TopologyDescriptions, g.topology)
	}
	return out
}

// describeTopology shows internal topics with the partition counts that they should have, once those are known.
func (g *group) describeTopology() *kmsg.StreamsGroupDescribeResponseGroupTopology {
	out := kmsg.NewStreamsGroupDescribeResponseGroupTopology()
	out.Epoch = g.topology.epoch
	out.Subtopologies = []kmsg.StreamsGroupDescribeResponseGroupTopologySubtopology{}
	if g.configured != nil && g.configured.ready() {
		for _, s := range g.configured.subtopologies {
			d := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
			d.SubtopologyID = s.id
			d.SourceTopics = s.sourceTopics
			d.RepartitionSinkTopics = s.repartitionSinkTopics
			for _, t := range s.repartitionSourceTopics {
				d.RepartitionSourceTopics = append(d.RepartitionSourceTopics, t.describe())
			}
			for _, t := range s.stateChangelogTopics {
				d.StateChangelogTopics = append(d.StateChangelogTopics, t.describe())
			}
			out.Subtopologies = append(out.Subtopologies, d)
		}
		return &out
	}
	for _, s := range g.topology.subtopologies {
		d := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
		d.SubtopologyID = s.SubtopologyID
		d.SourceTopics = slices.Sorted(slices.Values(s.SourceTopics))
		d.RepartitionSinkTopics = slices.Sorted(slices.Values(s.RepartitionSinkTopics))
		d.RepartitionSourceTopics = slices.Clone(s.RepartitionSourceTopics)
		d.StateChangelogTopics = slices.Clone(s.StateChangelogTopics)
		out.Subtopologies = append(out.Subtopologies, d)
	}
	return &out
}

func (t NewTopic) describe() kmsg.TopicInfo {
	out := kmsg.NewTopicInfo()
	out.Topic = t.Name
	out.NumPartitions = t.Partitions
	out.ReplicationFactor = max(t.ReplicationFactor, 0)
	for _, k := range slices.Sorted(maps.Keys(t.Configs)) {
		c := kmsg.NewTopicInfoConfig()
		c.Key, c.Value = k, t.Configs[k]
		out.Configs = append(out.Configs, c)
	}
	return out
}

func (g *group) describeMember(m *member) kmsg.StreamsGroupDescribeResponseGroupMember {
	out := kmsg.NewStreamsGroupDescribeResponseGroupMember()
	out.MemberID = m.id
	out.MemberEpoch = m.epoch
	out.InstanceID = m.instanceID
	out.RackID = m.rackID
	out.ClientID = m.clientID
	out.ClientHost = m.clientHost
	out.TopologyEpoch = m.topologyEpoch
	out.ProcessID = m.processID
	if m.endpoint != nil {
		e := kmsg.NewStreamsGroupDescribeResponseGroupMemberUserEndpoint()
		e.Host, e.Port = m.endpoint.Host, m.endpoint.Port
		out.UserEndpoint = &e
	}
	for _, k := range slices.Sorted(maps.Keys(m.clientTags)) {
		t := kmsg.NewStreamsGroupDescribeResponseGroupMemberClientTag()
		t.Key, t.Value = k, m.clientTags[k]
		out.ClientTags = append(out.ClientTags, t)
	}
	o := g.offsets[m.id]
	out.TaskOffsets, out.TaskEndOffsets = describeOffsets(o.current), describeOffsets(o.end)
	out.Assignment = describeTasks(m.assigned.tasks())
	out.TargetAssignment = describeTasks(g.target[m.id])
	return out
}

func describeTasks(t Tasks) kmsg.StreamsAssignment {
	out := kmsg.NewStreamsAssignment()
	out.ActiveTasks, out.StandbyTasks, out.WarmupTasks = toWire(t.Active), toWire(t.Standby), toWire(t.Warmup)
	return out
}

func describeOffsets(offsets map[TaskID]int64) []kmsg.TaskOffset {
	out := []kmsg.TaskOffset{}
	for _, t := range slices.SortedFunc(maps.Keys(offsets), compareTasks) {
		o := kmsg.NewTaskOffset()
		o.SubtopologyID, o.Partition, o.Offset = t.Subtopology, t.Partition, offsets[t]
		out = append(out, o)
	}
	return out
}

// Snapshot is a group at one moment, with nothing in it shared with the coordinator.
type Snapshot struct {
	State           string
	Epoch           int32 // of the group
	AssignmentEpoch int32 // of the target assignment
	TopologyEpoch   int32
	EndpointEpoch   int32
	Statuses        []Status // what every member is told: topic problems, delay, shutdown
	Members         []MemberSnapshot
}

// MemberSnapshot is a member at one moment.
type MemberSnapshot struct {
	ID, ProcessID, InstanceID string
	Epoch                     int32
	Endpoint                  *Endpoint
	ClientTags                map[string]string
	Assigned                  Tasks // what it has been told to run
	Revoking                  Tasks // what it still has to give up
	Target                    Tasks
	TaskOffsets               map[TaskID]int64
	TaskEndOffsets            map[TaskID]int64
}

// Snapshot returns a group as it is now, and whether it exists.
func (c *Coordinator) Snapshot(now time.Time, group string) (Snapshot, bool) {
	g := c.at(now, group)
	if g == nil {
		return Snapshot{}, false
	}
	s := Snapshot{
		State:           g.state(),
		Epoch:           g.epoch,
		AssignmentEpoch: g.assignmentEpoch,
		TopologyEpoch:   g.topology.epoch,
		EndpointEpoch:   g.endpointEpoch,
	}
	if !g.delayedUntil.IsZero() {
		s.Statuses = append(s.Statuses, Status{Code: StatusAssignmentDelayed, Detail: delayedByInitialRebalance})
	}
	if g.configured != nil && g.configured.problem != nil {
		s.Statuses = append(s.Statuses, *g.configured.problem)
	}
	if g.shutdownBy != "" {
		s.Statuses = append(s.Statuses, g.shutdownStatus())
	}
	for _, id := range g.memberIDs() {
		m := g.members[id]
		ms := MemberSnapshot{
			ID: id, ProcessID: m.processID, Epoch: m.epoch,
			ClientTags:     maps.Clone(m.clientTags),
			Assigned:       m.assigned.tasks().clone(),
			Revoking:       m.pendingRevocation.tasks().clone(),
			Target:         g.target[id].clone(),
			TaskOffsets:    maps.Clone(g.offsets[id].current),
			TaskEndOffsets: maps.Clone(g.offsets[id].end),
		}
		if m.instanceID != nil {
			ms.InstanceID = *m.instanceID
		}
		if m.endpoint != nil {
			e := *m.endpoint
			ms.Endpoint = &e
		}
		s.Members = append(s.Members, ms)
	}
	return s, true
}
