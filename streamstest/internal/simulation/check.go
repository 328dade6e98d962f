package simulation

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/membership"
)

// hold and release keep track of who owns an active task.
func (s *sim) hold(t membership.TaskID, h *host) {
	s.holders[t] = append(s.holders[t], h)
	if len(s.holders[t]) > 1 {
		s.contested[t] = struct{}{}
	}
}

func (s *sim) release(t membership.TaskID, h *host) {
	s.holders[t] = slices.DeleteFunc(s.holders[t], func(o *host) bool { return o == h })
	if len(s.holders[t]) < 2 {
		delete(s.contested, t)
	}
}

// checkTasks: no task is processed by two hosts. It may be owned by two, since one that the coordinator has given up
// doesn't know; but then that one doesn't process.
func (s *sim) checkTasks() {
	for t := range s.contested {
		var by *host
		for _, h := range s.holders[t] {
			if !h.processes() {
				continue
			}
			if by != nil {
				s.fail("task %v is processed by %s and by %s", t, by.id, h.id)
				return
			}
			by = h
		}
	}
}

// checkOwned: a request names as owned what the host owns, or owned when the member was last told and has closed since;
// and it leaves out nothing that the host processes.
func (h *host) checkOwned(req *kmsg.StreamsGroupHeartbeatRequest) {
	if req.ActiveTasks == nil {
		return
	}
	check := func(role string, ids []kmsg.TaskIDs, owned, gaveUp []membership.TaskID) {
		for _, l := range ids {
			for _, p := range l.Partitions {
				t := membership.TaskID{Subtopology: l.SubtopologyID, Partition: p}
				if !slices.Contains(owned, t) && !slices.Contains(gaveUp, t) {
					h.s.fail("%s says that it owns %s %v, which it doesn't: it owns %v", h.id, role, t, owned)
				}
			}
		}
	}
	check("active", req.ActiveTasks, h.owned.Active, h.gaveUp.Active)
	check("standby", req.StandbyTasks, h.owned.Standby, h.gaveUp.Standby)
	check("warm-up", req.WarmupTasks, h.owned.Warmup, h.gaveUp.Warmup)
	if h.losing {
		return
	}
	said := func(t membership.TaskID) bool {
		return slices.ContainsFunc(req.ActiveTasks, func(l kmsg.TaskIDs) bool {
			return l.SubtopologyID == t.Subtopology && slices.Contains(l.Partitions, t.Partition)
		})
	}
	for _, t := range h.owned.Active {
		if !said(t) {
			h.s.fail("%s does not say that it owns %v, which it processes", h.id, t)
		}
	}
}
