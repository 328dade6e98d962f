package membership

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// world is a member, a coordinator that answers anything, a transport that
// fails, and an owner of tasks that is slow: all in random order. It knows what
// a request may be.
type world struct {
	t   *rapid.T
	m   *Member
	now time.Time

	asking   uint64
	inFlight []outstanding // heartbeats without an answer; the last may be a leave
	pushing  uint64

	epoch    int32 // answered last in this life, 0 none
	owned    [3][]TaskID
	offers   []Assignment
	lastEnd  time.Time // of the last request
	excuses  int       // why a request may come before the interval is over
	sent     int
	free     int // requests that no back-off and no interval holds back
	began    time.Time
	interval time.Duration
	lost     bool      // tasks are not released yet
	hold     time.Time // the end of the shortest back-off
	leaving  bool      // Leave was called
	leaves   int       // sent after that
	undone   int       // of these, refused without having been handled
	over     bool
}

type outstanding struct {
	seq uint64
	req kmsg.StreamsGroupHeartbeatRequest
}

func newWorld(t *rapid.T) *world {
	cfg := testConfig()
	cfg.RebalanceTimeout = 20 * time.Second
	cfg.StartTimeout = -1
	if rapid.Bool().Draw(t, "static") {
		cfg.InstanceID = "instance"
	}
	m, err := NewMember(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, m: m, now: zeroTime, began: zeroTime, lastEnd: zeroTime.Add(-time.Hour), interval: time.Second}
}

func (w *world) ready() {
	r := w.m.Ready(w.now)
	if err := w.m.failure; err != nil && strings.Contains(err.Error(), "bug") {
		w.t.Fatal(err)
	}
	if w.over && (r.Heartbeat != nil || r.FindCoordinator != 0 || r.Description != nil || !r.Wake.IsZero()) {
		w.t.Fatalf("it is over, and yet: %+v", r)
	}
	w.over = r.Done || r.Err != nil
	for _, tr := range r.Transitions {
		if !tr.To.in(legal[tr.From]) {
			w.t.Fatalf("transition %v", tr)
		}
		if tr.To == Joining {
			w.epoch = 0
			w.pushing = 0 // whatever comes of it
			w.excuses++
			w.free++
		}
	}
	if r.Lost != nil {
		w.lost = true
		w.owned, w.offers = [3][]TaskID{}, nil
	}
	if w.m.State().in(set(Joining, Fenced, Stale, Unsubscribed)) && r.Assignment == nil {
		w.owned, w.offers = [3][]TaskID{}, nil
	}
	if r.Assignment != nil {
		w.offers = append(w.offers, *r.Assignment)
	}
	if r.Heartbeat != nil {
		w.check(r.Heartbeat)
		leave := r.Heartbeat.MemberEpoch < 0
		if len(w.inFlight) > 0 && !leave && !slices.ContainsFunc(w.inFlight, func(o outstanding) bool { return o.req.MemberEpoch < 0 }) {
			w.t.Fatal("two heartbeats in flight")
		}
		w.inFlight = append(w.inFlight, outstanding{r.HeartbeatSeq, *r.Heartbeat})
	}
	if r.Description != nil {
		if w.pushing != 0 {
			w.t.Fatal("two descriptions in flight")
		}
		w.pushing = r.DescriptionSeq
	}
	if !r.Wake.IsZero() && !r.Wake.After(w.now) {
		w.t.Fatalf("spins in state %v", w.m.State())
	}
	if r.FindCoordinator != 0 {
		if w.asking != 0 {
			w.t.Fatal("two lookups in flight")
		}
		w.asking = r.FindCoordinator
	}
}

// check refuses what a coordinator refuses, and what the protocol forbids.
func (w *world) check(r *kmsg.StreamsGroupHeartbeatRequest) {
	fail := func(format string, args ...any) {
		w.t.Helper()
		w.t.Fatalf("%s: %+v", fmt.Sprintf(format, args...), *r)
	}
	nils := 0
	for _, null := range []bool{r.ActiveTasks == nil, r.StandbyTasks == nil, r.WarmupTasks == nil} {
		if null {
			nils++
		}
	}
	if nils != 0 && nils != 3 {
		fail("mixed lists")
	}
	if r.Group != "app" || r.MemberID != "member" || r.MemberEpoch < -2 {
		fail("identity")
	}
	if (r.InstanceID != nil) != (w.m.cfg.InstanceID != "") {
		fail("instance id")
	}
	if r.MemberEpoch == 0 {
		if r.Topology == nil || r.RebalanceTimeoutMillis <= 0 || r.ProcessID == nil || nils != 0 ||
			len(r.ActiveTasks)+len(r.StandbyTasks)+len(r.WarmupTasks) > 0 || r.ClientTags == nil {
			fail("join")
		}
		if w.lost {
			fail("joined before the tasks were released")
		}
	} else {
		if r.Topology != nil || r.RebalanceTimeoutMillis != -1 || r.ProcessID != nil || r.UserEndpoint != nil || r.ClientTags != nil || r.RackID != nil {
			fail("what belongs into a join only")
		}
		if r.MemberEpoch > 0 && r.MemberEpoch != w.epoch {
			fail("epoch, want %d", w.epoch)
		}
		if r.MemberEpoch == -2 && r.InstanceID == nil {
			fail("a dynamic member goes away for a while")
		}
	}
	if nils == 0 && r.MemberEpoch > 0 {
		got := [3][]TaskID{tasksFromWire(r.ActiveTasks), tasksFromWire(r.StandbyTasks), tasksFromWire(r.WarmupTasks)}
		for i := range got {
			if i == 2 && w.m.version == 0 {
				continue
			}
			if !slices.Equal(got[i], w.owned[i]) {
				fail("acknowledges %v, owned %v", got, w.owned)
			}
		}
	}
	for _, list := range [][]kmsg.TaskIDs{r.ActiveTasks, r.StandbyTasks, r.WarmupTasks} {
		for i, t := range list {
			if t.SubtopologyID == "" || len(t.Partitions) == 0 || i > 0 && t.SubtopologyID == list[i-1].SubtopologyID {
				fail("a list")
			}
		}
	}
	if w.m.version == 0 && (r.TaskOffsets != nil || r.TaskEndOffsets != nil || len(r.WarmupTasks) > 0) {
		fail("to version 0")
	}
	if w.leaving {
		if r.MemberEpoch >= 0 {
			fail("after Leave")
		}
		w.leaves++
		if w.leaves > 1+w.undone {
			fail("left %d times, %d of them refused", w.leaves, w.undone)
		}
	}
	if early := w.now.Sub(w.lastEnd) < w.interval; early && w.excuses == 0 && r.MemberEpoch >= 0 {
		fail("%v after the last one", w.now.Sub(w.lastEnd))
	}
	if r.MemberEpoch < 0 {
		w.hold = time.Time{} // a leave doesn't wait, nor does what follows it
	} else if w.now.Before(w.hold) {
		fail("%v before the back-off's end", w.hold.Sub(w.now))
	}
	w.excuses = 0
	w.lastEnd = w.now
	w.sent++
}

func (w *world) advance(d time.Duration) {
	end := w.now.Add(d)
	for range 1000 {
		wake := w.m.wake(w.now)
		if wake.IsZero() || wake.After(end) {
			break
		}
		w.now = later(w.now, wake)
		w.ready()
	}
	w.now = later(w.now, end)
	w.ready()
}

var drawTasks = rapid.Custom(func(t *rapid.T) []kmsg.TaskIDs {
	ps := rapid.SliceOfNDistinct(rapid.Int32Range(0, 3), 0, 3, rapid.ID[int32]).Draw(t, "partitions")
	if len(ps) == 0 {
		return none
	}
	return tasks(rapid.SampledFrom([]string{"0", "1"}).Draw(t, "subtopology"), ps...)
})

// answerOf makes any answer.
func (w *world) answerOf(t *rapid.T, o outstanding) *kmsg.StreamsGroupHeartbeatResponse {
	if code := rapid.SampledFrom([]int16{0, 0, 0, 0, 14, 15, 16, 7, 13, 25, 110, 29, -1}).Draw(t, "code"); code != 0 {
		return refusal(code, "")
	}
	epoch := o.req.MemberEpoch
	if epoch < 0 {
		return ok(epoch)
	}
	epoch = max(epoch, 1) + rapid.Int32Range(0, 1).Draw(t, "epoch")
	r := ok(epoch)
	if o.req.MemberEpoch == 0 || rapid.Bool().Draw(t, "lists") {
		r = granted(epoch, drawTasks.Draw(t, "active"), drawTasks.Draw(t, "standby"), drawTasks.Draw(t, "warmup"))
	}
	switch rapid.IntRange(0, 5).Draw(t, "status") {
	case 0:
		r.Status = nil
	case 1:
		r = withStatus(r, StatusMissingInternalTopics)
	case 2:
		r = withStatus(r, StatusStaleTopology)
	}
	r.TopologyDescriptionRequired = rapid.IntRange(0, 9).Draw(t, "push") == 0
	if rapid.IntRange(0, 9).Draw(t, "throttled") == 0 {
		r.ThrottleMillis = 300
	}
	if rapid.IntRange(0, 9).Draw(t, "old") == 0 {
		r.Version = 0
	}
	return r
}

func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.m.Join(w.now)
		w.excuses, w.free = 1, 1
		w.ready()
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				// Nothing is hot: each request is either free, or an interval
				// or a back-off (80 ms at least) after another.
				if most := w.free + 2 + int(w.now.Sub(w.began)/(80*time.Millisecond)); w.sent > most {
					t.Fatalf("%d requests in %v", w.sent, w.now.Sub(w.began))
				}
			},
			"time": func(t *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second}).Draw(t, "d")
				if rapid.IntRange(0, 3).Draw(t, "progress") > 0 {
					w.m.Progress(w.now.Add(d))
				}
				w.advance(d)
			},
			"found": func(t *rapid.T) {
				if w.asking == 0 {
					t.Skip()
				}
				seq := w.asking
				w.asking = 0
				if rapid.Bool().Draw(t, "fails") {
					w.m.CoordinatorFailed(w.now, seq, errors.New("refused"))
				} else {
					w.m.CoordinatorAnswered(w.now, seq, rapid.Int32Range(1, 2).Draw(t, "node"), rapid.SampledFrom([]int16{0, 0, 15}).Draw(t, "code"), "")
				}
				w.ready()
			},
			"answer": func(t *rapid.T) { w.answer(t, false) },
			"fail":   func(t *rapid.T) { w.answer(t, true) },
			"pushed": func(t *rapid.T) {
				if w.pushing == 0 {
					t.Skip()
				}
				seq := w.pushing
				w.pushing = 0
				if rapid.Bool().Draw(t, "fails") {
					w.m.DescriptionFailed(w.now, seq, errors.New("lost"))
				} else {
					w.m.DescriptionAnswered(w.now, seq, &kmsg.StreamsGroupTopologyDescriptionUpdateResponse{
						ErrorCode: rapid.SampledFrom([]int16{0, 14, 16, 25, 135}).Draw(t, "code"),
					})
				}
				w.ready()
			},
			"reconciled": func(t *rapid.T) {
				if len(w.offers) == 0 {
					w.m.Reconciled(rapid.Int64Range(-1, 5).Draw(t, "none"))
					return
				}
				i := rapid.IntRange(0, len(w.offers)-1).Draw(t, "i")
				a := w.offers[i]
				w.offers = w.offers[i+1:]
				if w.m.State().in(set(Reconciling, Acknowledging, Stable)) {
					w.owned = [3][]TaskID{a.Active, a.Standby, a.Warmup}
					w.excuses++
					w.free++
				}
				w.m.Reconciled(a.LocalEpoch)
				w.ready()
			},
			"released": func(*rapid.T) {
				w.lost = false
				w.m.LostDone(w.now)
				w.ready()
			},
			"offsets": func(t *rapid.T) {
				offsets, ends := map[TaskID]int64{}, map[TaskID]int64{}
				for _, p := range rapid.SliceOfNDistinct(rapid.Int32Range(0, 3), 0, 3, rapid.ID[int32]).Draw(t, "tasks") {
					offsets[TaskID{"0", p}] = rapid.Int64Range(0, 300).Draw(t, "offset")
					ends[TaskID{"0", p}] = 300
				}
				w.m.SetTaskOffsets(offsets, ends)
				if len(w.m.current.Warmup) > 0 {
					w.excuses++
					w.free++
				}
				w.ready()
			},
			"fence": func(*rapid.T) {
				w.m.Fence(w.now, errors.New("commit refused"))
				w.free++
				w.ready()
			},
			"shutdown": func(*rapid.T) {
				w.m.RequestShutdown()
				w.excuses++
				w.free++
				w.ready()
			},
			"leave": func(t *rapid.T) {
				if w.leaving || rapid.IntRange(0, 9).Draw(t, "really") > 0 {
					t.Skip()
				}
				w.leaving = true
				w.free++
				w.m.Leave(w.now, LeaveMode(rapid.IntRange(0, 2).Draw(t, "mode")))
				w.ready()
			},
		})
	})
}

func (w *world) answer(t *rapid.T, fail bool) {
	if len(w.inFlight) == 0 {
		t.Skip()
	}
	// Those of one connection are answered in order.
	o := w.inFlight[0]
	w.inFlight = w.inFlight[1:]
	w.excuses++
	current := o.seq == w.m.beat.inFlight
	if fail {
		if current {
			w.hold = w.now.Add(80 * time.Millisecond)
		}
		w.m.HeartbeatFailed(w.now, o.seq, errors.New("lost"))
		w.free++ // the lookup after it may be at once
		w.ready()
		return
	}
	r := w.answerOf(t, o)
	if current && w.m.State() != Leaving && slices.Contains([]int16{7, 14, 29, -1}, r.ErrorCode) {
		w.hold = w.now.Add(80 * time.Millisecond)
	}
	if r.ErrorCode == 0 {
		w.excuses--
		if current && o.req.MemberEpoch >= 0 && w.m.State() != Leaving {
			w.epoch = r.MemberEpoch
		}
		w.free++
	} else if w.leaving && o.seq == w.m.exit.inFlight && slices.Contains([]int16{14, 15, 16, 7, 13}, r.ErrorCode) {
		w.undone++
	}
	w.m.HeartbeatAnswered(w.now, o.seq, r)
	if len(w.m.current.Warmup) > 0 {
		w.excuses++ // the acceptable lag may have become known
	}
	w.ready()
}
