package simulation

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/membership"
)

// repeatedListsAreNews: a member acknowledges task lists that are what it owns, if an answer was lost before. That one
// may have given it a task which these lists take away again, and the coordinator waits for the acknowledgement until
// the rebalance time-out; then it gives away all tasks of a member that thinks that it is in order. Members don't do it
// yet, so the check looks away from such a one.
const repeatedListsAreNews = false

// uncertainty is what a host can't know of its assignment.
type uncertainty struct {
	latest membership.Assignment
	lossy  bool // an answer was lost since
	misled bool // and the next one with task lists said the same as latest
}

// mislead is called with every answer to a heartbeat.
func (h *host) mislead(resp *kmsg.StreamsGroupHeartbeatResponse) {
	if repeatedListsAreNews || resp.ErrorCode != 0 || resp.ActiveTasks == nil {
		return
	}
	h.misled = h.lossy && sameAsWire(h.latest.Active, resp.ActiveTasks) &&
		sameAsWire(h.latest.Standby, resp.StandbyTasks) && sameAsWire(h.latest.Warmup, resp.WarmupTasks)
	h.lossy = false
}

func sameAsWire(tasks []membership.TaskID, wire []kmsg.TaskIDs) bool {
	n := 0
	for _, l := range wire {
		n += len(l.Partitions)
	}
	return n == len(tasks) && len(without(tasks, fromWire(wire))) == 0
}

func fromWire(wire []kmsg.TaskIDs) (out []membership.TaskID) {
	for _, l := range wire {
		for _, p := range l.Partitions {
			out = append(out, membership.TaskID{Subtopology: l.SubtopologyID, Partition: p})
		}
	}
	return out
}
