package simulation

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/membership"
)

// pace watches how often a member talks. The protocol lets it talk once an interval, and besides at once after certain
// events, the excuses: a join, an acknowledgement, a warm-up task that has caught up, and a heartbeat that was refused
// or got no answer. Retries are held back: see retries.
type pace struct {
	window []moment // of the last ten intervals
	retry  retries
	asked  retries // inquiries
	// heldUntil is the end of a throttle.
	heldUntil time.Duration
	hot       []membership.TaskID // warm-up tasks that have caught up
}

type moment struct {
	at     time.Duration
	excuse bool
}

// retries counts what was sent since something last went well.
type retries struct {
	since         time.Duration
	sent, lookups int
	free          int // things that may be told at once
}

// A back-off is at least 80 ms, 160, 320, 640 and then 800 ms, with a first retry that may be free. There are three of
// them, for refusals, lookups and fences, and an adversary can use each of them from the start.
const (
	backoffs     = 3
	rampUp       = 5
	longestPause = 800 * time.Millisecond
)

func (r *retries) tooMany(now time.Duration) bool {
	return r.sent > 1+r.free+backoffs*rampUp+int((now-r.since)/longestPause)
}

func (r *retries) tooManyLookups(now time.Duration) bool {
	return r.lookups > 1+rampUp+int((now-r.since)/longestPause)
}

// beat is called with every heartbeat.
func (h *host) beat(req *kmsg.StreamsGroupHeartbeatRequest) {
	now := h.s.now
	if now < h.heldUntil {
		h.s.fail("%s sends a heartbeat while it is throttled for another %v", h.id, h.heldUntil-now)
	}
	if req.MemberEpoch < 0 {
		return // once or twice in a life
	}
	h.retry.sent++
	if h.retry.tooMany(now) {
		h.s.fail("%s has sent %d heartbeats in the %v since one was accepted", h.id, h.retry.sent, now-h.retry.since)
	}
	h.remember(false)
	requests, excuses := 0, 0
	for _, m := range h.window {
		if m.excuse {
			excuses++
		} else {
			requests++
		}
	}
	// Ten intervals have eleven ends, and one excuse may have waited since before.
	if requests > 12+excuses {
		h.s.fail("%s has sent %d heartbeats in ten intervals of %v, for which it has %d excuses", h.id, requests, h.s.plan.shortest(), excuses)
	}
}

func (h *host) remember(excuse bool) {
	h.window = append(h.window, moment{h.s.now, excuse})
	since := h.s.now - 10*h.s.plan.shortest()
	i := 0
	for i < len(h.window) && h.window[i].at < since {
		i++
	}
	h.window = h.window[:copy(h.window, h.window[i:])]
}

func (p *Schedule) shortest() time.Duration { return min(p.Interval, p.OtherInterval) }

// excuse lets one heartbeat go out at once.
func (h *host) excuse() { h.remember(true) }

// moved is a change of the member's state.
func (h *host) moved(to membership.State) {
	if to == membership.Joining {
		h.excuse()
	}
}

// answered is an answer to a heartbeat.
func (h *host) answered(resp *kmsg.StreamsGroupHeartbeatResponse) {
	h.refusedBy = resp.ErrorCode
	h.heldUntil = max(h.heldUntil, h.s.now+time.Duration(resp.ThrottleMillis)*time.Millisecond)
	if resp.ErrorCode != 0 {
		h.excuse()
		return
	}
	h.retry = retries{since: h.s.now}
}

// acknowledges is called when the host has what it was assigned.
func (h *host) acknowledges() {
	h.excuse()
	h.retry.free++
}

// warmed is called when the member has been told how far its tasks are.
func (h *host) warmed() {
	h.hot = both(h.hot, h.owned.Warmup)
	for _, t := range without(h.owned.Warmup, h.hot) {
		if h.slot.disk[t] >= changelogEnd-acceptableLag {
			h.hot = append(h.hot, t)
			h.excuse()
			h.retry.free++
		}
	}
}

func (h *host) lookedUp() {
	now := h.s.now
	h.retry.lookups++
	if h.retry.tooManyLookups(now) {
		h.s.fail("%s has looked up the coordinator %d times in the %v since a heartbeat was accepted", h.id, h.retry.lookups, now-h.retry.since)
	}
}

// inquired is called with every question for an assignment. Whether the last one went well isn't known here; more than
// the time allows are too many in any case.
func (h *host) inquired() {
	now := h.s.now
	if now < h.heldUntil {
		h.s.fail("%s asks for its assignment while it is throttled", h.id)
	}
	h.asked.sent++
	if h.asked.tooMany(now) {
		h.s.fail("%s has asked %d times for its assignment in the %v since a heartbeat failed", h.id, h.asked.sent, now-h.asked.since)
	}
}
