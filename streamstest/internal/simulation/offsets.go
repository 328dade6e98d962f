package simulation

import (
	"slices"
	"time"

	"github.com/odradek-go/odradek/membership"
)

const (
	changelogEnd  = 1000 // of every task with a store
	acceptableLag = 50
)

// reporter restores changelogs into the slot's state directory, and tells the member how far they are.
type reporter struct {
	restoring bool
}

func stateful(t membership.TaskID) bool { return t.Subtopology == "0" }

// copies are the tasks whose state the host is building.
func (h *host) copies() []membership.TaskID {
	out := slices.Concat(h.owned.Standby, h.owned.Warmup)
	for _, t := range h.owned.Active {
		if stateful(t) && h.slot.disk[t] < changelogEnd {
			out = append(out, t)
		}
	}
	return out
}

// restore goes on with restoring, if there is something to restore.
func (h *host) restore() {
	if h.gone || h.restoring || h.s.plan.Warmups+h.s.plan.Standbys == 0 {
		return
	}
	h.restoring = true
	h.later(100*time.Millisecond+h.s.rng.upTo(time.Second), func() {
		h.restoring = false
		more := false
		for _, t := range h.copies() {
			if h.slot.disk[t] < changelogEnd {
				h.slot.disk[t] = min(changelogEnd, h.slot.disk[t]+100+h.s.rng.Int64N(500))
				more = true
			}
		}
		h.report()
		if more {
			h.restore()
		}
	})
}

// report tells of all state on disk that isn't in an active task's hands here. Only what is being restored has a known end.
func (h *host) report() {
	copies := h.copies()
	offsets, ends := make(map[membership.TaskID]int64), make(map[membership.TaskID]int64)
	for t, offset := range h.slot.disk {
		if !slices.Contains(h.owned.Active, t) || slices.Contains(copies, t) {
			offsets[t] = offset
		}
	}
	for _, t := range copies {
		ends[t] = changelogEnd
	}
	h.m.SetTaskOffsets(offsets, ends)
	h.warmed()
}
