package simulation

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/membership"
)

// host is a stream thread: a member, and the side that processes its tasks.
type host struct {
	s        *sim
	slot     *slot
	thread   int
	id       string
	instance string // "": dynamic
	m        *membership.Member
	gone     bool // left, failed or crashed: nothing of it runs

	conn      *conn
	wakeAt    time.Duration // of the planned wake, 0: none
	refusedBy int16         // the last code that a heartbeat was answered with, which can be what ended the member
	reconciler
	reporter
	pace
}

func newHost(l *slot, thread int) *host {
	s := l.s
	s.born++
	h := &host{s: s, slot: l, thread: thread, id: fmt.Sprintf("m%d", s.born)}
	wait := time.Duration(0)
	if l.plan.Static {
		h.instance = fmt.Sprintf("%s-%d", l.process, thread+1)
		wait = s.plan.InstanceIDWait
	}
	var endpoint *membership.Endpoint
	if s.plan.Endpoints {
		endpoint = &membership.Endpoint{Host: l.process, Port: uint16(1 + thread)}
	}
	m, err := membership.NewMember(membership.Config{
		Group: group, MemberID: h.id, InstanceID: h.instance, ProcessID: l.process,
		Endpoint:         endpoint,
		RebalanceTimeout: s.plan.RebalanceTimeout,
		RequestTimeout:   s.plan.RequestTimeout,
		StartTimeout:     -1,
		InstanceIDWait:   wait,
		Topology:         s.topology,
		Description:      &kmsg.TopologyDescription{},
		Logger:           s.log,
		Random:           s.rng,
	})
	if err != nil {
		s.fail("%v", err)
		return nil
	}
	h.m = m
	return h
}

// Read makes random bytes for members.
func (d drawer) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(d.Uint32())
	}
	return len(b), nil
}

var _ io.Reader = drawer{}

func (h *host) say(format string, args ...any) { h.s.say(h.id, format, args...) }

// later plans something that the host does, or that happens to it. If its process is stopped then, it waits.
func (h *host) later(d time.Duration, do func()) {
	h.s.after(d, func() { h.now(do) })
}

func (h *host) now(do func()) {
	switch {
	case h.gone:
	case h.slot.paused:
		h.slot.backlog = append(h.slot.backlog, func() { h.now(do) })
	default:
		do()
		if !h.gone {
			h.pump()
		}
	}
}

// pump asks the member what is to be done, and does it, as membership.Loop would.
func (h *host) pump() {
	now := h.s.time()
	h.m.Progress(now)
	r := h.m.Ready(now)
	for _, t := range r.Transitions {
		h.say("%v -> %v, epoch %d", t.From, t.To, h.m.Epoch())
		h.moved(t.To)
	}
	for _, err := range r.Warnings {
		h.say("warning: %v", err)
	}
	if r.Readiness != nil {
		h.ready = r.Readiness.Ready
		h.say("the group is ready: %v %v", r.Readiness.Ready, r.Readiness.Statuses)
	}
	if r.Lost != nil {
		h.lose(r.Lost)
	}
	if r.Assignment != nil {
		h.assign(*r.Assignment)
	}
	switch {
	case r.Done:
		h.say("has left: %v", h.m.LeaveErr())
		h.vacate()
		return
	case r.Err != nil:
		h.failed(r.Err)
		return
	}
	if r.FindCoordinator != 0 {
		h.find(r.FindCoordinator)
	}
	if r.Heartbeat != nil {
		h.heartbeat(r.Node, r.HeartbeatSeq, r.Heartbeat)
	}
	if r.Inquiry != nil {
		h.inquire(r.Node, r.InquirySeq, r.Inquiry)
	}
	if r.Description != nil {
		h.describe(r.Node, r.DescriptionSeq, r.Description)
	}
	h.planWake(r.Wake)
}

func (h *host) planWake(wake time.Time) {
	if wake.IsZero() {
		h.wakeAt = 0
		return
	}
	at := wake.Sub(beginning)
	if at <= h.s.now {
		h.s.fail("%s spins in state %v", h.id, h.m.State())
		return
	}
	if at == h.wakeAt {
		return
	}
	h.wakeAt = at
	h.s.push(at, func() {
		if h.wakeAt == at {
			h.now(func() { h.wakeAt = 0 })
		}
	})
}

// failed is the end of a member that can't go on. Only some reasons are the schedule's fault; then somebody starts the
// thread again.
func (h *host) failed(err error) {
	h.say("fails: %v", err)
	static := errors.Is(err, membership.ErrInstanceIDInUse) && h.instance != ""
	broken := errors.Is(err, kerr.UnknownServerError) && h.refusedBy == kerr.UnknownServerError.Code
	if !static && !broken {
		h.s.fail("%s fails: %v", h.id, err)
	}
	h.vacate()
	h.replace()
}

// vacate ends the host and leaves its place to another one.
func (h *host) vacate() {
	h.end()
	h.slot.threads[h.thread] = nil
	if h.s.calm {
		h.replace()
	}
}

// replace starts another thread in the place, if one should run there.
func (h *host) replace() {
	h.s.after(100*time.Millisecond+h.s.rng.upTo(3*time.Second), func() { h.slot.startThread(h.thread) })
}

// end stops all that the host does.
func (h *host) end() {
	h.gone = true
	h.own(membership.Assignment{})
}

// stop commits and closes the tasks, then leaves.
func (h *host) stop(how membership.LeaveMode) {
	if h.stopping {
		return
	}
	h.stopping = true
	h.say("is told to stop, leaving with mode %d", how)
	h.later(h.step(), func() {
		h.own(membership.Assignment{})
		h.closed = true
		h.m.Leave(h.s.time(), how)
		if h.s.rng.chance(0.5) {
			h.later(h.s.plan.RequestTimeout, func() { h.m.AbandonLeave(errors.New("nobody wants to wait any longer")) })
		}
	})
}
