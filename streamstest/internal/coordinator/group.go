package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Group states, as Kafka names them.
const (
	StateEmpty       = "Empty"       // no members
	StateNotReady    = "NotReady"    // topics are missing or wrong
	StateAssigning   = "Assigning"   // the group epoch is ahead of the target assignment's
	StateReconciling = "Reconciling" // members are on the way to the target assignment
	StateStable      = "Stable"
	StateDead        = "Dead"
)

// group is one streams group. Three epochs move it on: the group epoch rises with every change that calls for another
// assignment, the assignment epoch follows when the target assignment is computed, and each member's epoch follows
// when the member has been brought to it.
type group struct {
	id       string
	epoch    int32
	topology *topology // set by the first member, for the group's life
	resolved *topology // with topics in the place of patterns

	members map[string]*member
	static  map[string]string // member id by instance id

	target          map[string]Tasks // by member id
	assignmentEpoch int32
	assignedAt      time.Time // when target was computed; zero: no assignment since the group was empty

	// refined is the target with warm-up tasks where active tasks will be. It stays the same as long as the assignment
	// epoch does: members that have been brought to the epoch are not looked at again.
	refined         map[string]Tasks
	refinedForEpoch int32

	// What the last assignment was computed from.
	fingerprint       string // of the topics
	validatedEpoch    int32  // topology epoch for which all topics were in order; -1: none
	assignmentConfigs assignmentConfig

	description topologyDescription

	// nothingBefore is a time before which nothing falls due, so that a heartbeat needn't look at all members. Zero: not
	// known.
	nothingBefore time.Time
	holders       *holders // of the members; nil: to be made

	// Soft state: a real coordinator keeps this in memory only, and loses it when the group moves to another broker.
	configured    *configuredTopology
	offsets       map[string]memberOffsets // by member id
	endpointEpoch int32
	shutdownBy    string    // the member that asked for the application's shutdown
	delayedUntil  time.Time // end of the initial rebalance delay; zero: none
}

func newGroup(id string) *group {
	g := &group{
		id:              id,
		epoch:           1,
		assignmentEpoch: 1,
		refinedForEpoch: -1,
		validatedEpoch:  -1,
		members:         make(map[string]*member),
		static:          make(map[string]string),
		target:          make(map[string]Tasks),
		description:     newTopologyDescription(),
	}
	g.forgetSoftState()
	return g
}

func (g *group) forgetSoftState() {
	g.configured = nil
	g.offsets = make(map[string]memberOffsets)
	g.endpointEpoch = 0
	g.shutdownBy = ""
}

func (g *group) state() string {
	switch {
	case len(g.members) == 0:
		return StateEmpty
	case g.topology == nil || g.topology.epoch != g.validatedEpoch:
		return StateNotReady
	case g.epoch > g.assignmentEpoch:
		return StateAssigning
	}
	for _, m := range g.members {
		if !m.reconciledTo(g.assignmentEpoch) {
			return StateReconciling
		}
	}
	return StateStable
}

func (g *group) memberIDs() []string { return slices.Sorted(maps.Keys(g.members)) }

func (g *group) staticMember(instanceID string) *member { return g.members[g.static[instanceID]] }

func (g *group) put(m *member) {
	g.holders.change(g.members[m.id], m)
	g.members[m.id] = m
	g.due(m.sessionDeadline)
	g.due(m.rebalanceDeadline)
	if m.instanceID != nil {
		g.static[*m.instanceID] = m.id
	}
}

// due says that something falls due then, if it isn't zero.
func (g *group) due(at time.Time) {
	if !at.IsZero() && at.Before(g.nothingBefore) {
		g.nothingBefore = at
	}
}

func (g *group) remove(m *member) {
	g.holders.change(g.members[m.id], nil)
	delete(g.members, m.id)
	delete(g.target, m.id)
	delete(g.offsets, m.id)
	if m.instanceID != nil && g.static[*m.instanceID] == m.id {
		delete(g.static, *m.instanceID)
	}
	if len(g.members) == 0 {
		g.shutdownBy = ""
	}
}

// replace puts a static member in the place of its former self, with its tasks.
func (g *group) replace(old, m *member) {
	target, ok := g.target[old.id]
	g.remove(old)
	if ok {
		g.target[m.id] = target
	}
	g.put(m)
}

// fence removes a member, after which the others are due for another assignment.
func (g *group) fence(m *member) {
	g.remove(m)
	g.epoch++
	if len(g.members) == 0 {
		g.assignmentEpoch, g.assignedAt = g.epoch, time.Time{}
	}
}

func (g *group) shutdownStatus() Status {
	return Status{StatusShutdownApplication, fmt.Sprintf(
		"Streams group member %s encountered a fatal error and requested a shutdown for the entire application.", g.shutdownBy)}
}

// advance does what has fallen due by now, each thing at its own time and in that order.
func (c *Coordinator) advance(g *group, now time.Time) {
	if now.Before(g.nothingBefore) {
		return
	}
	for {
		at, run := c.nextTimeout(g)
		g.nothingBefore = at
		if run == nil || at.After(now) {
			return
		}
		run()
	}
}

// nextTimeout finds the time-out that is due first.
func (c *Coordinator) nextTimeout(g *group) (at time.Time, run func()) {
	earlier := func(t time.Time, f func()) {
		if !t.IsZero() && (run == nil || t.Before(at)) {
			at, run = t, f
		}
	}
	for _, id := range g.memberIDs() {
		m := g.members[id]
		earlier(m.sessionDeadline, func() {
			c.log.Info("streams member fenced because its session expired", "group", g.id, "member", m.id)
			g.fence(m)
		})
		earlier(m.rebalanceDeadline, func() {
			c.log.Info("streams member fenced because it did not give up its tasks in time", "group", g.id, "member", m.id, "epoch", m.epoch)
			g.fence(m)
		})
	}
	earlier(g.delayedUntil, func() {
		at := g.delayedUntil
		g.delayedUntil = time.Time{}
		c.assignAfterDelay(g, at)
	})
	return at, run
}
