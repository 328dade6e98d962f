package membership

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
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

func TestLoopLeaveModes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		static bool
		mode   LeaveMode
		want   []int32 // after the acknowledgement
	}{
		{"dynamic default", false, LeaveDefault, []int32{-1}},
		{"dynamic leave", false, LeaveGroup, []int32{-1}},
		{"dynamic remain", false, RemainInGroup, nil},
		{"static default", true, LeaveDefault, []int32{-2}},
		{"static leave", true, LeaveGroup, []int32{-1}},
		{"static remain", true, RemainInGroup, []int32{-2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.answer = plain
				cfg := testConfig()
				if tt.static {
					cfg.InstanceID = "instance"
				}
				h := c.start(cfg)
				sleep(500 * time.Millisecond)
				if err := h.leave(tt.mode); err != nil {
					t.Errorf("Leave: %v", err)
				}
				if err := h.end(); err != nil {
					t.Errorf("Run: %v", err)
				}
				got := c.got()[2:]
				if !slices.Equal(epochs(got), tt.want) {
					t.Errorf("sent %v, want %v", epochs(got), tt.want)
				}
				for _, r := range got {
					if (r.InstanceID != nil) != tt.static {
						t.Errorf("instance id %v", r.InstanceID)
					}
				}
			})
		})
	}
}

// A heartbeat is in flight and its answer is late: the leave overtakes it,
// goes out once and keeps the caller's deadline.
func TestLoopLeaveOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = plain
		c.late = func(n int) {
			if n == 2 {
				time.Sleep(4 * time.Second)
			}
		}
		h := c.start(testConfig())
		sleep(1500 * time.Millisecond)
		if got := c.got(); len(got) != 3 {
			t.Fatalf("%d requests, want the third in flight", len(got))
		}
		before := time.Now()
		if err := h.leave(LeaveDefault); err != nil {
			t.Errorf("Leave: %v", err)
		}
		if d := time.Since(before); d > 4*time.Second {
			t.Errorf("leaving took %v", d)
		}
		if err := h.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		sleep(time.Minute)
		if got := epochs(c.got()); !slices.Equal(got, []int32{0, 1, 1, -1}) {
			t.Errorf("sent %v", got)
		}
	})
}

// Nobody answers: Leave ends with the caller's context, and Run with it.
func TestLoopLeaveDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = plain
		c.late = func(n int) {
			if n >= 2 {
				time.Sleep(time.Minute)
			}
		}
		h := c.start(testConfig())
		sleep(1500 * time.Millisecond)
		before := time.Now()
		if err := h.leave(LeaveDefault); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Leave: %v, want the deadline", err)
		}
		if err := h.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if d := time.Since(before); d != 5*time.Second {
			t.Errorf("took %v, want 5s", d)
		}
		sleep(2 * time.Minute) // let the broker finish
	})
}

func TestLoopLeaveBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = plain
		loop, err := NewLoop(c.client, testConfig(), Callbacks{})
		if err != nil {
			t.Fatal(err)
		}
		if err := loop.Leave(context.Background(), LeaveDefault); err != nil {
			t.Errorf("Leave: %v", err)
		}
		if err := loop.Run(context.Background()); err != nil {
			t.Errorf("Run after Leave: %v", err)
		}
		if err := loop.Run(context.Background()); !errors.Is(err, ErrRunning) {
			t.Errorf("second Run: %v", err)
		}
		if n := len(c.got()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// A context that ends is a crash: nothing is sent. The leave can follow later.
func TestLoopCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = plain
		h := c.start(testConfig())
		sleep(500 * time.Millisecond)
		h.cancel()
		if err := h.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		sleep(10 * time.Second)
		if got := epochs(c.got()); !slices.Equal(got, []int32{0, 1}) {
			t.Errorf("sent %v", got)
		}
		if err := h.leave(LeaveDefault); err != nil {
			t.Errorf("Leave: %v", err)
		}
		if got := epochs(c.got()); !slices.Equal(got, []int32{0, 1, -1}) {
			t.Errorf("sent %v", got)
		}
	})
}

// The application's shutdown is asked for at once; it ends every Run with a
// typed error. A dynamic member then stays silent, a static one keeps its place.
func TestLoopShutdown(t *testing.T) {
	for _, static := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.answer = func(r received) (*kmsg.StreamsGroupHeartbeatResponse, error) {
				resp, err := plain(r)
				if r.ShutdownApplication && r.MemberEpoch > 0 {
					withStatus(resp, StatusShutdownApplication)
				}
				return resp, err
			}
			cfg := testConfig()
			want := []int32{0, 1, 1}
			if static {
				cfg.InstanceID = "instance"
				want = append(want, -2)
			}
			h := c.start(cfg)
			sleep(300 * time.Millisecond)
			h.RequestShutdown()
			if err := h.end(); !errors.Is(err, ErrShutdownRequested) {
				t.Errorf("Run: %v", err)
			}
			if d := time.Since(c.began); d >= time.Second {
				t.Errorf("took %v, want at once", d)
			}
			if err := h.leave(LeaveDefault); err != nil {
				t.Errorf("Leave: %v", err)
			}
			if got := epochs(c.got()); !slices.Equal(got, want) {
				t.Errorf("static %v: sent %v, want %v", static, got, want)
			}
		})
	}
}

func TestLoopCoordinatorMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = func(r received) (*kmsg.StreamsGroupHeartbeatResponse, error) {
			if r.node != c.node {
				return refusal(kerr.NotCoordinator.Code, "moved"), nil
			}
			resp, err := plain(r)
			resp.EndpointInformationEpoch = 7
			return resp, err
		}
		h := c.start(testConfig())
		sleep(1500 * time.Millisecond)
		c.set(func() { c.node = 1 })
		sleep(time.Second)
		got := c.got()
		last := got[len(got)-1]
		if last.node != 1 || last.ActiveTasks == nil || last.Topology != nil || last.MemberEpoch != 1 {
			t.Errorf("to the new coordinator: %+v", last)
		}
		if last.EndpointInformationEpoch != -1 {
			t.Errorf("endpoint epoch %d for another coordinator, want -1", last.EndpointInformationEpoch)
		}
		if len(h.lost) != 0 {
			t.Errorf("tasks lost: %v", h.lost)
		}
		if err := h.leave(LeaveDefault); err != nil {
			t.Error(err)
		}
	})
}

// Connections break for a minute: the member keeps its tasks, asks again
// without haste, and says what it owns when it is heard again.
func TestLoopDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		broken := false
		c.answer = func(r received) (*kmsg.StreamsGroupHeartbeatResponse, error) {
			if broken && r.MemberEpoch > 0 {
				return nil, errHangUp
			}
			return plain(r)
		}
		h := c.start(testConfig())
		sleep(1500 * time.Millisecond)
		before := len(c.got())
		c.set(func() { broken = true })
		sleep(time.Minute)
		n := len(c.got()) - before
		if n < 20 || n > 100 {
			t.Errorf("%d attempts in a minute", n)
		}
		c.set(func() { broken = false })
		sleep(2 * time.Second)
		if h.State() != Stable || len(h.lost) != 0 {
			t.Errorf("state %v, lost %v", h.State(), h.lost)
		}
		got := c.got()
		if r := got[before+n]; r.ActiveTasks == nil || r.Topology != nil {
			t.Errorf("the first heartbeat that is heard again: %+v", r)
		}
		if err := h.leave(LeaveDefault); err != nil {
			t.Error(err)
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

func TestLoopUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.maxVersion = -1
		h := c.start(testConfig())
		err := h.end()
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "4.1 or later (streams groups)") {
			t.Errorf("Run: %v", err)
		}
		if h.State() != Fatal {
			t.Errorf("state %v", h.State())
		}
		if err := h.leave(LeaveGroup); err != nil {
			t.Errorf("Leave: %v", err)
		}
	})
}

func TestLoopUnreachable(t *testing.T) {
	refused := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, kgo.Dialer(refused))
		h := c.start(testConfig())
		err := h.end()
		if _, ok := errors.AsType[*UnreachableError](err); !ok || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("Run: %v", err)
		}
		if d := time.Since(c.began); d < 30*time.Second || d > 32*time.Second {
			t.Errorf("took %v, want 30s", d)
		}
	})
}

// One of the seeds is down for good: the other one is asked.
func TestLoopOneSeedDown(t *testing.T) {
	for _, down := range []string{"localhost:9092", "localhost:9093"} {
		synctest.Test(t, func(t *testing.T) {
			var c *cluster
			c = newCluster(t, kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == down {
					return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
				}
				return c.network.DialContext(ctx, network, addr)
			}))
			c.answer = plain
			if down == "localhost:9092" {
				c.node = 1
			}
			h := c.start(testConfig())
			sleep(5 * time.Second)
			if h.State() != Stable {
				t.Errorf("%s down: state %v", down, h.State())
			}
		})
	}
}

// Brokers that come up later are waited for.
func TestLoopLateBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cluster
		c = newCluster(t, kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if time.Since(c.began) < 10*time.Second {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return c.network.DialContext(ctx, network, addr)
		}))
		c.answer = plain
		h := c.start(testConfig())
		sleep(13 * time.Second)
		if h.State() != Stable {
			t.Errorf("state %v", h.State())
		}
		if err := h.leave(LeaveDefault); err != nil {
			t.Error(err)
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

// The client is closed under the loop.
func TestLoopClientClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = plain
		h := c.start(testConfig())
		sleep(500 * time.Millisecond)
		c.client.Close()
		if err := h.end(); !errors.Is(err, errClientClosed) {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestLoopFatal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.answer = func(r received) (*kmsg.StreamsGroupHeartbeatResponse, error) {
			return refusal(kerr.InvalidRequest.Code, "Topology updates are not supported yet."), nil
		}
		h := c.start(testConfig())
		err := h.end()
		if !errors.Is(err, ErrTopologyMismatch) || !errors.Is(err, kerr.InvalidRequest) {
			t.Errorf("Run: %v", err)
		}
		if err := h.leave(LeaveGroup); err != nil {
			t.Errorf("Leave: %v", err)
		}
		if n := len(c.got()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
}
