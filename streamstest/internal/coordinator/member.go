package coordinator

import (
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// memberState is where a member is on the way from what it runs to its target.
//
//	stable          runs its part of the assignment of its epoch
//	unrevokedTasks  was told to give up tasks, and has not confirmed that it did; keeps its epoch until then
//	unreleasedTasks has its new epoch, and waits for tasks that others have not given up
//
// stable → unrevokedTasks → unreleasedTasks → stable; any state may be skipped, and every new target starts over.
type memberState int8

const (
	stable memberState = iota
	unrevokedTasks
	unreleasedTasks
)

// Epochs with a meaning of their own.
const (
	joinEpoch        = 0
	leaveEpoch       = -1
	staticLeaveEpoch = -2
)

// Endpoint is where a member answers interactive queries.
type Endpoint struct {
	Host string
	Port uint16
}

// member is one member of a group, which for Kafka Streams is one stream thread. A member's maps are never changed:
// a heartbeat works on a copy, and stores it when it succeeds.
type member struct {
	id                   string
	instanceID, rackID   *string
	clientID, clientHost string
	rebalanceTimeout     time.Duration
	topologyEpoch        int32
	processID            string
	endpoint             *Endpoint
	clientTags           map[string]string

	// epoch is the assignment epoch to which the member has been brought. A request with previousEpoch is accepted if
	// it can be a retry of one whose answer was lost.
	epoch, previousEpoch int32
	state                memberState
	assigned             grant // what it may run, and will learn with its next answer
	pendingRevocation    grant // what it must give up and may still run

	reportsOffsets bool // speaks heartbeat v1, so that it reports how far a warm-up task is

	sessionDeadline   time.Time // when it is fenced unless it is heard of
	rebalanceDeadline time.Time // when it is fenced unless it gives up what it must; zero: not waited for
}

func newMember(id string) *member {
	return &member{id: id, topologyEpoch: -1, rebalanceTimeout: -1}
}

// reconciledTo reports whether the member has nothing left to do for the assignment of the epoch.
func (m *member) reconciledTo(epoch int32) bool { return m.state == stable && m.epoch == epoch }

// update takes over what the request says about the member itself. What it leaves out stays, except that a joining
// member without an endpoint has none.
func (m *member) update(req *kmsg.StreamsGroupHeartbeatRequest, client Client) {
	if req.InstanceID != nil {
		m.instanceID = req.InstanceID
	}
	if req.RackID != nil {
		m.rackID = req.RackID
	}
	if req.RebalanceTimeoutMillis != -1 {
		m.rebalanceTimeout = time.Duration(req.RebalanceTimeoutMillis) * time.Millisecond
	}
	if req.Topology != nil {
		m.topologyEpoch = req.Topology.Epoch
	}
	if req.ProcessID != nil {
		m.processID = *req.ProcessID
	}
	if req.ClientTags != nil {
		tags := make(map[string]string, len(req.ClientTags))
		for _, t := range req.ClientTags {
			tags[t.Key] = t.Value
		}
		m.clientTags = tags
	}
	switch {
	case req.UserEndpoint != nil:
		m.endpoint = &Endpoint{Host: req.UserEndpoint.Host, Port: req.UserEndpoint.Port}
	case req.MemberEpoch == joinEpoch:
		m.endpoint = nil
	}
	m.clientID, m.clientHost = client.ID, client.Host
	m.reportsOffsets = req.Version >= 1
}

// metadataChanged reports whether anything that the member says about itself differs.
func metadataChanged(a, b *member) bool {
	return assignmentInputChanged(a, b) ||
		!equalPtr(a.instanceID, b.instanceID) ||
		a.clientID != b.clientID || a.clientHost != b.clientHost ||
		a.rebalanceTimeout != b.rebalanceTimeout ||
		!equalPtr(a.endpoint, b.endpoint)
}

// assignmentInputChanged reports whether anything differs that can change an assignment.
func assignmentInputChanged(a, b *member) bool {
	return a.topologyEpoch != b.topologyEpoch ||
		!equalPtr(a.rackID, b.rackID) ||
		!maps.Equal(a.clientTags, b.clientTags) ||
		a.processID != b.processID
}

func equalPtr[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
