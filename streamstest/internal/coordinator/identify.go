package coordinator

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupFor finds the group, or creates it for a first member.
func (c *Coordinator) groupFor(now time.Time, req *kmsg.StreamsGroupHeartbeatRequest, cluster Cluster) (g *group, created bool, err *Error) {
	if g := c.at(now, req.Group); g != nil {
		return g, false, nil
	}
	other := cluster.OtherGroup(req.Group)
	switch {
	case other == OtherGroupInUse || other == EmptyClassic && req.MemberEpoch != joinEpoch:
		return nil, false, errorf(kerr.GroupIDNotFound, "Group %s is not a streams group.", req.Group)
	case req.MemberEpoch < 0:
		return nil, false, errorf(kerr.GroupIDNotFound, "Group %s not found.", req.Group)
	case req.MemberEpoch != joinEpoch:
		return nil, false, errorf(kerr.GroupIDNotFound, "Streams group %s not found.", req.Group)
	}
	return newGroup(req.Group), true, nil
}

// identify finds or makes the member, checks its epoch, and takes over what it says about itself.
func (h *heartbeat) identify(client Client) *Error {
	g, req := h.group, h.req
	joining := req.MemberEpoch == joinEpoch
	var known *member
	if req.InstanceID != nil {
		known = g.staticMember(*req.InstanceID)
	} else {
		known = g.members[req.MemberID]
	}
	if joining && (req.InstanceID == nil || known == nil) &&
		len(g.members) >= h.config.MaxSize && g.members[req.MemberID] == nil {
		return errorf(kerr.GroupMaxSizeReached, "The streams group has reached its maximum capacity of %d members.", h.config.MaxSize)
	}
	var err *Error
	if req.InstanceID != nil {
		known, err = h.identifyStatic(known)
	} else if known == nil && !joining {
		err = errorf(kerr.UnknownMemberID, "Member %s is not a member of group %s.", req.MemberID, g.id)
	}
	if err != nil {
		return err
	}
	h.before = known
	if known == nil {
		if h.before = g.members[req.MemberID]; h.before == nil {
			h.before = newMember(req.MemberID)
		}
	}
	if err := checkEpoch(h.before, req); err != nil {
		return err
	}
	after := *h.before
	after.update(req, client)
	h.after = &after
	if req.InstanceID == nil {
		h.reassign = metadataChanged(h.before, h.after)
	} else {
		h.reassign = assignmentInputChanged(h.before, h.after)
	}
	return nil
}

// identifyStatic finds a member by its instance id. A returning one takes over from its former self, which must have
// left for the time being; in between, nobody else may use the instance id.
func (h *heartbeat) identifyStatic(known *member) (*member, *Error) {
	req := h.req
	joining := req.MemberEpoch == joinEpoch
	switch {
	case known == nil && joining:
		return nil, nil
	case known == nil:
		return nil, errorf(kerr.UnknownMemberID, "Instance id %s is unknown.", *req.InstanceID)
	case joining && known.epoch != staticLeaveEpoch:
		return nil, errorf(kerr.UnreleasedInstanceID, "Static member %s with instance id %s cannot join the group because the instance id is owned by %s member.", req.MemberID, *req.InstanceID, known.id)
	case joining:
		back := *known
		back.id, back.epoch, back.previousEpoch = req.MemberID, joinEpoch, joinEpoch
		h.retired = known
		return &back, nil
	case known.id != req.MemberID:
		return nil, errorf(kerr.FencedInstanceID, "Static member %s with instance id %s was fenced by member %s.", req.MemberID, *req.InstanceID, known.id)
	}
	return known, nil
}

// checkEpoch fences a member that is not at the epoch to which it was brought. One that is at the epoch before may
// have missed the answer, and is let in if it owns nothing that it should not.
func checkEpoch(m *member, req *kmsg.StreamsGroupHeartbeatRequest) *Error {
	const abandon = "The member must abandon all its partitions and rejoin."
	switch {
	case req.MemberEpoch == joinEpoch || req.MemberEpoch == m.epoch:
		return nil
	case req.MemberEpoch > m.epoch:
		return errorf(kerr.FencedMemberEpoch, "The streams group member has a greater member epoch (%d) than the one known by the group coordinator (%d). %s", req.MemberEpoch, m.epoch, abandon)
	case req.MemberEpoch == m.previousEpoch && ownsOnlyAssigned(m, req):
		return nil
	}
	return errorf(kerr.FencedMemberEpoch, "The streams group member has a smaller member epoch (%d) than the one known by the group coordinator (%d). %s", req.MemberEpoch, m.epoch, abandon)
}

func ownsOnlyAssigned(m *member, req *kmsg.StreamsGroupHeartbeatRequest) bool {
	assigned := m.assigned.tasks()
	within := func(owned []kmsg.TaskIDs, assigned TaskSet) bool {
		if owned == nil {
			return false
		}
		for t := range setFromWire(owned) {
			if !assigned.Has(t) {
				return false
			}
		}
		return true
	}
	return within(req.ActiveTasks, assigned.Active) &&
		within(req.StandbyTasks, assigned.Standby) &&
		within(req.WarmupTasks, assigned.Warmup)
}

// leave takes a member out of the group: for good, or for a while if it is a static one.
func (c *Coordinator) leave(g *group, req *kmsg.StreamsGroupHeartbeatRequest) (*kmsg.StreamsGroupHeartbeatResponse, *Error) {
	if req.ShutdownApplication && g.shutdownBy == "" {
		g.shutdownBy = req.MemberID
	}
	m := g.members[req.MemberID]
	if req.InstanceID != nil {
		m = g.staticMember(*req.InstanceID)
		if m == nil {
			return nil, errorf(kerr.UnknownMemberID, "Instance id %s is unknown.", *req.InstanceID)
		}
		if m.id != req.MemberID {
			return nil, errorf(kerr.FencedInstanceID, "Static member %s with instance id %s was fenced by member %s.", req.MemberID, *req.InstanceID, m.id)
		}
	} else if m == nil {
		return nil, errorf(kerr.UnknownMemberID, "Member %s is not a member of group %s.", req.MemberID, g.id)
	}
	resp := newHeartbeatResponse(req)
	resp.MemberID, resp.MemberEpoch = req.MemberID, req.MemberEpoch
	if req.InstanceID == nil || req.MemberEpoch != staticLeaveEpoch {
		g.fence(m)
		return resp, nil
	}
	away := *m
	away.epoch = staticLeaveEpoch
	away.pendingRevocation, away.rebalanceDeadline = grant{}, time.Time{}
	away.assigned.active = make(map[TaskID]int32, len(m.assigned.active))
	for t := range m.assigned.active {
		away.assigned.active[t] = 0
	}
	g.put(&away)
	return resp, nil
}
