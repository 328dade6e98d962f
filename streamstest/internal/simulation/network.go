package simulation

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// conn is a connection to a broker. What goes over it arrives in order.
type conn struct {
	node            int32
	arrives, answer time.Duration // when the last request and the last answer arrive
	broken          bool
	calls           []*call // without an outcome yet
}

// call is a request on its way, or its answer.
type call struct {
	h        *host
	conn     *conn
	deadline time.Duration
	done     bool
	process  func() (take func())
	fail     func(error)
}

var (
	errTimeout = errors.New("no answer in time")
	errBroken  = errors.New("connection reset by peer")
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
)

func (s *sim) latency() time.Duration { return time.Millisecond + s.rng.upTo(s.plan.MaxLatency) }

// happens draws whether a message has an accident of this rate.
func (s *sim) happens(rate float64) bool { return !s.calm && rate > 0 && s.rng.chance(rate) }

// delayed is how long a message takes.
func (s *sim) delayed() time.Duration {
	d := s.latency()
	if s.happens(s.plan.Faults.Delay) {
		d += s.rng.upTo(s.plan.Faults.MaxDelay)
	}
	return d
}

// call sends something to a node. process is what the broker does with it; it returns what the host does with the answer.
func (h *host) call(node int32, process func() (take func()), fail func(error)) {
	s := h.s
	c := &call{h: h, deadline: s.now + s.plan.RequestTimeout, process: process, fail: fail}
	if h.conn == nil || h.conn.node != node || h.conn.broken {
		if h.slot.cut() && h.slot.cutFast {
			h.later(s.latency(), func() { c.failed(errRefused) })
			return
		}
		h.conn = &conn{node: node}
	}
	c.conn = h.conn
	c.conn.calls = append(c.conn.calls, c)
	if s.happens(s.plan.Faults.DropRequest) {
		c.lost("request")
		return
	}
	at := max(s.now+s.delayed(), c.conn.arrives)
	c.conn.arrives = at
	s.push(at, c.arrive)
	if at >= c.deadline {
		c.timeOut(c.deadline)
	}
}

// lost is a message that is lost with its connection, which the host notices at once or never.
func (c *call) lost(what string) {
	s := c.h.s
	if s.rng.chance(0.5) {
		s.after(s.latency(), func() { c.conn.reset(s, what) })
		return
	}
	c.h.say("a %s disappears, and its connection hangs", what)
	c.conn.broken = true
	for _, call := range c.conn.calls {
		call.timeOut(max(s.now, call.deadline))
	}
}

// reset ends a connection with all that is on its way.
func (c *conn) reset(s *sim, what string) {
	c.broken = true
	for _, call := range slices.Clone(c.calls) {
		call.h.say("a %s is lost with its connection", what)
		call.h.now(func() { call.failed(errBroken) })
	}
}

func (c *call) timeOut(at time.Duration) {
	c.h.s.push(at, func() { c.h.now(func() { c.failed(errTimeout) }) })
}

func (c *call) failed(err error) {
	if c.finish() {
		c.fail(err)
	}
}

// finish says whether the call had no outcome before.
func (c *call) finish() bool {
	if c.done {
		return false
	}
	c.done = true
	if c.conn != nil {
		c.conn.calls = slices.DeleteFunc(c.conn.calls, func(o *call) bool { return o == c })
	}
	return true
}

// arrive is the request at the broker. One whose sender has given it up is processed as well, unless its connection is gone.
func (c *call) arrive() {
	h, s := c.h, c.h.s
	if c.conn.broken {
		return
	}
	if h.slot.cut() {
		c.lost("request")
		return
	}
	take := c.process()
	if s.happens(s.plan.Faults.Repeat) {
		// One answer could hide what the other one says, so a transport that sends twice must not look like one that
		// sent once: the loop's never repeats by itself, and here the connection is lost.
		h.say("a request arrives twice")
		c.process()
		c.lost("answer")
		return
	}
	if s.happens(s.plan.Faults.DropAnswer) || h.slot.cut() {
		c.lost("answer")
		return
	}
	at := max(s.now+s.delayed(), c.conn.answer)
	c.conn.answer = at
	s.push(at, func() {
		if c.conn.broken {
			return
		}
		if h.slot.cut() {
			c.lost("answer")
			return
		}
		h.now(func() {
			if s.now > c.deadline && s.rng.chance(0.5) {
				c.failed(errTimeout) // a process that wakes sees first that the time is out
			} else if c.finish() {
				take()
			}
		})
	})
	if at >= c.deadline {
		c.timeOut(max(s.now, c.deadline))
	}
}

// find looks for the coordinator, at any broker.
func (h *host) find(seq uint64) {
	h.lookedUp()
	s := h.s
	if h.slot.cut() || s.happens(s.plan.Faults.DropRequest) {
		d := s.plan.RequestTimeout
		if h.slot.cutFast {
			d = s.latency()
		}
		h.later(d, func() { h.m.CoordinatorFailed(s.time(), seq, errRefused) })
		return
	}
	h.s.after(s.latency(), func() {
		node, code := s.broker.lookup()
		h.later(s.latency(), func() {
			h.say("finds the coordinator at node %d, code %d", node, code)
			h.m.CoordinatorAnswered(s.time(), seq, node, code, "")
		})
	})
}

func (h *host) heartbeat(node int32, seq uint64, in *kmsg.StreamsGroupHeartbeatRequest) {
	req := *in // what is sent is not changed by what the member does next
	h.s.result.Heartbeats++
	if h.s.transcript != nil {
		h.say("to node %d: %s", node, requestText(&req))
	}
	h.checkOwned(&req)
	h.beat(&req)
	h.call(node, func() func() {
		resp := h.s.broker.heartbeat(node, h.id, &req)
		if h.s.transcript != nil {
			h.s.say(fmt.Sprintf("node%d", node), "answers %s: %s", h.id, answerText(resp))
		}
		return func() {
			h.answered(resp)
			h.m.HeartbeatAnswered(h.s.time(), seq, resp)
		}
	}, func(err error) {
		h.say("its heartbeat fails: %v", err)
		h.excuse()
		h.asked = retries{since: h.s.now}
		h.m.HeartbeatFailed(h.s.time(), seq, err)
	})
}

func (h *host) inquire(node int32, seq uint64, _ *kmsg.StreamsGroupDescribeRequest) {
	h.say("asks node %d for its assignment", node)
	h.inquired()
	h.call(node, func() func() {
		resp := h.s.broker.describe(node)
		return func() {
			h.say("is told its assignment, code %d", resp.Groups[0].ErrorCode)
			h.m.InquiryAnswered(h.s.time(), seq, resp)
		}
	}, func(err error) { h.m.InquiryFailed(h.s.time(), seq, err) })
}

func (h *host) describe(node int32, seq uint64, req *kmsg.StreamsGroupTopologyDescriptionUpdateRequest) {
	h.call(node, func() func() {
		resp := h.s.broker.updateDescription(node, req)
		return func() { h.m.DescriptionAnswered(h.s.time(), seq, resp) }
	}, func(err error) { h.m.DescriptionFailed(h.s.time(), seq, err) })
}
