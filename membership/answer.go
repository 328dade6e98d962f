package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// CoordinatorAnswered is the answer to the lookup with this number.
func (m *Member) CoordinatorAnswered(now time.Time, seq uint64, node int32, code int16, message string) {
	c := &m.coordinator
	if seq == 0 || seq != c.asking {
		return
	}
	c.asking = 0
	if code == 0 {
		if c.node != node && c.node != -1 {
			m.endpointEpoch = -1 // another broker counts its own epochs
		}
		c.known, c.node = true, node
		return
	}
	m.lastErr = nil // a broker answered
	c.due = now.Add(c.retry.next(m.random()))
	if kerr.IsRetriable(kerr.ErrorForCode(code)) {
		return
	}
	m.fail(m.refusal("FindCoordinator", code, message), true)
}

// CoordinatorFailed says that the lookup with this number got no answer.
func (m *Member) CoordinatorFailed(now time.Time, seq uint64, err error) {
	c := &m.coordinator
	if seq == 0 || seq != c.asking {
		return
	}
	c.asking = 0
	c.due = now.Add(c.retry.next(m.random()))
	m.transportFailed(err)
}

// transportFailed remembers why brokers can't be reached. It ends the member
// if waiting can't help.
func (m *Member) transportFailed(err error) {
	m.lastErr = err
	if permanent(err) {
		m.fail(fmt.Errorf("streams group %q: %w", m.cfg.Group, err), true)
	}
}

// permanent tells the failures of the transport that retrying doesn't cure:
// brokers that are too old, refused credentials.
func permanent(err error) bool {
	if errors.Is(err, ErrUnsupported) || errors.Is(err, errClientClosed) {
		return true
	}
	ke, ok := errors.AsType[*kerr.Error](err)
	return ok && !ke.Retriable
}

// HeartbeatFailed says that the heartbeat with this number got no answer: the
// connection was lost, or the time was out.
func (m *Member) HeartbeatFailed(now time.Time, seq uint64, err error) {
	switch {
	case seq == 0:
	case seq == m.exit.inFlight:
		m.leaveFailed(now, err)
	case seq == m.beat.inFlight:
		m.beat.inFlight = 0
		m.inquiry.unsure = m.inquiry.unsure || mayHaveArrived(err)
		m.forget()
		m.loseCoordinator(now)
		m.beat.notBefore = now.Add(m.beat.retry.next(m.random()))
		m.beat.urgent = true
		m.transportFailed(err)
	}
}

// HeartbeatAnswered is the answer to the heartbeat with this number. resp is
// not kept.
func (m *Member) HeartbeatAnswered(now time.Time, seq uint64, resp *kmsg.StreamsGroupHeartbeatResponse) {
	m.throttle(now, resp.ThrottleMillis)
	switch {
	case seq == 0:
	case seq == m.exit.inFlight:
		m.leaveAnswered(now, resp.ErrorCode, text(resp.ErrorMessage))
	case seq == m.beat.inFlight:
		m.beat.inFlight = 0
		m.beat.spare, m.beat.sent = m.beat.sent, nil
		if m.version == 0 && resp.Version > 0 && len(m.current.Warmup) > 0 {
			m.listsSent = false // version 0 was told of no warm-up tasks
		}
		m.version = resp.Version
		m.lastErr = nil
		switch {
		case m.state == Leaving || m.failure != nil:
		case resp.ErrorCode != 0:
			m.refused(now, resp.ErrorCode, text(resp.ErrorMessage))
		default:
			m.accepted(now, resp)
		}
	}
}

// throttle holds back all requests, as a quota asks (KIP-219).
func (m *Member) throttle(now time.Time, millis int32) {
	if millis > 0 {
		m.beat.throttled = later(m.beat.throttled, now.Add(time.Duration(millis)*time.Millisecond))
	}
}

// refused handles an error code.
func (m *Member) refused(now time.Time, code int16, message string) {
	m.forget()
	b := &m.beat
	b.urgent = true // what wasn't told must be told
	m.inquiry.unsure = m.inquiry.unsure || mayHaveBeenHandled(code)
	v := heartbeatVerdict(code, message)
	switch v.act {
	case actRetry:
		b.notBefore = now.Add(b.retry.next(m.random()))
	case actPatience:
		err := m.refusal("StreamsGroupHeartbeat", code, message)
		if m.brokenSince.IsZero() {
			m.brokenSince = now
		} else if now.Sub(m.brokenSince) >= serverErrorPatience {
			m.fail(err, true)
			return
		}
		b.notBefore = now.Add(b.retry.next(m.random()))
		m.surface(err, code)
	case actFind:
		m.loseCoordinator(now)
	case actFence:
		m.fenced(now, m.refusal("StreamsGroupHeartbeat", code, message))
	case actSurface:
		// Retried no faster than heartbeats, since only an operator can help.
		b.notBefore = now.Add(max(m.interval, b.retry.next(m.random())))
		m.surface(m.refusal("StreamsGroupHeartbeat", code, message), code)
	case actFatal:
		err := m.refusal("StreamsGroupHeartbeat", code, message)
		if code == kerr.UnreleasedInstanceID.Code && m.state == Joining && m.waitForInstanceID(now) {
			b.notBefore = now.Add(backoffMax)
			m.surface(err, code)
			return
		}
		m.fail(err, true)
	}
}

// waitForInstanceID tells whether there is time left to wait until the
// session of the instance id's former member has expired.
func (m *Member) waitForInstanceID(now time.Time) bool {
	if m.cfg.InstanceIDWait == 0 {
		return false
	}
	if m.instanceWaitUntil.IsZero() {
		m.instanceWaitUntil = now.Add(m.cfg.InstanceIDWait)
	}
	return now.Before(m.instanceWaitUntil)
}

// surface tells the user of an error that the member survives, once.
func (m *Member) surface(err error, code int16) {
	if m.surfaced != code {
		m.surfaced = code
		m.out.Warnings = append(m.out.Warnings, err)
	}
}

func (m *Member) refusal(request string, code int16, message string) error {
	e := &CoordinatorError{
		Group: m.cfg.Group, MemberID: m.cfg.MemberID, Request: request,
		Code: errorForCode(code), Message: message,
	}
	if request != "StreamsGroupTopologyDescriptionUpdate" {
		v := heartbeatVerdict(code, message)
		e.Remedy, e.kind = v.remedy, v.kind
		if code == kerr.UnknownServerError.Code && m.cfg.Endpoint != nil {
			e.Remedy += ": check that these exist: " + m.sourceTopics()
		}
	}
	return e
}

// accepted handles an answer without an error.
func (m *Member) accepted(now time.Time, resp *kmsg.StreamsGroupHeartbeatResponse) {
	m.beat.retry.reset()
	m.fences.reset()
	m.coordinator.retry.reset()
	m.joined = true
	m.surfaced = 0
	m.instanceWaitUntil, m.brokenSince = time.Time{}, time.Time{}

	if ms := resp.HeartbeatIntervalMillis; ms > 0 {
		m.interval = time.Duration(ms) * time.Millisecond
		m.beat.due = m.beat.sentAt.Add(m.interval)
	}
	if ms := resp.TaskOffsetIntervalMillis; ms >= 0 {
		m.offsetInterval = time.Duration(ms) * time.Millisecond
	}
	m.recoveryLag = resp.AcceptableRecoveryLag
	m.endpointEpoch = resp.EndpointInformationEpoch
	if resp.PartitionsByUserEndpoint != nil {
		m.out.Endpoints = &Endpoints{resp.EndpointInformationEpoch, endpointsFromWire(resp.PartitionsByUserEndpoint)}
	}
	if resp.TopologyDescriptionRequired && m.cfg.Description != nil {
		m.push.want(now)
	}
	if resp.MemberEpoch <= 0 {
		// An answer to something else than this member's question.
		m.fail(&AnswerError{m.cfg.Group, fmt.Sprintf("member epoch %d for a member", resp.MemberEpoch)}, true)
		return
	}
	m.epoch = resp.MemberEpoch
	m.takeStatuses(now, resp.Status)
	if m.failure == nil {
		m.takeTasks(now, resp)
		m.confirm()
		m.hurryWarmups()
	}
}

// takeStatuses takes the group's conditions. Nil leaves the last ones.
func (m *Member) takeStatuses(now time.Time, in []kmsg.StreamsGroupHeartbeatResponseStatus) {
	changed := in != nil && !sameStatuses(m.statuses, in)
	if changed {
		m.statuses = statusesFromWire(in)
		m.ready = groupReady(m.statuses)
	}
	if !m.readyTold && len(m.statuses) == 0 {
		m.ready = true
	}
	if changed || !m.readyTold {
		m.readyTold = true
		m.out.Readiness = &Readiness{m.ready, m.statuses}
	}
	if len(m.statuses) == 0 {
		m.missingSince = time.Time{}
		return
	}
	if _, ok := findStatus(m.statuses, StatusShutdownApplication); ok {
		m.fail(fmt.Errorf("streams group %q: %w", m.cfg.Group, ErrShutdownRequested), false)
		return
	}
	if s, ok := findStatus(m.statuses, StatusIncorrectlyPartitionedTopics); ok {
		m.fail(&IncorrectlyPartitionedTopicsError{m.cfg.Group, s.Detail}, false)
		return
	}
	s, ok := findStatus(m.statuses, StatusMissingSourceTopics)
	switch {
	case !ok:
		m.missingSince = time.Time{}
	case m.missingSince.IsZero():
		m.missingSince = now
	case now.Sub(m.missingSince) >= 2*m.interval:
		// Only an answer says that they are missing still, so only an answer
		// can end it.
		m.fail(&MissingSourceTopicsError{m.cfg.Group, s.Detail, now.Sub(m.missingSince)}, false)
	}
}

// takeTasks takes the target, and starts to reconcile if it is news.
func (m *Member) takeTasks(now time.Time, resp *kmsg.StreamsGroupHeartbeatResponse) {
	nils := 0
	for _, null := range [...]bool{resp.ActiveTasks == nil, resp.StandbyTasks == nil, resp.WarmupTasks == nil} {
		if null {
			nils++
		}
	}
	if nils == 1 || nils == 2 {
		m.fail(&AnswerError{m.cfg.Group, "some of the task lists are null, and some are not"}, true)
		return
	}
	if m.state == PrepareLeaving {
		return
	}
	if nils == 3 {
		if m.inquiry.unsure && !m.inquiry.wanted {
			m.inquiry.wanted, m.inquiry.due = true, now
		}
		if !m.targeted || m.ready != m.targetReady {
			m.offer(m.target)
		}
		return
	}
	unsure := m.inquiry.unsure
	m.inquiry.drop()
	next := Assignment{
		Active:  tasksFromWire(resp.ActiveTasks),
		Standby: tasksFromWire(resp.StandbyTasks),
		Warmup:  tasksFromWire(resp.WarmupTasks),
	}
	if !m.targeted || m.ready != m.targetReady || unsure || !next.sameTasks(&m.target) {
		m.offer(next)
	}
}

// offer makes a the target. Becoming ready, or not, is an assignment of its own
// also with the same tasks, and so is the first one after a join, also if it is
// empty.
func (m *Member) offer(a Assignment) {
	if !covers(a.Active, m.current.Active) {
		m.confirmedAt = time.Time{} // some are to be given up, so nothing is processed until they are
	}
	m.localEpoch++
	a.LocalEpoch = m.localEpoch
	m.target, m.targeted, m.targetReady = a, true, m.ready
	m.offered = append(m.offered, a)
	m.out.Assignment = &a
	m.to(Reconciling)
}

// sourceTopics lists the topology's, for an error's text.
func (m *Member) sourceTopics() string {
	var ts []string
	for i := range m.cfg.Topology.Subtopologies {
		ts = append(ts, m.cfg.Topology.Subtopologies[i].SourceTopics...)
	}
	slices.Sort(ts)
	return strings.Join(slices.Compact(ts), ", ")
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
