package simulation

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

const nodes = 3

// broker is the cluster: a coordinator on one of its nodes, and topics.
type broker struct {
	s           *sim
	coordinator *coordinator.Coordinator
	node        int32
	topics      map[string]coordinator.Topic
	creating    map[string]bool
	cluster     coordinator.Cluster

	loadedAt   time.Duration // until then the coordinator loads the group
	staleUntil time.Duration // until then lookups name the node before
	staleNode  int32
	lookups    fault // of coordinators
	inject     fault // into answers of the coordinator
	throttle   fault
}

// fault is an error code that is answered for a while, with a probability.
type fault struct {
	until       time.Duration
	probability float64
	code        int16
	after       bool // the request has been processed before
	millis      int32
}

func (s *sim) hits(f *fault) bool { return s.now < f.until && s.rng.chance(f.probability) }

func newBroker(s *sim) *broker {
	p := s.plan
	members := 0
	for _, slot := range p.Slots {
		members += slot.Threads
	}
	b := &broker{
		s: s,
		coordinator: coordinator.New(coordinator.Config{
			SessionTimeout: p.SessionTimeout, HeartbeatInterval: p.Interval, InitialRebalanceDelay: p.InitialDelay,
			AssignmentInterval: p.AssignmentInterval, TaskOffsetInterval: p.OffsetInterval,
			NumStandbyReplicas: p.Standbys, NumWarmupReplicas: p.Warmups, AcceptableRecoveryLag: acceptableLag,
			// Crashed members count until their sessions have expired.
			MaxSize: 1000 + 2*members, TopologyDescriptions: true,
		}, s.log),
		topics:   map[string]coordinator.Topic{"in": {ID: [16]byte{1}, Partitions: int32(p.Stateful)}},
		creating: make(map[string]bool),
	}
	if !p.Repartition {
		b.topics["other"] = coordinator.Topic{ID: [16]byte{2}, Partitions: int32(p.Stateless)}
	}
	b.cluster = coordinator.Cluster{
		Topics:     func(name string) (coordinator.Topic, bool) { t, ok := b.topics[name]; return t, ok },
		OtherGroup: func(string) coordinator.OtherGroup { return coordinator.NoOtherGroup },
	}
	return b
}

// topology has a subtopology with a store, and one without.
func topology(repartition bool) *kmsg.StreamsGroupHeartbeatRequestTopology {
	stateful := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
	stateful.SubtopologyID, stateful.SourceTopics = "0", []string{"in"}
	stateful.StateChangelogTopics = []kmsg.TopicInfo{{Topic: "app-store-changelog"}}
	stateless := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
	stateless.SubtopologyID = "1"
	if repartition {
		stateful.RepartitionSinkTopics = []string{"app-repartition"}
		stateless.RepartitionSourceTopics = []kmsg.TopicInfo{{Topic: "app-repartition"}}
	} else {
		stateless.SourceTopics = []string{"other"}
	}
	t := kmsg.NewStreamsGroupHeartbeatRequestTopology()
	t.Subtopologies = []kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{stateful, stateless}
	return &t
}

// tasks is how many the topology has.
func (p *Schedule) tasks() int {
	if p.Repartition {
		return 2 * p.Stateful
	}
	return p.Stateful + p.Stateless
}

// heartbeat is a heartbeat that has arrived at a node.
func (b *broker) heartbeat(node int32, from string, req *kmsg.StreamsGroupHeartbeatRequest) *kmsg.StreamsGroupHeartbeatResponse {
	refuse := func(code int16) *kmsg.StreamsGroupHeartbeatResponse {
		resp := req.ResponseKind().(*kmsg.StreamsGroupHeartbeatResponse)
		resp.ErrorCode = code
		return resp
	}
	code, injected, process := b.verdict(node)
	var resp *kmsg.StreamsGroupHeartbeatResponse
	if process {
		resp = b.process(from, req)
	}
	if injected {
		resp = refuse(code)
	}
	if b.s.hits(&b.throttle) {
		resp.ThrottleMillis = b.throttle.millis
	}
	return resp
}

func (b *broker) process(from string, req *kmsg.StreamsGroupHeartbeatRequest) *kmsg.StreamsGroupHeartbeatResponse {
	resp, missing := b.coordinator.Heartbeat(b.s.time(), req, coordinator.Client{ID: from, Host: from}, b.cluster)
	for _, m := range missing {
		b.create(m)
	}
	if resp.ErrorCode == kerr.InvalidRequest.Code {
		b.s.fail("%s sent an invalid request: %s: %+v", from, *resp.ErrorMessage, req)
	}
	return resp
}

// verdict says whether a request is processed, and whether its answer is an error that the coordinator doesn't make.
func (b *broker) verdict(node int32) (code int16, injected, process bool) {
	switch {
	case node != b.node:
		return kerr.NotCoordinator.Code, true, false
	case b.s.now < b.loadedAt:
		return kerr.CoordinatorLoadInProgress.Code, true, false
	case b.s.hits(&b.inject):
		return b.inject.code, true, b.inject.after
	}
	return 0, false, true
}

func (b *broker) create(t coordinator.NewTopic) {
	if b.creating[t.Name] {
		return
	}
	b.creating[t.Name] = true
	b.s.after(b.s.plan.TopicDelay, func() {
		b.topics[t.Name] = coordinator.Topic{ID: [16]byte{3, byte(len(t.Name))}, Partitions: t.Partitions}
		b.s.say("topics", "%s now exists", t.Name)
	})
}

func (b *broker) describe(node int32) *kmsg.StreamsGroupDescribeResponse {
	resp := kmsg.NewPtrStreamsGroupDescribeResponse()
	described := kmsg.NewStreamsGroupDescribeResponseGroup()
	described.Group = group
	code, injected, process := b.verdict(node)
	if code == kerr.UnknownMemberID.Code || code == kerr.FencedMemberEpoch.Code {
		injected, process = false, true // who describes a group needn't be a member
	}
	if process {
		described = b.coordinator.Describe(b.s.time(), group, false)
	}
	if injected {
		described = kmsg.NewStreamsGroupDescribeResponseGroup()
		described.Group, described.ErrorCode = group, code
	}
	resp.Groups = append(resp.Groups, described)
	return resp
}

func (b *broker) updateDescription(node int32, req *kmsg.StreamsGroupTopologyDescriptionUpdateRequest) *kmsg.StreamsGroupTopologyDescriptionUpdateResponse {
	code, injected, process := b.verdict(node)
	resp := req.ResponseKind().(*kmsg.StreamsGroupTopologyDescriptionUpdateResponse)
	if process {
		resp = b.coordinator.UpdateTopologyDescription(b.s.time(), req)
	}
	if injected {
		resp = req.ResponseKind().(*kmsg.StreamsGroupTopologyDescriptionUpdateResponse)
		resp.ErrorCode = code
	}
	return resp
}

// lookup answers a FindCoordinator.
func (b *broker) lookup() (node int32, code int16) {
	switch {
	case b.s.hits(&b.lookups):
		return -1, b.lookups.code
	case b.s.now < b.staleUntil:
		return b.staleNode, 0
	}
	return b.node, 0
}

// move makes another node the coordinator.
func (b *broker) move() {
	b.staleNode, b.node = b.node, (b.node+1+int32(b.s.rng.IntN(nodes-1)))%nodes
	b.staleUntil = b.s.now + b.s.rng.upTo(b.s.plan.Interval)
	b.loadedAt = b.s.now + b.s.rng.upTo(2*b.s.plan.Interval)
	b.coordinator.Moved(b.s.time(), group)
}

func (b *broker) configure(set map[string]string) {
	if err := b.coordinator.AlterGroupConfigs(group, set, nil, false); err != nil {
		b.s.fail("group config %v: %v", set, err)
	}
}

func millis(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }
