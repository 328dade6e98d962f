package membership

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// inquiry finds out what the coordinator takes for this member's tasks when
// nobody may have been told. A coordinator (4.4 included) says once what a
// member's tasks are, and never again as long as they don't change: if that
// answer is lost, the group looks stable, and tasks that this member was given
// stand idle, or it keeps what it was to give up until it is thrown out. So after
// a heartbeat that got no answer the member asks for the group's description
// (request 89), in which its assignment stands. Java doesn't.
type inquiry struct {
	unsure   bool // an answer may have been lost
	wanted   bool // and the next one didn't say what the tasks are
	inFlight uint64
	due      time.Time
	retry    backoff
}

func (i *inquiry) drop() { *i = inquiry{} }

// mayHaveArrived tells whether a request that failed with err may have been
// handled by the broker: not if there was no connection to send it over.
func mayHaveArrived(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return !ok || op.Op != "dial"
}

// mayHaveBeenHandled tells the codes of a coordinator that may have done what it
// was asked, and only couldn't write it down in time or for sure.
func mayHaveBeenHandled(code int16) bool {
	switch kerr.ErrorForCode(code) {
	case kerr.UnknownServerError, kerr.RequestTimedOut, kerr.NetworkException, kerr.NotCoordinator, kerr.CoordinatorNotAvailable:
		return true
	}
	return false
}

// inquires tells whether an inquiry can go out: nobody has to be asked about the
// tasks of a member that is on its way in or out.
func (m *Member) inquires() bool {
	return m.inquiry.wanted && m.inquiry.inFlight == 0 && m.state.in(set(Reconciling, Acknowledging, Stable))
}

func (m *Member) inquiryRequest() *kmsg.StreamsGroupDescribeRequest {
	req := kmsg.NewPtrStreamsGroupDescribeRequest()
	req.Groups = []string{m.cfg.Group}
	return req
}

// InquiryAnswered is the answer to the inquiry with this number.
func (m *Member) InquiryAnswered(now time.Time, seq uint64, resp *kmsg.StreamsGroupDescribeResponse) {
	m.throttle(now, resp.ThrottleMillis)
	i := &m.inquiry
	if seq == 0 || seq != i.inFlight {
		return
	}
	i.inFlight = 0
	if !m.inquires() {
		return // it is on its way out
	}
	i.due = now.Add(i.retry.next(m.random()))
	for g := range resp.Groups {
		group := &resp.Groups[g]
		if group.Group != m.cfg.Group {
			continue
		}
		switch err := kerr.ErrorForCode(group.ErrorCode); {
		case err == nil:
			m.described(group)
		case errors.Is(err, kerr.NotCoordinator), errors.Is(err, kerr.CoordinatorNotAvailable):
			m.loseCoordinator(now)
		case !kerr.IsRetriable(err):
			m.inquiryRefused(now, m.refusal("StreamsGroupDescribe", group.ErrorCode, text(group.ErrorMessage)))
		}
		return
	}
}

// InquiryFailed says that the inquiry with this number got no answer.
func (m *Member) InquiryFailed(now time.Time, seq uint64, err error) {
	i := &m.inquiry
	if seq == 0 || seq != i.inFlight {
		return
	}
	i.inFlight = 0
	if !m.inquires() {
		return // it is on its way out
	}
	i.due = now.Add(i.retry.next(m.random()))
	if permanent(err) {
		m.inquiryRefused(now, fmt.Errorf("streams group %q: describing the group: %w", m.cfg.Group, err))
	}
}

// described takes the assignment that the description has for this member.
func (m *Member) described(group *kmsg.StreamsGroupDescribeResponseGroup) {
	for i := range group.Members {
		d := &group.Members[i]
		if d.MemberID != m.cfg.MemberID {
			continue
		}
		if d.MemberEpoch != m.epoch {
			return // it is of another time than what was heard last: ask again
		}
		m.inquiry.drop()
		next := Assignment{
			Active:  tasksFromWire(d.Assignment.ActiveTasks),
			Standby: tasksFromWire(d.Assignment.StandbyTasks),
			Warmup:  tasksFromWire(d.Assignment.WarmupTasks),
		}
		if !next.sameTasks(&m.target) {
			m.offer(next)
		}
		return
	}
	m.inquiry.drop() // not a member: the next heartbeat will be fenced
}

// inquiryRefused is for a member that isn't allowed to ask. To join again is the
// other way to be told, and costs the tasks.
func (m *Member) inquiryRefused(now time.Time, err error) {
	m.out.Warnings = append(m.out.Warnings, fmt.Errorf("an answer of the coordinator was lost, so the member joins again: %w", err))
	m.Fence(now, err)
}
