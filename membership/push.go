package membership

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// push is the state of sending the topology's description (request 93). Only
// the coordinator's flag starts it, and processing never waits for it.
type push struct {
	wanted   bool
	inFlight uint64
	due      time.Time
	retry    backoff
}

// want is the flag. While a push is under way it says nothing new.
func (p *push) want(now time.Time) {
	if !p.wanted {
		*p = push{wanted: true, due: now}
	}
}

func (p *push) drop() { *p = push{} }

func (m *Member) description() *kmsg.StreamsGroupTopologyDescriptionUpdateRequest {
	req := kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()
	req.Group = m.cfg.Group
	req.MemberID = m.cfg.MemberID
	req.TopologyEpoch = m.cfg.Topology.Epoch
	req.TopologyDescription = *m.cfg.Description
	return req
}

// DescriptionAnswered is the answer to the description with this number.
func (m *Member) DescriptionAnswered(now time.Time, seq uint64, resp *kmsg.StreamsGroupTopologyDescriptionUpdateResponse) {
	m.throttle(now, resp.ThrottleMillis)
	p := &m.push
	if seq == 0 || seq != p.inFlight {
		return
	}
	p.inFlight = 0
	switch resp.ErrorCode {
	case kerr.CoordinatorLoadInProgress.Code, kerr.RequestTimedOut.Code:
	case kerr.NotCoordinator.Code, kerr.CoordinatorNotAvailable.Code, kerr.NetworkException.Code:
		m.loseCoordinator(now)
	case 0, kerr.UnknownMemberID.Code:
		// Unknown: the next heartbeat is fenced, and the flag comes again.
		p.drop()
		return
	default:
		// The broker backs off on its own and asks again.
		p.drop()
		m.out.Warnings = append(m.out.Warnings,
			m.refusal("StreamsGroupTopologyDescriptionUpdate", resp.ErrorCode, text(resp.ErrorMessage)))
		return
	}
	p.due = now.Add(p.retry.next(m.random()))
}

// DescriptionFailed says that the description with this number got no answer.
func (m *Member) DescriptionFailed(now time.Time, seq uint64, err error) {
	p := &m.push
	if seq == 0 || seq != p.inFlight {
		return
	}
	p.inFlight = 0
	if permanent(err) {
		p.drop()
		m.out.Warnings = append(m.out.Warnings, fmt.Errorf("streams group %q: the topology's description wasn't pushed: %w", m.cfg.Group, err))
		return
	}
	p.due = now.Add(p.retry.next(m.random()))
	m.loseCoordinator(now)
}
