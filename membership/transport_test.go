package membership

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestThrottle(t *testing.T) {
	d := joined(t, testConfig())
	d.next()
	held := granted(2, tasks("0", 0), none, none)
	held.ThrottleMillis = 7000
	held.TopologyDescriptionRequired = true
	at := d.now
	d.answer(held)
	d.m.RequestShutdown()
	d.pump()
	if len(d.pushed) != 0 || d.last().at == d.now && d.last().ActiveTasks != nil {
		t.Fatalf("sent while throttled")
	}
	if l := d.next(); l.at.Sub(at) != 7*time.Second || l.ActiveTasks == nil {
		t.Errorf("after %v: %+v", l.at.Sub(at), l)
	}
	if len(d.pushed) != 1 {
		t.Errorf("%d pushes", len(d.pushed))
	}
	// A shorter one doesn't end a longer one.
	long, short := ok(2), &kmsg.StreamsGroupTopologyDescriptionUpdateResponse{ThrottleMillis: 10}
	long.ThrottleMillis = 9000
	at = d.now
	d.answer(long)
	d.m.DescriptionAnswered(d.now, d.pushed[0], short)
	d.pump()
	if l := d.next(); l.at.Sub(at) != 9*time.Second {
		t.Errorf("after %v: %+v", l.at.Sub(at), l)
	}
}

func TestUnreachable(t *testing.T) {
	cfg := testConfig()
	d := drive(t, cfg)
	d.noCoordinator = true
	d.m.Join(d.now)
	d.pump()
	cause := errors.New("connection refused")
	for d.err == nil && d.now.Sub(zeroTime) < time.Hour {
		if d.asking != 0 {
			d.m.CoordinatorFailed(d.now, d.asking, cause)
			d.asking = 0
			d.pump()
		}
		d.advance(100 * time.Millisecond)
	}
	e, isIt := errors.AsType[*UnreachableError](d.err)
	if !isIt || !errors.Is(d.err, cause) || e.After != DefaultStartTimeout {
		t.Errorf("ended with %v", d.err)
	}
	if n := len(d.lookups); n < 20 || n > 60 {
		t.Errorf("%d lookups", n)
	}

	// The coordinator answers lookups, but can't be reached itself.
	d = drive(t, cfg)
	d.m.Join(d.now)
	d.pump()
	for d.err == nil && d.now.Sub(zeroTime) < time.Hour {
		d.m.HeartbeatFailed(d.now, d.last().seq, cause)
		d.pump()
		d.advance(100 * time.Millisecond)
	}
	if _, isIt := errors.AsType[*UnreachableError](d.err); !isIt {
		t.Errorf("ended with %v", d.err)
	}

	// A coordinator that isn't available yet is waited for.
	d = drive(t, cfg)
	d.noCoordinator = true
	d.m.Join(d.now)
	d.pump()
	d.m.CoordinatorFailed(d.now, d.asking, cause) // the first broker is down
	d.advance(time.Second)
	for d.err == nil && d.now.Sub(zeroTime) < time.Hour {
		d.m.CoordinatorAnswered(d.now, d.asking, -1, 15, "")
		d.pump()
		d.advance(time.Second)
	}
	if d.err != nil {
		t.Errorf("ended with %v", d.err)
	}
}

func TestInstanceIDWait(t *testing.T) {
	cfg := testConfig()
	cfg.InstanceID, cfg.InstanceIDWait = "instance", 10*time.Second
	d := drive(t, cfg)
	d.m.Join(d.now)
	d.pump()
	for range 5 {
		d.answer(refusal(111, "owned by somebody"))
		d.next()
	}
	if len(d.warnings) != 1 || !errors.Is(d.warnings[0], ErrInstanceIDInUse) {
		t.Errorf("warnings %v", d.warnings)
	}
	d.answer(granted(4, tasks("0", 0), none, none))
	if d.err != nil || d.m.Epoch() != 4 {
		t.Errorf("err %v, epoch %d", d.err, d.m.Epoch())
	}
	// The next time is another wait.
	d.advance(time.Minute)
	d.answer(ok(4)) // the next heartbeat is due already
	d.answer(refusal(25, ""))
	d.m.LostDone(d.now)
	d.pump()
	d.answer(refusal(111, "owned by somebody"))
	d.beat(refusal(111, "owned by somebody"))
	if d.err != nil {
		t.Errorf("ended with %v", d.err)
	}

	d = drive(t, cfg)
	d.m.Join(d.now)
	d.pump()
	for range 100 {
		d.answer(refusal(111, "owned by somebody"))
		if d.err != nil {
			break
		}
		d.next()
	}
	if !errors.Is(d.err, ErrInstanceIDInUse) || d.now.Sub(zeroTime) != 10*time.Second {
		t.Errorf("after %v: %v", d.now.Sub(zeroTime), d.err)
	}
}

// Answers to what was given up are ignored.
func TestLateAnswers(t *testing.T) {
	d := joined(t, testConfig())
	d.next()
	old := d.last().seq
	d.m.HeartbeatFailed(d.now, old, errors.New("time-out"))
	d.pump()
	d.next()
	d.m.HeartbeatAnswered(d.now, old, granted(9, tasks("0", 9), none, none))
	d.m.HeartbeatFailed(d.now, old, errors.New("again"))
	d.m.HeartbeatAnswered(d.now, 0, granted(9, none, none, none))
	d.pump()
	if d.m.Epoch() != 1 || d.m.State() != Stable {
		t.Errorf("epoch %d, state %v", d.m.Epoch(), d.m.State())
	}
	d.answer(ok(2))
	if d.m.Epoch() != 2 {
		t.Errorf("epoch %d", d.m.Epoch())
	}
}

// A request that was answered is reused, one that wasn't is left alone.
func TestRequestMemory(t *testing.T) {
	d := joined(t, testConfig())
	a := d.next().memory
	d.answer(ok(1))
	b := d.next().memory
	if a != b {
		t.Error("an answered request wasn't reused")
	}
	d.m.HeartbeatFailed(d.now, d.last().seq, errors.New("lost"))
	d.pump()
	if c := d.next().memory; b == c {
		t.Error("a request that may still be read was reused")
	}
}

func TestTransportErrorsThatDontPass(t *testing.T) {
	for _, err := range []error{ErrUnsupported, errClientClosed, kerr.SaslAuthenticationFailed} {
		d := joined(t, testConfig())
		d.next()
		d.m.HeartbeatFailed(d.now, d.last().seq, err)
		d.pump()
		if !errors.Is(d.err, err) || d.m.State() != Fatal {
			t.Errorf("%v: ended with %v", err, d.err)
		}
	}
}
