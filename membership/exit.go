package membership

import (
	"fmt"
	"time"
)

// LeaveMode says what a member that leaves tells the coordinator.
type LeaveMode uint8

const (
	// LeaveDefault is RemainInGroup for a static member and LeaveGroup for a
	// dynamic one. After a failure a dynamic member sends nothing, as in Java:
	// its tasks move when its session has expired.
	LeaveDefault LeaveMode = iota
	// LeaveGroup gives the tasks to others at once (epoch −1).
	LeaveGroup
	// RemainInGroup keeps the tasks for a static member that comes back within
	// the session time-out (epoch −2). A dynamic member sends nothing.
	RemainInGroup
)

// reason is why a member sends a leave.
type reason uint8

const (
	stay    reason = iota
	forGood        // Leave
	stalled        // no progress: rejoin when there is some
	renew          // fenced outside a heartbeat: rejoin at once
)

// exit is the member's way out of the group.
type exit struct {
	why      reason
	pending  bool   // the leave is still to be sent
	inFlight uint64 // number of the leave whose answer counts, 0: none
	done     bool   // left for good
	err      error  // why it isn't known that the leave arrived
}

// epochFor returns what to leave with; 0 says that nothing is sent.
func (m *Member) epochFor(mode LeaveMode) int32 {
	static := m.cfg.InstanceID != ""
	switch {
	case mode == LeaveGroup:
		return -1
	case static:
		return -2
	case mode == RemainInGroup, m.failure != nil:
		return 0
	}
	return -1
}

// Leave ends the membership. The tasks must have been committed and closed.
// The request overtakes one that is in flight. When the leave is answered, or
// needn't be sent, Ready says Done. Later calls do nothing.
func (m *Member) Leave(now time.Time, mode LeaveMode) {
	if m.exit.done || m.exit.why == forGood {
		return
	}
	epoch := m.epochFor(mode)
	switch {
	case m.state == Leaving:
		// On its way out for another reason; now it stays outside.
		m.exit.why = forGood
		if epoch == 0 {
			m.to(Unsubscribed)
			m.finish()
			return
		}
		m.epoch = epoch
		return
	case m.state.in(set(Unsubscribed, Fatal)):
		m.finish()
		return
	case m.state.in(set(Fenced, Stale)) || m.state == Joining && !m.introduced:
		m.to(Unsubscribed)
		m.finish()
		return
	}
	m.to(PrepareLeaving)
	if epoch == 0 {
		m.epoch = -1
		m.to(Unsubscribed)
		m.finish()
		return
	}
	m.startLeave(now, epoch, forGood)
}

// AbandonLeave gives up on a leave that can't be sent, or isn't answered, in
// time.
func (m *Member) AbandonLeave(err error) {
	if m.exit.why != forGood || m.exit.done {
		return
	}
	m.exit.err = err
	if m.state == Leaving {
		m.to(Unsubscribed)
	}
	m.finish()
}

// LeaveErr returns why it isn't known that the leave arrived; nil when it was
// answered or needn't be sent.
func (m *Member) LeaveErr() error { return m.exit.err }

func (m *Member) startLeave(now time.Time, epoch int32, why reason) {
	m.epoch = epoch
	m.exit.why, m.exit.pending = why, true
	m.beat.notBefore = time.Time{}
	m.push.drop()
	m.out.Assignment = nil
	m.offered = m.offered[:0]
	m.to(Leaving)
}

func (m *Member) finish() {
	m.exit.why, m.exit.done, m.exit.pending, m.exit.inFlight = forGood, true, false, 0
	m.beat.inFlight = 0
	m.push.drop()
	m.out.Assignment = nil
	m.offered = m.offered[:0]
	m.lostWait = false
}

// leaveGenerated is called when the leave has been handed out.
func (m *Member) leaveGenerated(seq uint64) {
	m.exit.pending = false
	m.beat.inFlight = 0 // whatever is in flight: its answer comes too late
	m.introduced = false
	switch m.exit.why {
	case stalled:
		// The answer doesn't matter: the requests of a connection are handled
		// in order, so a join may follow before it comes.
		m.to(Stale)
		m.loseTasks(ErrNoProgress)
	default:
		m.exit.inFlight = seq
		m.to(Unsubscribed)
	}
}

// leaveAnswered is the end of a leave that was waited for.
func (m *Member) leaveAnswered(now time.Time, code int16, message string) {
	m.exit.inFlight = 0
	act := actFatal
	if code != 0 {
		act = heartbeatVerdict(code, message).act
	}
	if act == actFind {
		m.loseCoordinator(now)
	}
	if m.exit.why == renew {
		m.toJoining(now)
		return
	}
	if code != 0 && (act == actFind || act == actRetry) {
		// The coordinator says that it did nothing with it.
		m.exit.pending = true
		m.beat.notBefore = now.Add(m.beat.retry.next(m.random()))
		return
	}
	if code != 0 && act != actFence { // fenced: out already
		m.exit.err = m.refusal("StreamsGroupHeartbeat", code, message)
	}
	m.finish()
}

// leaveFailed is a leave that was sent and not answered. It isn't sent twice.
func (m *Member) leaveFailed(now time.Time, err error) {
	m.exit.inFlight = 0
	m.loseCoordinator(now)
	if m.exit.why == renew {
		m.toJoining(now)
		return
	}
	m.exit.err = fmt.Errorf("streams group %q: the leave was sent and not answered; "+
		"if it got lost, the tasks move when the session has expired: %w", m.cfg.Group, err)
	m.finish()
}

// checkProgress makes a member leave whose tasks made no progress for the
// rebalance time-out, and lets it rejoin when they do.
func (m *Member) checkProgress(now time.Time) {
	if m.state == Stale && !m.lostWait && m.progressAt.After(m.stalledAt) {
		m.toJoining(now)
		return
	}
	if m.failure != nil || !m.state.in(beating) || now.Before(m.progressAt.Add(m.cfg.RebalanceTimeout)) {
		return
	}
	m.stalledAt = m.progressAt
	if m.state == Joining && !m.introduced {
		m.to(Stale)
		return
	}
	m.to(PrepareLeaving)
	epoch := m.epochFor(LeaveDefault)
	m.startLeave(now, epoch, stalled)
}

// Fence says that a commit, not a heartbeat, has shown that the member's epoch
// is no longer good. All tasks are lost; when they are released, the member
// leaves and rejoins with the same id. It does nothing to a member that has no
// tasks or is on its way out.
func (m *Member) Fence(now time.Time, why error) {
	if !m.state.in(set(Reconciling, Acknowledging, Stable)) || m.failure != nil {
		return
	}
	m.to(PrepareLeaving)
	m.exit.why = renew
	m.loseTasks(why)
	if !m.lostWait {
		m.startLeave(now, m.epochFor(LeaveDefault), renew)
	}
}

// fenced is the coordinator's word that it doesn't know this member or epoch.
func (m *Member) fenced(now time.Time, why error) {
	m.epoch = 0
	m.exit.why, m.exit.pending = stay, false
	m.introduced = false
	m.to(Fenced)
	m.loseTasks(why)
	// Back at once, but not hot if the coordinator keeps on refusing.
	m.beat.notBefore = now.Add(m.fences.nextFree(m.random()))
	if !m.lostWait {
		m.toJoining(now)
	}
}

// LostDone says that the tasks which Ready called lost are released.
func (m *Member) LostDone(now time.Time) {
	if !m.lostWait {
		return
	}
	m.lostWait = false
	switch {
	case m.state == Fenced:
		m.toJoining(now)
	case m.state == PrepareLeaving && m.exit.why == renew:
		m.startLeave(now, m.epochFor(LeaveDefault), renew)
	}
	// A stale member waits for progress; see checkProgress.
}
