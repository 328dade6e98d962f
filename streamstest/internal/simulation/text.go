package simulation

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// requestText is a heartbeat for a transcript.
func requestText(r *kmsg.StreamsGroupHeartbeatRequest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d", r.MemberEpoch)
	tasksText(&b, " owns", r.ActiveTasks, r.StandbyTasks, r.WarmupTasks)
	return b.String()
}

// answerText is an answer for a transcript.
func answerText(r *kmsg.StreamsGroupHeartbeatResponse) string {
	var b strings.Builder
	if r.ErrorCode != 0 {
		fmt.Fprintf(&b, "error %d", r.ErrorCode)
		if r.ErrorMessage != nil {
			b.WriteString(" " + *r.ErrorMessage)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "epoch %d", r.MemberEpoch)
	tasksText(&b, " is to run", r.ActiveTasks, r.StandbyTasks, r.WarmupTasks)
	for _, s := range r.Status {
		fmt.Fprintf(&b, " status %d", s.StatusCode)
	}
	if r.ThrottleMillis > 0 {
		fmt.Fprintf(&b, " throttled for %d ms", r.ThrottleMillis)
	}
	return b.String()
}

func tasksText(b *strings.Builder, verb string, active, standby, warmup []kmsg.TaskIDs) {
	if active == nil {
		return
	}
	b.WriteString(verb)
	for _, l := range []struct {
		name string
		ids  []kmsg.TaskIDs
	}{{"active", active}, {"standby", standby}, {"warm-up", warmup}} {
		fmt.Fprintf(b, " %s", l.name)
		for _, t := range l.ids {
			fmt.Fprintf(b, " %s_%v", t.SubtopologyID, t.Partitions)
		}
	}
}
