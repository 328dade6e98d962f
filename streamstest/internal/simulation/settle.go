package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// calmDown ends the faults. Processes go on, some are sent away, the others are started if they aren't there.
func (s *sim) calmDown() {
	s.say("faults", "are over")
	s.calm = true
	b := s.broker
	b.inject, b.lookups, b.throttle = fault{}, fault{}, fault{}
	some := s.slots[s.rng.IntN(len(s.slots))]
	for _, l := range s.slots {
		l.cutUntil = 0
		l.wake()
		switch {
		case l == some || s.rng.chance(0.8):
			s.after(s.rng.upTo(s.plan.Interval), l.start)
			l.up = true
		case s.rng.chance(0.5):
			l.crash()
		default:
			l.stop(pick(s.rng, leaveModes...))
		}
	}
	s.lookWhetherSettled()
}

func (s *sim) lookWhetherSettled() {
	s.after(s.plan.shortest(), func() {
		why := s.unsettled()
		switch spent := s.now - s.plan.Faults.For; {
		case why == "":
			s.done = true
			s.result.Settled = spent
			for _, l := range s.slots {
				if l.up {
					s.result.Members += len(l.threads)
				}
			}
		case spent > s.plan.enough():
			s.fail("%v after the last fault the group hasn't settled: %s", spent, why)
		default:
			s.lookWhetherSettled()
		}
	})
}

// enough is how long a group may take to settle. Sessions of those who are gone must expire, an instance id with them,
// requests that were under way time out, the last of them behind what the network held up. Then the assignment is
// computed and takes some rounds of heartbeats; a warm-up task takes some more, and there are few at a time.
func (p *Schedule) enough() time.Duration {
	interval := max(p.Interval, p.OtherInterval)
	round := interval + 2*p.MaxLatency + 3*p.MaxReconcile
	d := 2*(2*p.SessionTimeout) + p.InstanceIDWait + 2*p.RequestTimeout + 2*p.Faults.MaxDelay +
		p.InitialDelay + p.TopicDelay + 5*p.AssignmentInterval + 20*round
	if p.Warmups > 0 {
		d += time.Duration(p.tasks()) * (p.OffsetInterval + p.AssignmentInterval + 6*round + 12*time.Second)
	}
	return d
}

// unsettled says what isn't as it should be in the end; "" if nothing is.
func (s *sim) unsettled() string {
	g, ok := s.broker.coordinator.Snapshot(s.time(), group)
	if !ok {
		return "there is no group"
	}
	if g.State != coordinator.StateStable {
		return "the group is " + g.State + membersText(&g)
	}
	known := make(map[string]*coordinator.MemberSnapshot, len(g.Members))
	for i := range g.Members {
		known[g.Members[i].ID] = &g.Members[i]
	}
	owners := make(map[membership.TaskID]string, s.plan.tasks())
	copies, live, processes := 0, 0, 0
	for _, l := range s.slots {
		if l.up {
			processes++
		}
		for _, h := range l.threads {
			switch {
			case h == nil && l.up:
				return "a thread of " + l.process + " doesn't run"
			case h == nil:
				continue
			case !l.up:
				return h.id + " still runs"
			}
			live++
			if why := h.unsettled(known[h.id]); why != "" {
				return h.id + " " + why
			}
			for _, t := range h.owned.Active {
				if other := owners[t]; other != "" {
					return fmt.Sprintf("%s and %s have %v", other, h.id, t)
				}
				owners[t] = h.id
			}
			copies += len(h.owned.Standby)
			if len(h.owned.Warmup) > 0 {
				return fmt.Sprintf("%s still has the warm-up tasks %v", h.id, h.owned.Warmup)
			}
		}
	}
	if live != len(g.Members) {
		return fmt.Sprintf("the group has %d members, of which %d live", len(g.Members), live)
	}
	if len(owners) != s.plan.tasks() {
		return fmt.Sprintf("%d of %d tasks run", len(owners), s.plan.tasks())
	}
	if want := s.plan.Stateful * min(s.plan.Standbys, processes-1); copies != want {
		return fmt.Sprintf("there are %d standby tasks, not %d", copies, want)
	}
	return ""
}

// unsettled says what about a host isn't as it should be in the end.
func (h *host) unsettled(known *coordinator.MemberSnapshot) string {
	switch {
	case known == nil:
		return "isn't in the group"
	case h.m.State() != membership.Stable:
		return "is " + h.m.State().String()
	case h.m.Epoch() != known.Epoch:
		return fmt.Sprintf("is at epoch %d, and the coordinator has it at %d", h.m.Epoch(), known.Epoch)
	case !h.processes():
		return "doesn't process"
	case h.busy:
		return "is reconciling"
	case !same(h.owned.Active, known.Assigned.Active), !same(h.owned.Standby, known.Assigned.Standby), !same(h.owned.Warmup, known.Assigned.Warmup):
		return fmt.Sprintf("owns %v, and the coordinator says %v", h.owned, known.Assigned)
	}
	return ""
}

func same(owned []membership.TaskID, assigned coordinator.TaskSet) bool {
	if len(owned) != len(assigned) {
		return false
	}
	for _, t := range owned {
		if !assigned.Has(coordinator.TaskID{Subtopology: t.Subtopology, Partition: t.Partition}) {
			return false
		}
	}
	return true
}

func membersText(g *coordinator.Snapshot) string {
	var b strings.Builder
	for _, m := range g.Members {
		fmt.Fprintf(&b, "\n%s of %s at epoch %d of %d:", m.ID, m.ProcessID, m.Epoch, g.AssignmentEpoch)
		for _, l := range []struct {
			what  string
			tasks coordinator.Tasks
		}{{"assigned", m.Assigned}, {"revoking", m.Revoking}, {"target", m.Target}} {
			fmt.Fprintf(&b, " %s %v %v %v", l.what, l.tasks.Active.Sorted(), l.tasks.Standby.Sorted(), l.tasks.Warmup.Sorted())
		}
	}
	return b.String()
}
