package membership

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Ready is what a member wants done. Carry it out in the order of its fields;
// the pointers that are nil, and the zero values, ask for nothing. A second
// call of Member.Ready doesn't repeat what the first one said.
type Ready struct {
	// Transitions are the changes of state since the last Ready. Publish
	// Member.State and Member.Epoch with them.
	Transitions []Transition
	// Warnings are errors that the member survives and the user should hear of.
	Warnings []error
	// Endpoints is the latest map of who owns what.
	Endpoints *Endpoints
	// Readiness is the group's condition, when it has changed.
	Readiness *Readiness
	// Lost is why all tasks are lost: close them without committing, then call
	// Member.LostDone.
	Lost error
	// Assignment is the target to reconcile to. It supersedes earlier ones.
	// Then call Member.Reconciled.
	Assignment *Assignment

	// FindCoordinator, if not 0, asks for the group's coordinator. Answer with
	// Member.CoordinatorAnswered or CoordinatorFailed and this number.
	FindCoordinator uint64
	// Heartbeat goes to Node at once. Answer with Member.HeartbeatAnswered or
	// HeartbeatFailed and HeartbeatSeq. It may be reused once it was answered.
	Heartbeat    *kmsg.StreamsGroupHeartbeatRequest
	HeartbeatSeq uint64
	// Description goes to Node at once. Answer with Member.DescriptionAnswered
	// or DescriptionFailed and DescriptionSeq.
	Description    *kmsg.StreamsGroupTopologyDescriptionUpdateRequest
	DescriptionSeq uint64
	// Inquiry goes to Node at once. Answer with Member.InquiryAnswered or
	// InquiryFailed and InquirySeq.
	Inquiry    *kmsg.StreamsGroupDescribeRequest
	InquirySeq uint64
	// Node is the broker that coordinates the group.
	Node int32

	// Err ends the member: nothing more is sent, unless Member.Leave is called.
	Err error
	// Done: the member has left for good.
	Done bool
	// Wake is when to call Member.Ready again if nothing happens before; zero
	// is never.
	Wake time.Time
}

// Endpoints is a snapshot of the map of the coordinator's endpoint epoch.
type Endpoints struct {
	Epoch      int32
	Partitions []EndpointPartitions // sorted by endpoint, immutable
}

// Readiness says whether the group processes, and the conditions it is in.
type Readiness struct {
	Ready    bool
	Statuses []Status // immutable
}

// Ready returns what is to be done at this time.
func (m *Member) Ready(now time.Time) Ready {
	m.checkProgress(now)
	m.checkStart(now)
	m.send(now)
	out := m.out
	m.out = Ready{}
	out.Node = m.coordinator.node
	out.Done = m.exit.done
	if !out.Done && m.exit.why != forGood {
		out.Err = m.failure
	}
	out.Wake = m.wake(now)
	return out
}

// silent members send nothing, whatever the time.
func (m *Member) silent() bool {
	return m.exit.done || m.failure != nil && m.exit.why != forGood
}

func (m *Member) wantsCoordinator() bool {
	return m.exit.pending || m.state.in(beating)
}

// pushes tells whether a description can go out: the coordinator must know
// the member.
func (m *Member) pushes() bool {
	return m.push.wanted && m.push.inFlight == 0 && m.state.in(set(Reconciling, Acknowledging, Stable))
}

// send puts the requests that are due into out.
func (m *Member) send(now time.Time) {
	b, c := &m.beat, &m.coordinator
	if m.silent() || now.Before(b.throttled) {
		return
	}
	if !c.known {
		if m.wantsCoordinator() && c.asking == 0 && !now.Before(c.due) {
			c.asking = m.nextSeq()
			m.out.FindCoordinator = c.asking
		}
		return
	}
	if at, ok := m.heartbeatAt(now); ok && !now.Before(at) {
		leave := m.exit.pending
		seq := m.nextSeq()
		req := m.heartbeat(now)
		m.out.Heartbeat, m.out.HeartbeatSeq = req, seq
		b.urgent = false
		if leave {
			b.sent = nil
			m.leaveGenerated(seq)
		} else {
			b.inFlight, b.sent, b.sentAt, b.owning = seq, req, now, m.owning
			b.due = now.Add(m.interval)
		}
	}
	if m.pushes() && !now.Before(m.push.due) {
		m.push.inFlight = m.nextSeq()
		m.out.Description, m.out.DescriptionSeq = m.description(), m.push.inFlight
	}
	if m.inquires() && !now.Before(m.inquiry.due) {
		m.inquiry.inFlight = m.nextSeq()
		m.out.Inquiry, m.out.InquirySeq = m.inquiryRequest(), m.inquiry.inFlight
	}
}

// heartbeatAt returns when the next heartbeat goes out to a known coordinator;
// false is: not before something else has happened.
func (m *Member) heartbeatAt(now time.Time) (time.Time, bool) {
	b := &m.beat
	switch {
	case m.exit.pending:
		// A leave doesn't wait for the answer to what is in flight.
		return later(b.notBefore, b.throttled), true
	case !m.state.in(beating) || b.inFlight != 0:
		return time.Time{}, false
	case b.urgent || m.state == Joining:
		return later(later(now, b.notBefore), b.throttled), true
	}
	return later(later(b.due, b.notBefore), b.throttled), true
}

// checkStart gives up on brokers that can't be reached before the first join.
func (m *Member) checkStart(now time.Time) {
	if at := m.startDeadline(); !at.IsZero() && !now.Before(at) {
		m.fail(&UnreachableError{m.cfg.Group, now.Sub(m.startedAt), m.lastErr}, true)
	}
}

func (m *Member) startDeadline() time.Time {
	if m.joined || m.state != Joining || m.lastErr == nil || m.failure != nil || m.cfg.StartTimeout < 0 {
		return time.Time{}
	}
	return m.startedAt.Add(m.cfg.StartTimeout)
}

// wake returns the earliest time at which Ready would say something new by
// itself.
func (m *Member) wake(now time.Time) time.Time {
	var at time.Time
	if m.silent() {
		return at
	}
	b, c := &m.beat, &m.coordinator
	if !c.known {
		if m.wantsCoordinator() && c.asking == 0 {
			at = later(c.due, b.throttled)
		}
	} else {
		if t, ok := m.heartbeatAt(now); ok {
			at = earliest(at, t)
		}
		if m.pushes() {
			at = earliest(at, later(m.push.due, b.throttled))
		}
		if m.inquires() {
			at = earliest(at, later(m.inquiry.due, b.throttled))
		}
	}
	if m.state.in(beating) {
		at = earliest(at, m.progressAt.Add(m.cfg.RebalanceTimeout))
	}
	if t := m.startDeadline(); !t.IsZero() {
		at = earliest(at, t)
	}
	return at
}

// earliest takes a zero a for none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
