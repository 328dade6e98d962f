package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// heartbeat carries one heartbeat through the steps of Coordinator.Heartbeat. Nothing of it reaches the group before
// the last step, so that a heartbeat which fails leaves the group as it was.
type heartbeat struct {
	now     time.Time
	req     *kmsg.StreamsGroupHeartbeatRequest
	cluster Cluster
	topics  Topics
	config  Config
	group   *group
	created bool // the group comes into being with this heartbeat

	before  *member // the member as the group knows it, or a blank one
	after   *member
	retired *member // the former self of a static member that has returned
	status  []Status
	offsets map[string]memberOffsets
	delayed time.Time // end of the initial rebalance delay

	reassign   bool // the group is due for another assignment
	refineOnly bool // … whose target stays the same, only the warm-up tasks change
	epoch      int32

	topology        *topology
	resolved        *topology // with topics in the place of patterns
	configured      *configuredTopology
	fingerprint     string
	validatedEpoch  int32
	target          map[string]Tasks
	assignmentEpoch int32
	assignedAt      time.Time
	refined         map[string]Tasks
}

// Heartbeat answers a StreamsGroupHeartbeat, and returns the internal topics that are to be created. It keeps parts of
// the request; the caller must not change it afterwards.
func (c *Coordinator) Heartbeat(now time.Time, req *kmsg.StreamsGroupHeartbeatRequest, client Client, cluster Cluster) (*kmsg.StreamsGroupHeartbeatResponse, []NewTopic) {
	resp, topics, err := c.heartbeat(now, req, client, cluster)
	if err != nil {
		resp = newHeartbeatResponse(req)
		resp.ErrorCode = err.Code.Code
		resp.ErrorMessage = kmsg.StringPtr(err.Message)
	}
	return resp, topics
}

func newHeartbeatResponse(req *kmsg.StreamsGroupHeartbeatRequest) *kmsg.StreamsGroupHeartbeatResponse {
	resp := req.ResponseKind().(*kmsg.StreamsGroupHeartbeatResponse)
	resp.Status = []kmsg.StreamsGroupHeartbeatResponseStatus{}
	return resp
}

func (c *Coordinator) heartbeat(now time.Time, req *kmsg.StreamsGroupHeartbeatRequest, client Client, cluster Cluster) (*kmsg.StreamsGroupHeartbeatResponse, []NewTopic, *Error) {
	if err := validate(req, c.config.SourceTopicRegex); err != nil {
		return nil, nil, err
	}
	g, created, err := c.groupFor(now, req, cluster)
	if err != nil {
		return nil, nil, err
	}
	if req.MemberEpoch < 0 {
		resp, err := c.leave(g, req)
		return resp, nil, err
	}
	h := &heartbeat{now: now, req: req, cluster: cluster, topics: cluster.Topics, config: c.configOf(req.Group), group: g, created: created}
	if err := h.identify(client); err != nil {
		return nil, nil, err
	}
	if err := h.matchTopology(); err != nil {
		return nil, nil, err
	}
	if err := h.takeOffsets(); err != nil {
		return nil, nil, err
	}
	h.decideEpoch(c)
	h.assign(c)
	h.reconcile()
	resp := h.respond()
	h.commit(c, resp)
	c.askForDescription(h, resp)
	return resp, h.configured.missing, nil
}

// matchTopology compares the member's topology with the group's, and the group's with the topics that exist.
func (h *heartbeat) matchTopology() *Error {
	g := h.group
	h.topology = g.topology
	if h.req.Topology != nil {
		brought := newTopology(h.req.Topology)
		switch {
		case g.topology == nil:
			h.topology = brought
		case brought.epoch < g.topology.epoch: // goes on with what it has
		case !brought.equal(g.topology):
			return errorf(kerr.InvalidRequest, "Topology updates are not supported yet.")
		}
	}
	if g.topology != nil && h.after.topologyEpoch < g.topology.epoch {
		h.status = append(h.status, Status{StatusStaleTopology, fmt.Sprintf(
			"The member's topology epoch %d is behind the group's topology epoch %d.", h.after.topologyEpoch, g.topology.epoch)})
	}
	h.resolved = h.topology.resolve(h.cluster.TopicNames)
	h.fingerprint = fingerprint(h.resolved, h.topics)
	h.configured = g.configured
	if h.fingerprint != g.fingerprint {
		h.reassign = true
	}
	if h.configured == nil || h.fingerprint != g.fingerprint {
		configured, err := configure(h.resolved, h.topics)
		if err != nil {
			return err
		}
		h.configured = configured
	}
	h.validatedEpoch = -1
	if h.configured.ready() {
		h.validatedEpoch = h.topology.epoch
		for _, owned := range [][]kmsg.TaskIDs{h.req.ActiveTasks, h.req.StandbyTasks, h.req.WarmupTasks} {
			if err := validateTasks(h.configured, owned); err != nil {
				return err
			}
		}
	}
	return nil
}

// decideEpoch raises the group epoch if anything calls for another assignment.
func (h *heartbeat) decideEpoch(c *Coordinator) {
	g := h.group
	if h.validatedEpoch != g.validatedEpoch || h.config.assignmentConfig() != g.assignmentConfigs {
		h.reassign = true
	}
	h.epoch = g.epoch
	if !h.reassign && g.state() == StateStable {
		// Warm-up tasks come and go while the target stays.
		// What is in force stays so until an epoch of its own makes all members look at it.
		if refined := h.refine(g.target); !refined[h.after.id].equal(h.after.assigned.tasks()) {
			h.reassign, h.refineOnly, h.refined = true, true, refined
		}
	}
	if h.reassign {
		h.epoch++
		c.log.Info("streams group epoch raised", "group", g.id, "member", h.after.id, "epoch", h.epoch)
	}
	h.delayed = g.delayedUntil
	if len(g.members) == 0 && h.config.InitialRebalanceDelay > 0 && h.delayed.IsZero() {
		h.delayed = h.now.Add(h.config.InitialRebalanceDelay)
	}
}

// reconcile brings the member one step closer to its part of the assignment.
func (h *heartbeat) reconcile() {
	if h.after.reconciledTo(h.assignmentEpoch) {
		return
	}
	if h.group.holders == nil {
		h.group.holders = newHolders(h.group.members)
	}
	r := &reconciler{member: h.after, epoch: h.assignmentEpoch, target: h.refined[h.after.id], holders: h.group.holders}
	if ownedGiven(h.req) == 3 {
		r.owned = &Tasks{
			Active:  setFromWire(h.req.ActiveTasks),
			Standby: setFromWire(h.req.StandbyTasks),
			Warmup:  setFromWire(h.req.WarmupTasks),
		}
	}
	next := r.reconcile()
	if next == h.after {
		return
	}
	moved := next.state != h.after.state || next.epoch != h.after.epoch || next.previousEpoch != h.after.previousEpoch ||
		!next.assigned.equal(h.after.assigned) || !next.pendingRevocation.equal(h.after.pendingRevocation)
	h.after = next
	switch {
	case !moved:
	case next.state == unrevokedTasks:
		h.after.rebalanceDeadline = h.now.Add(next.rebalanceTimeout)
	default:
		h.after.rebalanceDeadline = time.Time{}
	}
}

// respond builds the answer.
func (h *heartbeat) respond() *kmsg.StreamsGroupHeartbeatResponse {
	g, req := h.group, h.req
	resp := newHeartbeatResponse(req)
	resp.MemberID = h.after.id
	resp.MemberEpoch = h.after.epoch
	resp.HeartbeatIntervalMillis = int32(h.config.HeartbeatInterval.Milliseconds())
	resp.TaskOffsetIntervalMillis = int32(h.config.TaskOffsetInterval.Milliseconds())
	resp.AcceptableRecoveryLag = h.config.AcceptableRecoveryLag

	joining := req.MemberEpoch == joinEpoch
	tasksChanged := !h.before.assigned.equal(h.after.assigned)
	if joining || tasksChanged {
		tasks := h.after.assigned.tasks()
		resp.ActiveTasks, resp.StandbyTasks, resp.WarmupTasks = toWire(tasks.Active), toWire(tasks.Standby), toWire(tasks.Warmup)
	}

	if !equalPtr(h.before.endpoint, h.after.endpoint) || tasksChanged && h.after.endpoint != nil {
		g.endpointEpoch++
	}
	if g.endpointEpoch != req.EndpointInformationEpoch {
		resp.PartitionsByUserEndpoint = h.partitionsByUserEndpoint()
	}
	resp.EndpointInformationEpoch = g.endpointEpoch

	if req.ShutdownApplication && g.shutdownBy == "" {
		g.shutdownBy = h.after.id
	}
	if h.configured.problem != nil {
		h.status = append(h.status, *h.configured.problem)
	}
	if g.shutdownBy != "" {
		h.status = append(h.status, g.shutdownStatus())
	}
	if missing := h.missingTags(); len(missing) > 0 && req.Version >= 1 {
		h.status = append(h.status, Status{StatusMissingClientTags, fmt.Sprintf(
			"Missing required client tags for rack-aware standby assignment: [%s]. Configure them via 'client.tag.<tagKey>' in your Streams config.",
			strings.Join(missing, ", "))})
	}
	for _, s := range h.status {
		status := kmsg.NewStreamsGroupHeartbeatResponseStatus()
		status.StatusCode, status.StatusDetail = s.Code, s.Detail
		resp.Status = append(resp.Status, status)
	}
	return resp
}

func (h *heartbeat) missingTags() []string {
	return slices.DeleteFunc(slices.Clone(h.config.RackAwareTags), func(tag string) bool {
		_, has := h.after.clientTags[tag]
		return has
	})
}

// commit makes the heartbeat part of the group.
func (h *heartbeat) commit(c *Coordinator, resp *kmsg.StreamsGroupHeartbeatResponse) {
	g := h.group
	g.topology, g.resolved, g.configured, g.fingerprint = h.topology, h.resolved, h.configured, h.fingerprint
	g.offsets, g.delayedUntil = h.offsets, h.delayed
	if h.reassign {
		g.epoch, g.validatedEpoch, g.assignmentConfigs = h.epoch, h.validatedEpoch, h.config.assignmentConfig()
	}
	g.due(g.delayedUntil)
	h.after.sessionDeadline = h.now.Add(h.config.SessionTimeout)
	if h.retired != nil {
		g.replace(h.retired, h.after)
	} else {
		g.put(h.after)
	}
	if h.assignmentEpoch > g.assignmentEpoch {
		g.target, g.assignmentEpoch, g.assignedAt = maps.Clone(h.target), h.assignmentEpoch, h.assignedAt
	}
	g.refined, g.refinedForEpoch = h.refined, h.assignmentEpoch
	if h.created {
		// In Kafka a group comes into being by the records that its first heartbeat writes, and those have no soft
		// state: endpoint epochs start at 0, offsets are asked for again, a shutdown request is lost.
		g.forgetSoftState()
		resp.EndpointInformationEpoch = 0
		c.groups[g.id] = g
	}
}
