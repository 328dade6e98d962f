package membership

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func ids(ss ...string) (out []TaskID) {
	for _, s := range ss {
		t, err := ParseTaskID(s)
		if err != nil {
			panic(err)
		}
		out = append(out, t)
	}
	return out
}

// A change in one role resends all three; no change sends none.
func TestListsTravelTogether(t *testing.T) {
	d := drive(t, testConfig())
	d.m.Join(d.now)
	d.pump()
	if l := d.last(); l.ActiveTasks == nil || l.StandbyTasks == nil || l.WarmupTasks == nil || len(l.ActiveTasks) > 0 {
		t.Errorf("joined with %+v", l)
	}
	d.answer(granted(1, tasks("0", 0), tasks("0", 1), none))
	d.answer(ok(1))
	if l := d.next(); l.ActiveTasks != nil || l.StandbyTasks != nil || l.WarmupTasks != nil {
		t.Errorf("nothing changed, and it sends %+v", l)
	}
	d.answer(granted(1, tasks("0", 0), none, none))
	l := d.last()
	if !reflect.DeepEqual(l.ActiveTasks, tasks("0", 0)) || l.StandbyTasks == nil || len(l.StandbyTasks) > 0 || l.WarmupTasks == nil {
		t.Errorf("a standby was taken away, and it sends %+v", l)
	}
	if l.at != d.now {
		t.Errorf("acknowledged %v later", l.at.Sub(d.now))
	}
	d.answer(ok(1))
	// The same target again is no news.
	n := len(d.assigned)
	d.beat(granted(1, tasks("0", 0), none, none))
	if len(d.assigned) != n || d.m.State() != Stable {
		t.Errorf("assigned %v in state %v", d.assigned[n:], d.m.State())
	}
	if l := d.next(); l.ActiveTasks != nil {
		t.Errorf("nothing changed, and it sends %+v", l)
	}
}

func TestAssignmentIsSorted(t *testing.T) {
	d := drive(t, testConfig())
	d.m.Join(d.now)
	d.pump()
	active := []kmsg.TaskIDs{
		{SubtopologyID: "10", Partitions: []int32{0}},
		{SubtopologyID: "2", Partitions: []int32{3, 1, 3}},
		{SubtopologyID: "10", Partitions: []int32{0, 2}},
	}
	d.answer(granted(1, active, none, none))
	if got, want := d.assigned[0].Active, ids("2_1", "2_3", "10_0", "10_2"); !slices.Equal(got, want) {
		t.Errorf("active %v, want %v", got, want)
	}
	want := []kmsg.TaskIDs{{SubtopologyID: "2", Partitions: []int32{1, 3}}, {SubtopologyID: "10", Partitions: []int32{0, 2}}}
	if got := d.last().ActiveTasks; !reflect.DeepEqual(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

// Assignments may be superseded, and acknowledged in part or late.
func TestSuperseded(t *testing.T) {
	d := joined(t, testConfig())
	d.noAck = true
	d.beat(granted(1, tasks("0", 0), none, none))       // A
	d.beat(granted(2, tasks("0", 0, 2), none, none))    // B
	d.beat(granted(2, tasks("0", 0), none, none))       // A again
	d.beat(granted(2, tasks("0", 0, 2, 3), none, none)) // C
	as := d.assigned[len(d.assigned)-4:]
	for i := 1; i < 4; i++ {
		if as[i].LocalEpoch != as[i-1].LocalEpoch+1 {
			t.Errorf("local epochs %d, %d", as[i-1].LocalEpoch, as[i].LocalEpoch)
		}
	}
	if d.m.State() != Reconciling || d.m.Epoch() != 2 {
		t.Errorf("state %v, epoch %d", d.m.State(), d.m.Epoch())
	}
	d.m.Reconciled(as[3].LocalEpoch + 1) // never offered
	d.quiet(500 * time.Millisecond)
	d.m.Reconciled(as[1].LocalEpoch)
	d.pump()
	if l := d.last(); !reflect.DeepEqual(l.ActiveTasks, tasks("0", 0, 2)) || d.m.State() != Reconciling {
		t.Errorf("B acknowledged with %v, state %v", l.ActiveTasks, d.m.State())
	}
	d.answer(ok(2))
	d.m.Reconciled(as[0].LocalEpoch) // passed already
	d.quiet(500 * time.Millisecond)
	d.m.Reconciled(as[3].LocalEpoch)
	d.pump()
	if l := d.last(); !reflect.DeepEqual(l.ActiveTasks, tasks("0", 0, 2, 3)) || d.m.State() != Stable {
		t.Errorf("C acknowledged with %v, state %v", l.ActiveTasks, d.m.State())
	}
}

// An acknowledgement that waits for an answer isn't lost when that answer
// brings the next assignment.
func TestAcknowledgeAcrossAssignment(t *testing.T) {
	d := joined(t, testConfig())
	d.noAck = true
	d.beat(granted(1, tasks("0", 0), none, none))
	d.next()
	d.m.Reconciled(d.assigned[len(d.assigned)-1].LocalEpoch)
	d.quiet(0)
	if d.m.State() != Acknowledging {
		t.Fatalf("state %v", d.m.State())
	}
	d.answer(granted(2, tasks("0", 0, 5), none, none))
	if l := d.last(); l.at != d.now || !reflect.DeepEqual(l.ActiveTasks, tasks("0", 0)) {
		t.Errorf("acknowledged with %+v", l)
	}
	if d.m.State() != Reconciling {
		t.Errorf("state %v", d.m.State())
	}
}

// A reconciliation is abandoned if the member rejoined meanwhile.
func TestReconciledOfAFormerLife(t *testing.T) {
	d := joined(t, testConfig())
	d.noAck = true
	d.beat(granted(2, tasks("0", 0, 1, 2), none, none))
	old := d.assigned[len(d.assigned)-1].LocalEpoch
	d.beat(refusal(25, ""))
	d.m.Reconciled(old)
	d.quiet(time.Minute)
	d.m.LostDone(d.now)
	d.pump()
	d.answer(granted(3, tasks("0", 0, 1, 2), none, none))
	d.m.Reconciled(old)
	d.quiet(500 * time.Millisecond)
	if d.m.State() != Reconciling {
		t.Errorf("state %v", d.m.State())
	}
}

func TestJoinAnswers(t *testing.T) {
	for _, tt := range []struct {
		name string
		resp *kmsg.StreamsGroupHeartbeatResponse
	}{
		{"nothing assigned", granted(3, none, none, none)},
		{"null lists", ok(3)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := drive(t, testConfig())
			d.m.Join(d.now)
			d.pump()
			d.answer(tt.resp)
			if l := d.last(); l.MemberEpoch != 3 || l.ActiveTasks == nil || l.at != d.now {
				t.Errorf("acknowledged with %+v", l)
			}
			d.answer(ok(3))
			if d.m.State() != Stable {
				t.Errorf("state %v", d.m.State())
			}
		})
	}
	t.Run("mixed lists", func(t *testing.T) {
		d := joined(t, testConfig())
		resp := ok(1)
		resp.ActiveTasks = tasks("0", 0)
		d.beat(resp)
		if _, isIt := errors.AsType[*AnswerError](d.err); !isIt || d.m.State() != Fatal {
			t.Errorf("ended with %v", d.err)
		}
	})
	t.Run("no epoch", func(t *testing.T) {
		d := joined(t, testConfig())
		d.beat(ok(0))
		if _, isIt := errors.AsType[*AnswerError](d.err); !isIt {
			t.Errorf("ended with %v", d.err)
		}
	})
}

// The coordinator's intervals may change at any time.
func TestIntervals(t *testing.T) {
	d := joined(t, testConfig())
	at := d.last().at
	if l := d.next(); l.at.Sub(at) != time.Second {
		t.Errorf("heartbeat after %v", l.at.Sub(at))
	}
	slower := ok(1)
	slower.HeartbeatIntervalMillis = 5000
	d.answer(slower)
	at = d.last().at
	if l := d.next(); l.at.Sub(at) != 5*time.Second {
		t.Errorf("heartbeat after %v", l.at.Sub(at))
	}
	zero := ok(1)
	zero.HeartbeatIntervalMillis = 0
	d.answer(zero)
	at = d.last().at
	if l := d.next(); l.at.Sub(at) != 5*time.Second {
		t.Errorf("heartbeat after %v", l.at.Sub(at))
	}
	// No answer, no heartbeat.
	d.quiet(time.Minute)
}

func TestRequestShutdown(t *testing.T) {
	d := joined(t, testConfig())
	d.advance(300 * time.Millisecond)
	d.m.RequestShutdown()
	d.pump()
	if l := d.last(); l.at != d.now || !l.ShutdownApplication {
		t.Errorf("sent %+v", l)
	}
	d.answer(ok(1))
	n := len(d.sent)
	d.m.RequestShutdown()
	d.pump()
	if len(d.sent) != n {
		t.Errorf("said twice at once")
	}
	if l := d.next(); !l.ShutdownApplication {
		t.Errorf("the next heartbeat forgot it")
	}
}
