package simulation

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/odradek-go/odradek/membership"
)

// operate does something to the application or its brokers now and then.
func (s *sim) operate() {
	f := &s.plan.Faults
	actions := []struct {
		weight int
		do     func()
	}{
		{f.Start, s.startOne},
		{f.Leave, s.leaveOne},
		{f.Restart, s.restartOne},
		{f.Crash, s.crashOne},
		{f.Pause, s.pauseOne},
		{f.Move, s.moveCoordinator},
		{f.Cut, s.cutOne},
		{f.Inject, s.injectErrors},
		{f.Reconfigure, s.reconfigure},
		{f.Lookup, s.breakLookups},
		{f.Throttle, s.throttle},
	}
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	s.after(time.Duration(float64(f.Every)*s.rng.ExpFloat64()), func() {
		if s.calm {
			return
		}
		n := s.rng.IntN(total)
		for _, a := range actions {
			if n -= a.weight; n < 0 {
				a.do()
				break
			}
		}
		s.operate()
	})
}

func (s *sim) anySlot() *slot { return s.slots[s.rng.IntN(len(s.slots))] }

// aWhile is from an instant to more than a session.
func (s *sim) aWhile() time.Duration {
	return s.rng.upTo(pick(s.rng, s.plan.Interval, 4*s.plan.Interval, s.plan.SessionTimeout, 2*s.plan.SessionTimeout))
}

func (s *sim) startOne() {
	if l := s.anySlot(); !l.paused {
		l.start()
	}
}

var leaveModes = []membership.LeaveMode{membership.LeaveDefault, membership.LeaveGroup, membership.RemainInGroup}

func (s *sim) leaveOne() {
	l := s.anySlot()
	how := pick(s.rng, leaveModes...)
	if s.rng.chance(0.5) {
		l.stop(how)
		return
	}
	if h := l.threads[s.rng.IntN(len(l.threads))]; h != nil {
		h.stop(how)
	}
}

func (s *sim) restartOne() {
	l := s.anySlot()
	l.stop(pick(s.rng, leaveModes...))
	l.up = true
	s.startWhenEmpty(l)
}

func (s *sim) startWhenEmpty(l *slot) {
	s.after(10*time.Millisecond+s.rng.upTo(s.plan.Interval), func() {
		switch {
		case !l.up:
		case l.empty():
			l.start()
		default:
			s.startWhenEmpty(l)
		}
	})
}

func (s *sim) crashOne() {
	l := s.anySlot()
	l.crash()
	if s.rng.chance(0.5) {
		l.up = true
		s.after(s.aWhile(), func() {
			if l.up {
				l.start()
			}
		})
	}
}

func (s *sim) pauseOne() {
	l := s.anySlot()
	l.pause()
	d := s.aWhile()
	if s.rng.chance(0.1) {
		d = s.plan.RebalanceTimeout + s.rng.upTo(s.plan.SessionTimeout)
	}
	s.after(d, l.wake)
}

func (s *sim) moveCoordinator() {
	s.broker.move()
	s.say("cluster", "node %d becomes the coordinator, and has loaded the group at %v; lookups are old until %v",
		s.broker.node, s.broker.loadedAt, s.broker.staleUntil)
}

func (s *sim) cutOne() {
	l := s.anySlot()
	l.cutUntil, l.cutFast = s.now+s.aWhile(), s.rng.chance(0.5)
	s.say(l.process, "is cut off until %v", l.cutUntil)
}

// errorsBefore are answered without processing the request, fences and uncertainties also after it: a coordinator whose
// log took a change, but not in time, says that it couldn't do what it has done.
var (
	errorsBefore = []*kerr.Error{
		kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.RequestTimedOut,
		kerr.NetworkException, kerr.UnknownServerError, kerr.TopicAuthorizationFailed, kerr.UnknownMemberID, kerr.FencedMemberEpoch,
	}
	fences        = []*kerr.Error{kerr.UnknownMemberID, kerr.FencedMemberEpoch}
	uncertainties = []*kerr.Error{kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.RequestTimedOut, kerr.NetworkException}
)

func (s *sim) injectErrors() {
	f := fault{until: s.now + s.aWhile(), probability: pick(s.rng, 0.1, 0.5, 1), after: s.rng.chance(0.3)}
	switch {
	case !f.after:
		f.code = pick(s.rng, errorsBefore...).Code
	case s.rng.chance(0.5):
		f.code = pick(s.rng, uncertainties...).Code
	default:
		f.code = pick(s.rng, fences...).Code
	}
	s.broker.inject = f
	s.say("cluster", "answers %d until %v, after processing: %v", f.code, f.until, f.after)
}

func (s *sim) reconfigure() {
	set := map[string]string{
		"streams.heartbeat.interval.ms": millis(pick(s.rng, s.plan.Interval, s.plan.OtherInterval)),
		"streams.session.timeout.ms":    millis(s.plan.SessionTimeout + s.rng.upTo(s.plan.SessionTimeout)),
	}
	s.broker.configure(set)
	s.say("cluster", "group config %v", set)
}

func (s *sim) breakLookups() {
	s.broker.lookups = fault{until: s.now + s.aWhile(), probability: pick(s.rng, 0.5, 1), code: kerr.CoordinatorNotAvailable.Code}
	s.say("cluster", "doesn't find the coordinator until %v", s.broker.lookups.until)
}

func (s *sim) throttle() {
	s.broker.throttle = fault{until: s.now + s.aWhile(), probability: 0.3, millis: int32(s.rng.upTo(s.plan.Interval).Milliseconds())}
	s.say("cluster", "throttles until %v", s.broker.throttle.until)
}
