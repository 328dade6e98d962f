package membership

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// epochs of the requests, in order.
func epochs(rs []received) (out []int32) {
	for _, r := range rs {
		out = append(out, r.MemberEpoch)
	}
	return out
}

// sleep lets virtual time pass, and everything settle.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestLoopLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = plain
		h := c.start(testConfig())
		sleep(2500 * time.Millisecond)
		if s := h.State(); s != Stable {
			t.Errorf("state %v, want STABLE", s)
		}
		if e := h.MemberEpoch(); e != 1 {
			t.Errorf("epoch %d, want 1", e)
		}
		if err := h.leave(LeaveDefault); err != nil {
			t.Errorf("Leave: %v", err)
		}
		if err := h.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		got := c.got()
		if want := []int32{0, 1, 1, 1, -1}; !slices.Equal(epochs(got), want) {
			t.Fatalf("epochs %v, want %v", epochs(got), want)
		}
		if got[0].Topology == nil || got[1].Topology != nil {
			t.Errorf("the topology belongs into the join only")
		}
		if !reflect.DeepEqual(got[1].ActiveTasks, tasks("0", 0, 1)) || got[2].ActiveTasks != nil {
			t.Errorf("acknowledged %v, then %v", got[1].ActiveTasks, got[2].ActiveTasks)
		}
		if d := got[2].at - got[1].at; d != time.Second {
			t.Errorf("%v between heartbeats, want 1s", d)
		}
		want := []State{Joining, Reconciling, Acknowledging, Stable, PrepareLeaving, Leaving, Unsubscribed}
		if !slices.Equal(h.states, want) {
			t.Errorf("states %v, want %v", h.states, want)
		}
		if err := h.leave(LeaveGroup); err != nil || len(c.got()) != len(got) {
			t.Errorf("a second leave: %v, %d requests", err, len(c.got())-len(got))
		}
	})
}

func TestLoopNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = plain
		cfg := testConfig()
		cfg.RebalanceTimeout = 5 * time.Second
		h := c.start(cfg)
		sleep(2 * time.Second)
		h.Progress()
		sleep(4 * time.Second)
		if h.State() != Stable {
			t.Fatalf("state %v before the time-out", h.State())
		}
		sleep(2 * time.Second)
		if h.State() != Stale || h.MemberEpoch() != -1 {
			t.Fatalf("state %v, epoch %d after the time-out", h.State(), h.MemberEpoch())
		}
		if len(h.lost) != 1 || !errors.Is(h.lost[0], ErrNoProgress) {
			t.Errorf("lost: %v", h.lost)
		}
		sleep(10 * time.Second)
		if h.State() != Stale {
			t.Fatalf("state %v without progress", h.State())
		}
		h.Progress()
		sleep(100 * time.Millisecond)
		if h.State() != Stable || h.MemberEpoch() != 1 {
			t.Errorf("state %v, epoch %d after the progress", h.State(), h.MemberEpoch())
		}
		got := epochs(c.got())
		if i := slices.Index(got, -1); i < 0 || !slices.Equal(got[i:], []int32{-1, 0, 1}) {
			t.Errorf("sent %v", got)
		}
	})
}

func TestLoopFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = plain
		h := c.start(testConfig())
		sleep(500 * time.Millisecond)
		h.mu.Lock()
		h.manual = true
		h.mu.Unlock()
		why := errors.New("commit refused")
		h.Fence(why)
		h.Fence(why)
		sleep(100 * time.Millisecond)
		if len(h.lost) != 1 || h.lost[0] != why {
			t.Fatalf("lost: %v", h.lost)
		}
		h.LostDone()
		sleep(100 * time.Millisecond)
		got := c.got()
		if want := []int32{0, 1, -1, 0}; !slices.Equal(epochs(got), want) {
			t.Fatalf("sent %v, want %v", epochs(got), want)
		}
		if got[3].MemberID != "member" || got[3].Topology == nil {
			t.Errorf("rejoins with %+v", got[3])
		}
		if n := len(h.assigned); n != 2 {
			t.Errorf("%d assignments", n)
		}
		h.Reconciled(h.assigned[0].LocalEpoch) // of the former life
		sleep(100 * time.Millisecond)
		if h.State() != Reconciling {
			t.Errorf("state %v", h.State())
		}
		h.Reconciled(h.assigned[1].LocalEpoch)
		sleep(100 * time.Millisecond)
		if h.State() != Stable {
			t.Errorf("state %v", h.State())
		}
	})
}

// A coordinator that speaks version 0 only gets neither task offsets nor
// warm-up tasks, also if the member had them when it moved there.
func TestLoopVersion0(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.maxVersion = 0
		c.answer = func(r received) (*kmsg.StreamsGroupHeartbeatResponse, error) {
			if r.MemberEpoch == 0 {
				return granted(1, tasks("0", 0), none, tasks("0", 1)), nil
			}
			return plain(r)
		}
		h := c.start(testConfig())
		h.SetTaskOffsets(map[TaskID]int64{{"0", 1}: 5}, map[TaskID]int64{{"0", 1}: 5})
		sleep(5 * time.Second)
		got := c.got()
		for _, r := range got {
			if r.Version != 0 || r.TaskOffsets != nil || r.TaskEndOffsets != nil || len(r.WarmupTasks) > 0 {
				t.Errorf("request %d: %+v", r.n, r)
			}
		}
		if r := got[1]; r.WarmupTasks == nil || r.ActiveTasks == nil {
			t.Errorf("acknowledgement: %+v", r)
		}
	})
}

func TestLoopDescription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ask := map[int]bool{0: true, 3: true, 5: true}
		c.answer = func(r received) (*kmsg.StreamsGroupHeartbeatResponse, error) {
			resp, err := plain(r)
			resp.TopologyDescriptionRequired = ask[r.n]
			return resp, err
		}
		codes := []int16{kerr.CoordinatorLoadInProgress.Code, 0, kerr.StreamsTopologyDescriptionUpdateFailed.Code, 0}
		c.pushCode = func(n int) int16 { return codes[n-1] }
		h := c.start(testConfig())
		sleep(10 * time.Second)
		c.set(func() {
			if len(c.pushes) != 4 {
				t.Errorf("%d pushes, want 4", len(c.pushes))
			}
			if p := c.pushes[0]; p.MemberID != "member" || p.Group != "app" || len(p.TopologyDescription.Subtopologies) != 1 {
				t.Errorf("pushed %+v", p)
			}
		})
		if len(h.warnings) != 1 || !errors.Is(h.warnings[0], kerr.StreamsTopologyDescriptionUpdateFailed) {
			t.Errorf("warnings %v", h.warnings)
		}
		if h.State() != Stable {
			t.Errorf("state %v", h.State())
		}
	})
}
