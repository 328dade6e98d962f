package membership

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// bring makes a member and brings it into a state.
func bring(t *testing.T, cfg Config, to State) *driver {
	t.Helper()
	d := joined(t, cfg)
	switch to {
	case Unsubscribed:
		d = drive(t, cfg)
	case Joining:
		d = drive(t, cfg)
		d.m.Join(d.now)
		d.pump()
	case Reconciling:
		d.noAck = true
		d.beat(granted(2, tasks("0", 0), none, none))
	case Acknowledging:
		d.noAck = true
		d.beat(granted(2, tasks("0", 0), none, none))
		d.next()
		d.m.Reconciled(d.assigned[len(d.assigned)-1].LocalEpoch)
	case Fenced:
		d.beat(refusal(25, ""))
	case PrepareLeaving:
		d.m.Fence(d.now, errors.New("commit refused"))
	case Leaving:
		d.m.Fence(d.now, errors.New("commit refused"))
		d.m.LostDone(d.now)
	case Stale:
		d.next()
		d.pass(DefaultRebalanceTimeout, false)
	case Fatal:
		d.beat(refusal(42, ""))
	}
	if d.m.State() != to {
		t.Fatalf("brought to %v, want %v", d.m.State(), to)
	}
	return d
}

func TestLeaveFromEveryState(t *testing.T) {
	for _, tt := range []struct {
		from State
		want []int32 // epochs sent after Leave
	}{
		{Unsubscribed, nil},
		{Joining, []int32{-1}}, // the join may have arrived
		{Reconciling, []int32{-1}},
		{Acknowledging, []int32{-1}},
		{Stable, []int32{-1}},
		{Fenced, nil},
		{PrepareLeaving, []int32{-1}},
		{Leaving, []int32{-1}},
		{Stale, nil},
		{Fatal, nil},
	} {
		t.Run(tt.from.String(), func(t *testing.T) {
			d := bring(t, testConfig(), tt.from)
			n := len(d.sent)
			d.m.Leave(d.now, LeaveDefault)
			d.m.Leave(d.now, LeaveGroup)
			d.pump()
			var got []int32
			for _, s := range d.sent[n:] {
				got = append(got, s.MemberEpoch)
				if s.ActiveTasks != nil || s.Topology != nil {
					t.Errorf("left with %+v", s)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Fatalf("sent %v, want %v", got, tt.want)
			}
			if len(tt.want) > 0 {
				if d.done {
					t.Error("done before the answer")
				}
				d.answer(ok(-1))
			}
			if !d.done || d.m.LeaveErr() != nil {
				t.Errorf("done %v, err %v", d.done, d.m.LeaveErr())
			}
			// Nothing brings it back.
			d.m.LostDone(d.now)
			d.m.Join(d.now)
			d.m.Fence(d.now, errors.New("late"))
			d.m.RequestShutdown()
			d.m.Progress(d.now.Add(time.Hour))
			d.quiet(2 * time.Hour)
		})
	}
}

func TestLeaveBeforeAJoinWentOut(t *testing.T) {
	d := drive(t, testConfig())
	d.noCoordinator = true
	d.m.Join(d.now)
	d.pump()
	d.m.Leave(d.now, LeaveGroup)
	d.pump()
	if !d.done || len(d.sent) != 0 {
		t.Errorf("done %v, sent %d", d.done, len(d.sent))
	}
}

// A dynamic member that remains sends nothing, whatever it was about to do.
func TestRemainDynamic(t *testing.T) {
	for s := Unsubscribed; s <= Fatal; s++ {
		d := bring(t, testConfig(), s)
		n := len(d.sent)
		d.m.Leave(d.now, RemainInGroup)
		d.pump()
		if !d.done || len(d.sent) != n {
			t.Errorf("%v: done %v, sent %d", s, d.done, len(d.sent)-n)
		}
		d.quiet(time.Hour)
	}
}

func TestLeaveAnswers(t *testing.T) {
	t.Run("not the coordinator", func(t *testing.T) {
		d := joined(t, testConfig())
		d.m.Leave(d.now, LeaveGroup)
		d.pump()
		for _, code := range []int16{16, 15, 14} {
			n := len(d.sent)
			d.answer(refusal(code, "")) // it did nothing with it
			d.advance(2 * time.Second)
			if len(d.sent) != n+1 || d.last().MemberEpoch != -1 {
				t.Fatalf("%d: sent %d", code, len(d.sent)-n)
			}
		}
		d.answer(ok(-1))
		if !d.done || d.m.LeaveErr() != nil {
			t.Errorf("done %v, err %v", d.done, d.m.LeaveErr())
		}
	})
	t.Run("out already", func(t *testing.T) {
		d := joined(t, testConfig())
		d.m.Leave(d.now, LeaveGroup)
		d.pump()
		d.answer(refusal(25, ""))
		if !d.done || d.m.LeaveErr() != nil {
			t.Errorf("done %v, err %v", d.done, d.m.LeaveErr())
		}
	})
	t.Run("refused", func(t *testing.T) {
		d := joined(t, testConfig())
		d.m.Leave(d.now, LeaveGroup)
		d.pump()
		d.answer(refusal(30, ""))
		if !d.done || !errors.Is(d.m.LeaveErr(), kerr.GroupAuthorizationFailed) {
			t.Errorf("done %v, err %v", d.done, d.m.LeaveErr())
		}
	})
	t.Run("no answer", func(t *testing.T) {
		d := joined(t, testConfig())
		d.m.Leave(d.now, LeaveGroup)
		d.pump()
		lost := errors.New("connection lost")
		d.m.HeartbeatFailed(d.now, d.last().seq, lost)
		d.pump()
		if !d.done || !errors.Is(d.m.LeaveErr(), lost) {
			t.Errorf("done %v, err %v", d.done, d.m.LeaveErr())
		}
		d.quiet(time.Hour)
	})
	t.Run("given up", func(t *testing.T) {
		d := joined(t, testConfig())
		d.noCoordinator = true
		d.beat(refusal(16, ""))
		d.m.Leave(d.now, LeaveGroup)
		d.pump()
		n := len(d.sent)
		late := errors.New("too late")
		d.m.AbandonLeave(late)
		d.pump()
		d.m.CoordinatorAnswered(d.now, d.asking, 1, 0, "")
		d.pump()
		if !d.done || d.m.LeaveErr() != late || len(d.sent) != n {
			t.Errorf("done %v, err %v, sent %d", d.done, d.m.LeaveErr(), len(d.sent)-n)
		}
	})
	t.Run("an answer before it could be sent", func(t *testing.T) {
		d := joined(t, testConfig())
		asked := ok(1)
		asked.TopologyDescriptionRequired = true
		d.beat(asked)
		d.next()
		d.noCoordinator = true
		d.m.DescriptionAnswered(d.now, d.pushed[0], &kmsg.StreamsGroupTopologyDescriptionUpdateResponse{ErrorCode: 16})
		d.m.Leave(d.now, LeaveGroup)
		d.pump()
		if d.m.State() != Leaving {
			t.Fatalf("state %v", d.m.State())
		}
		d.m.Reconciled(1)
		d.answer(granted(5, tasks("0", 7), none, none))
		if d.m.Epoch() != -1 || d.m.State() != Leaving {
			t.Errorf("epoch %d, state %v", d.m.Epoch(), d.m.State())
		}
		d.m.CoordinatorAnswered(d.now, d.asking, 1, 0, "")
		d.pump()
		if l := d.last(); l.MemberEpoch != -1 {
			t.Errorf("sent %+v", l)
		}
	})
	t.Run("a late heartbeat", func(t *testing.T) {
		d := joined(t, testConfig())
		old := d.next().seq
		d.m.Leave(d.now, LeaveGroup)
		d.pump()
		d.m.HeartbeatAnswered(d.now, old, granted(5, tasks("0", 7), none, none))
		d.m.HeartbeatFailed(d.now, old, errors.New("gone"))
		d.pump()
		if d.m.Epoch() != -1 || d.m.State() != Unsubscribed || d.done {
			t.Errorf("epoch %d, state %v, done %v", d.m.Epoch(), d.m.State(), d.done)
		}
	})
}

// No progress for the rebalance time-out: also while tasks are revoked, and
// while others wait for their release.
func TestStale(t *testing.T) {
	for _, static := range []bool{false, true} {
		for _, from := range []State{Joining, Reconciling, Stable, PrepareLeaving} {
			cfg := testConfig()
			leave := int32(-1)
			if static {
				cfg.InstanceID, leave = "instance", -2
			}
			d := bring(t, cfg, from)
			d.pump()
			d.pass(DefaultRebalanceTimeout+time.Second, false)
			if d.m.State() != Stale || d.last().MemberEpoch != leave {
				t.Fatalf("%v: state %v, sent %+v", from, d.m.State(), d.last())
			}
			wantLost := 1
			if from == Joining {
				wantLost = 0
			}
			if len(d.lost) != wantLost {
				t.Errorf("%v: lost %v", from, d.lost)
			} else if from == Stable && !errors.Is(d.lost[0], ErrNoProgress) {
				t.Errorf("%v: lost %v", from, d.lost)
			}
			n := len(d.sent)
			d.pass(time.Hour, false)
			d.m.HeartbeatAnswered(d.now, d.last().seq, ok(leave))
			d.pass(time.Hour, false)
			d.m.LostDone(d.now)
			d.pass(time.Hour, false)
			if len(d.sent) != n {
				t.Fatalf("%v: sent %+v without progress", from, d.last())
			}
			d.m.Progress(d.now)
			d.pump()
			if l := d.last(); l.MemberEpoch != 0 || l.Topology == nil || l.MemberID != cfg.MemberID {
				t.Errorf("%v: rejoined with %+v", from, l)
			}
		}
	}

	// Progress before the tasks are released: the release is waited for.
	d := bring(t, testConfig(), Stale)
	d.now = d.now.Add(time.Second)
	d.m.Progress(d.now)
	d.quiet(time.Minute)
	d.m.LostDone(d.now)
	d.pump()
	if l := d.last(); l.MemberEpoch != 0 {
		t.Errorf("sent %+v", l)
	}

	// It stays in the group as long as there is progress.
	d = joined(t, testConfig())
	for range 20 {
		d.next()
		d.answer(ok(1))
	}
	d.pass(DefaultRebalanceTimeout-2*time.Second, false)
	if d.m.State() != Stable {
		t.Errorf("state %v", d.m.State())
	}
}

// No coordinator was ever found: there is nothing to leave.
func TestStaleBeforeAJoin(t *testing.T) {
	cfg := testConfig()
	cfg.StartTimeout = -1
	d := drive(t, cfg)
	d.noCoordinator = true
	d.m.Join(d.now)
	d.pump()
	d.pass(DefaultRebalanceTimeout, false)
	if d.m.State() != Stale || len(d.sent) != 0 {
		t.Errorf("state %v, sent %d", d.m.State(), len(d.sent))
	}
	d.now = d.now.Add(time.Second)
	d.m.Progress(d.now)
	d.pump()
	if d.m.State() != Joining {
		t.Errorf("state %v", d.m.State())
	}
}

// A commit shows that the member is fenced. The tasks are still the member's
// until they are released, so heartbeats go on; then it leaves and rejoins.
func TestFenceByCommit(t *testing.T) {
	why := errors.New("commit refused")
	for _, from := range []State{Reconciling, Acknowledging, Stable} {
		d := bring(t, testConfig(), from)
		d.noAck = false
		d.pump()
		for d.m.beat.inFlight != 0 {
			d.answer(ok(d.m.Epoch()))
		}
		d.m.Fence(d.now, why)
		d.m.Fence(d.now, why)
		d.pump()
		if len(d.lost) != 1 || d.lost[0] != why || d.m.State() != PrepareLeaving {
			t.Fatalf("%v: lost %v, state %v", from, d.lost, d.m.State())
		}
		if l := d.next(); l.MemberEpoch <= 0 {
			t.Errorf("%v: sent %+v", from, l)
		}
		n := len(d.assigned)
		d.answer(granted(9, tasks("0", 4), none, none))
		if len(d.assigned) != n {
			t.Errorf("%v: assigned %v while leaving", from, d.assigned[n:])
		}
		d.m.LostDone(d.now)
		d.pump()
		if l := d.last(); l.MemberEpoch != -1 || l.at != d.now || d.m.Epoch() != -1 {
			t.Errorf("%v: sent %+v", from, l)
		}
		d.answer(ok(-1))
		if l := d.last(); l.MemberEpoch != 0 || l.at != d.now {
			t.Errorf("%v: sent %+v", from, l)
		}
		d.answer(granted(9, tasks("0", 4), none, none))
		if len(d.assigned) != n+1 {
			t.Errorf("%v: assigned %v", from, d.assigned[n:])
		}
	}
	for _, from := range []State{Unsubscribed, Joining, Fenced, Stale, Fatal} {
		d := bring(t, testConfig(), from)
		n := len(d.lost)
		d.m.Fence(d.now, why)
		d.pump()
		if len(d.lost) != n || d.m.State() != from {
			t.Errorf("%v: lost %v, state %v", from, d.lost, d.m.State())
		}
	}
}

// The coordinator says the same in the meantime: no leave is needed.
func TestFenceTwice(t *testing.T) {
	d := bring(t, testConfig(), PrepareLeaving)
	d.pump()
	d.beat(refusal(25, ""))
	if len(d.lost) != 1 || d.m.State() != Fenced {
		t.Fatalf("lost %v, state %v", d.lost, d.m.State())
	}
	d.quiet(time.Minute)
	d.m.LostDone(d.now)
	d.pump()
	if l := d.last(); l.MemberEpoch != 0 {
		t.Errorf("sent %+v", l)
	}
}

// The leave before a rejoin gets no answer, or none that helps.
func TestRenewWithoutAnswer(t *testing.T) {
	for _, code := range []int16{0, 25, 16} {
		d := bring(t, testConfig(), PrepareLeaving)
		d.m.LostDone(d.now)
		d.pump()
		if code == 0 {
			d.m.HeartbeatFailed(d.now, d.last().seq, errors.New("lost"))
		} else {
			d.m.HeartbeatAnswered(d.now, d.last().seq, refusal(code, ""))
		}
		d.advance(time.Second)
		if l := d.last(); l.MemberEpoch != 0 {
			t.Errorf("%d: sent %+v", code, l)
		}
	}
}

// A member that owns nothing has nothing to release, and rejoins by itself.
func TestFencedWithoutTasks(t *testing.T) {
	d := drive(t, testConfig())
	d.m.Join(d.now)
	d.pump()
	d.answer(granted(1, none, none, none))
	d.answer(refusal(110, ""))
	if len(d.lost) != 0 || d.last().MemberEpoch != 0 || d.last().at != d.now {
		t.Errorf("lost %v, sent %+v", d.lost, d.last())
	}
}

// Tasks that were only offered may have been opened already.
func TestFencedWhileTaking(t *testing.T) {
	d := drive(t, testConfig())
	d.noAck = true
	d.m.Join(d.now)
	d.pump()
	d.answer(granted(1, tasks("0", 0), none, none))
	d.beat(refusal(110, ""))
	if len(d.lost) != 1 {
		t.Errorf("lost %v", d.lost)
	}
}
