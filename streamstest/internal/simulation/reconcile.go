package simulation

import (
	"slices"
	"time"

	"github.com/odradek-go/odradek/membership"
)

// reconciler is the side of a host that has the tasks. It takes its time to commit what it gives up, to create what is
// new, and to close what is lost.
type reconciler struct {
	owned membership.Assignment // what is created and not yet closed
	// gaveUp are tasks that were owned when the member was last told, and are closed since.
	gaveUp membership.Assignment

	ready    bool                   // the group is
	losing   bool                   // tasks are lost and not yet closed
	stopping bool                   // the application ends
	closed   bool                   // … and has closed its tasks
	busy     bool                   // with doing
	doing    membership.Assignment  // what it reconciles to
	next     *membership.Assignment // what came meanwhile
	era      int                    // rises with every loss, which ends what was planned
}

// processes tells whether the host processes its active tasks at this moment.
func (h *host) processes() bool {
	return !h.gone && !h.slot.paused && !h.losing && !h.closed && h.ready && h.s.time().Before(h.m.ConfirmedUntil())
}

// step is how long one step takes.
func (h *host) step() time.Duration { return h.s.rng.upTo(h.s.plan.MaxReconcile) }

// inEra plans a step of a reconciliation, which a loss prevents.
func (h *host) inEra(do func()) {
	era := h.era
	h.later(h.step(), func() {
		if h.era == era && !h.stopping {
			do()
		}
	})
}

func (h *host) assign(a membership.Assignment) {
	h.say("is assigned #%d: active %v, standby %v, warm-up %v", a.LocalEpoch, a.Active, a.Standby, a.Warmup)
	if h.losing {
		h.s.fail("%s gets an assignment before it has released what it lost", h.id)
	}
	if h.stopping {
		return
	}
	h.next = &a
	if !h.busy {
		h.begin()
	}
}

// begin starts with the latest assignment: first what must go.
func (h *host) begin() {
	h.doing, h.next, h.busy = *h.next, nil, true
	h.inEra(func() {
		// A task that changes its role is closed in the old one, and created in the new one.
		h.own(membership.Assignment{
			Active:  both(h.owned.Active, h.doing.Active),
			Standby: both(h.owned.Standby, h.doing.Standby),
			Warmup:  both(h.owned.Warmup, h.doing.Warmup),
		})
		if h.superseded() {
			return
		}
		h.inEra(func() {
			if h.superseded() {
				return
			}
			h.own(h.doing)
			h.gaveUp = membership.Assignment{}
			h.m.Reconciled(h.doing.LocalEpoch)
			h.say("owns #%d", h.doing.LocalEpoch)
			h.busy = false
			h.acknowledges()
			if h.next != nil {
				h.begin()
			}
		})
	})
}

// superseded goes over to an assignment that has come meanwhile, now and then. Otherwise the old one is finished first,
// which is as good.
func (h *host) superseded() bool {
	if h.next == nil || h.s.rng.chance(0.5) {
		return false
	}
	h.say("abandons #%d", h.doing.LocalEpoch)
	h.begin()
	return true
}

// lose stops processing at once; closing takes its time.
func (h *host) lose(reason error) {
	h.say("loses its tasks: %v", reason)
	h.era++
	h.losing, h.busy, h.next = true, false, nil
	h.later(h.step(), func() {
		h.own(membership.Assignment{})
		h.gaveUp = membership.Assignment{}
		h.losing = false
		h.m.LostDone(h.s.time())
	})
}

// own makes a what the host owns.
func (h *host) own(a membership.Assignment) {
	for _, t := range h.owned.Active {
		if !slices.Contains(a.Active, t) {
			h.s.release(t, h)
		}
	}
	for _, t := range a.Active {
		if !slices.Contains(h.owned.Active, t) {
			h.s.hold(t, h)
		}
	}
	h.gaveUp.Active = append(h.gaveUp.Active, without(h.owned.Active, a.Active)...)
	h.gaveUp.Standby = append(h.gaveUp.Standby, without(h.owned.Standby, a.Standby)...)
	h.gaveUp.Warmup = append(h.gaveUp.Warmup, without(h.owned.Warmup, a.Warmup)...)
	h.owned = a
	h.restore()
}

func both(a, b []membership.TaskID) (out []membership.TaskID) {
	for _, t := range a {
		if slices.Contains(b, t) {
			out = append(out, t)
		}
	}
	return out
}

func without(a, b []membership.TaskID) (out []membership.TaskID) {
	for _, t := range a {
		if !slices.Contains(b, t) {
			out = append(out, t)
		}
	}
	return out
}
