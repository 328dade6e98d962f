package coordinator

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

type (
	endpointPartitions = kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint
	activePartition    = kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpointActivePartition
	standbyPartition   = kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpointStandbyPartition
)

// partitionsByUserEndpoint says which source topic partitions each member with an endpoint serves. It is never nil.
func (h *heartbeat) partitionsByUserEndpoint() []endpointPartitions {
	out := []endpointPartitions{}
	var ids []string
	for id, m := range h.group.members {
		if m.endpoint != nil && id != h.after.id && m != h.retired {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		out = h.appendEndpoint(out, h.group.members[id])
	}
	return h.appendEndpoint(out, h.after)
}

func (h *heartbeat) appendEndpoint(out []endpointPartitions, m *member) []endpointPartitions {
	if m.endpoint == nil {
		return out
	}
	tasks := m.assigned.tasks()
	e := endpointPartitions{
		UserEndpoint:      kmsg.Endpoint{Host: m.endpoint.Host, Port: m.endpoint.Port},
		ActivePartitions:  []activePartition{},
		StandbyPartitions: []standbyPartition{},
	}
	h.eachReadTopic(tasks.Active, func(topic string, partitions []int32) {
		e.ActivePartitions = append(e.ActivePartitions, activePartition{Topic: topic, Partitions: partitions})
	})
	h.eachReadTopic(union(tasks.Standby, tasks.Warmup), func(topic string, partitions []int32) {
		e.StandbyPartitions = append(e.StandbyPartitions, standbyPartition{Topic: topic, Partitions: partitions})
	})
	return append(out, e)
}

// eachReadTopic calls f for every topic that the tasks read, repartition topics included, with the partitions that
// exist. Without usable topics there are none.
func (h *heartbeat) eachReadTopic(tasks TaskSet, f func(topic string, partitions []int32)) {
	for _, ids := range toWire(tasks) {
		s := h.configured.subtopology(ids.SubtopologyID)
		if s == nil {
			continue
		}
		for _, name := range s.readTopics() {
			topic, _ := h.topics(name)
			var partitions []int32
			for _, p := range ids.Partitions {
				if p < topic.Partitions {
					partitions = append(partitions, p)
				}
			}
			if len(partitions) > 0 {
				f(name, partitions)
			}
		}
	}
}
