package membership

import (
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// taskOffset is an entry of a report.
type taskOffset struct {
	task   TaskID
	offset int64
}

// offsetReport decides which task offsets go out with which heartbeat
// (KIP-1071). The two lists are told independently: with the join; after that
// each when it differs from what was sent last, with an acknowledgement and
// once the offset interval has passed since the last report; and both with
// every heartbeat while a warm-up task has caught up.
type offsetReport struct {
	offsets, ends         []taskOffset // sorted by task
	sentOffsets, sentEnds []taskOffset
	known                 bool // sentOffsets and sentEnds have arrived
	sentAt                time.Time
	// reported are the warm-up tasks whose catching up has hurried a heartbeat
	// already: a task that goes back and forth must not do so again.
	reported []TaskID
}

func (r *offsetReport) set(offsets, ends map[TaskID]int64) {
	r.offsets = sortedOffsets(r.offsets, offsets)
	r.ends = sortedOffsets(r.ends, ends)
}

// sortedOffsets keeps old when nothing changed, and never writes to it: it may
// be what was sent last.
func sortedOffsets(old []taskOffset, in map[TaskID]int64) []taskOffset {
	if len(old) == len(in) && !slices.ContainsFunc(old, func(o taskOffset) bool {
		v, ok := in[o.task]
		return !ok || v != o.offset
	}) {
		return old
	}
	out := make([]taskOffset, 0, len(in))
	for t, o := range in {
		out = append(out, taskOffset{t, o})
	}
	slices.SortFunc(out, func(a, b taskOffset) int { return a.task.Compare(b.task) })
	return out
}

// assigned drops what is remembered of warm-up tasks that are none any more.
func (r *offsetReport) assigned(warmups []TaskID) {
	r.reported = slices.DeleteFunc(r.reported, func(t TaskID) bool { return !slices.Contains(warmups, t) })
}

func find(in []taskOffset, t TaskID) (int64, bool) {
	i, ok := slices.BinarySearchFunc(in, t, func(o taskOffset, t TaskID) int { return o.task.Compare(t) })
	if !ok {
		return 0, false
	}
	return in[i].offset, true
}

// caughtUp tells whether a warm-up task is within the acceptable lag. An
// unknown end or lag is not.
func (r *offsetReport) caughtUp(t TaskID, lag int64) bool {
	if lag < 0 {
		return false
	}
	offset, ok := find(r.offsets, t)
	if !ok {
		return false
	}
	end, ok := find(r.ends, t)
	return ok && end != math.MaxInt64 && end-offset <= lag
}

// newlyCaughtUp tells whether a warm-up task has caught up that hadn't before.
func (r *offsetReport) newlyCaughtUp(warmups []TaskID, lag int64) bool {
	news := false
	for _, t := range warmups {
		if !slices.Contains(r.reported, t) && r.caughtUp(t, lag) {
			r.reported = append(r.reported, t)
			news = true
		}
	}
	return news
}

// when a report is made.
type occasion uint8

const (
	atInterval occasion = iota
	atAck
	atJoin
)

// report fills in what is to be told now and takes it for sent.
func (r *offsetReport) report(req *kmsg.StreamsGroupHeartbeatRequest, now time.Time, why occasion,
	interval time.Duration, warmups []TaskID, lag int64,
) {
	always := why == atJoin || !r.known || slices.ContainsFunc(warmups, func(t TaskID) bool { return r.caughtUp(t, lag) })
	if !always && why == atInterval && now.Sub(r.sentAt) < interval {
		return
	}
	if always || !slices.Equal(r.offsets, r.sentOffsets) {
		req.TaskOffsets = offsetsToWire(r.offsets)
		r.sentOffsets, r.sentAt = r.offsets, now
	}
	if always || !slices.Equal(r.ends, r.sentEnds) {
		req.TaskEndOffsets = offsetsToWire(r.ends)
		r.sentEnds, r.sentAt = r.ends, now
	}
	r.known = true
}

// offsetsToWire never returns nil, which would mean "unchanged".
func offsetsToWire(in []taskOffset) []kmsg.TaskOffset {
	out := make([]kmsg.TaskOffset, len(in))
	for i, o := range in {
		out[i] = kmsg.NewTaskOffset()
		out[i].SubtopologyID, out[i].Partition, out[i].Offset = o.task.Subtopology, o.task.Partition, o.offset
	}
	return out
}
