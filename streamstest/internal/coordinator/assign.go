package coordinator

import (
	"maps"
	"time"
)

const delayedByInitialRebalance = "Assignment delayed due to the configured initial rebalance delay."

// assign computes the target assignment if the group epoch is ahead of it, and what of it is in force now.
func (h *heartbeat) assign(c *Coordinator) {
	g := h.group
	h.target, h.assignmentEpoch, h.assignedAt = h.currentTarget(), g.assignmentEpoch, g.assignedAt
	switch {
	case !h.delayed.IsZero():
		h.status = append(h.status, Status{StatusAssignmentDelayed, delayedByInitialRebalance})
		h.target = nil
	case g.assignmentEpoch >= h.epoch:
	case h.refineOnly && g.assignmentEpoch >= g.epoch:
		h.assignmentEpoch = h.epoch
	case tooSoon(g, h.config, h.now):
		h.status = append(h.status, Status{StatusAssignmentDelayed, "Assignment delayed due to the configured assignment interval."})
	default:
		members := maps.Clone(g.members)
		if h.retired != nil {
			delete(members, h.retired.id)
		}
		members[h.after.id] = h.after
		h.target = assignTasks(members, h.offsets, h.configured, h.config.NumStandbyReplicas)
		h.assignmentEpoch, h.assignedAt = h.epoch, h.now
		c.log.Info("streams target assignment computed", "group", g.id, "epoch", h.epoch, "members", len(members))
	}
	switch {
	case h.refined != nil:
	case g.refined != nil && g.refinedForEpoch == h.assignmentEpoch:
		h.refined = h.relabel(g.refined)
	default:
		h.refined = h.refine(h.target)
	}
}

// currentTarget is the group's target, with a returning static member in the place of its former self.
func (h *heartbeat) currentTarget() map[string]Tasks { return h.relabel(h.group.target) }

func (h *heartbeat) relabel(target map[string]Tasks) map[string]Tasks {
	if h.retired == nil {
		return target
	}
	tasks, ok := target[h.retired.id]
	if !ok {
		return target
	}
	target = maps.Clone(target)
	delete(target, h.retired.id)
	target[h.after.id] = tasks
	return target
}

// tooSoon reports whether the last assignment is more recent than the assignment interval allows. The first one of a
// group that had no members is never too soon.
func tooSoon(g *group, config Config, now time.Time) bool {
	return !g.assignedAt.IsZero() && now.Before(g.assignedAt.Add(config.AssignmentInterval))
}

// assignAfterDelay computes the first assignment when the initial rebalance delay has passed. Members learn of it with
// their next heartbeats.
func (c *Coordinator) assignAfterDelay(g *group, at time.Time) {
	if len(g.members) == 0 || g.configured == nil || g.epoch <= g.assignmentEpoch {
		return
	}
	config := c.configOf(g.id)
	if tooSoon(g, config, at) {
		return
	}
	g.target = assignTasks(g.members, g.offsets, g.configured, g.assignmentConfigs.standbys)
	g.assignmentEpoch, g.assignedAt = g.epoch, at
	c.log.Info("streams target assignment computed after the initial rebalance delay", "group", g.id, "epoch", g.epoch, "members", len(g.members))
}
