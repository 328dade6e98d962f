package membership

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
		var log bytes.Buffer
		cfg := testConfig()
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		h := c.start(cfg)
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
		// Said once, not with every attempt.
		if n := strings.Count(log.String(), "doesn't answer"); n != 1 || strings.Count(log.String(), "answers again") != 1 {
			t.Errorf("the log says:\n%s", &log)
		}
		if err := h.leave(LeaveDefault); err != nil {
			t.Error(err)
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
