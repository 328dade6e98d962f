package membership

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

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
