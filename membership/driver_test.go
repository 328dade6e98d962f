package membership

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// driver drives a Member in logical time with a coordinator that is found at
// once, and keeps what the member says.
type driver struct {
	t   testing.TB
	m   *Member
	now time.Time

	sent      []sentBeat
	pushed    []uint64
	inquiries []uint64
	lookups   []time.Time
	assigned  []Assignment
	lost      []error
	ready     []Readiness
	warnings  []error
	moves     []Transition
	err       error
	done      bool
	wake      time.Time

	// noAck leaves assignments to the test, noCoordinator lookups.
	noAck, noCoordinator bool
	asking               uint64
}

type sentBeat struct {
	at  time.Time
	seq uint64
	kmsg.StreamsGroupHeartbeatRequest
	memory *kmsg.StreamsGroupHeartbeatRequest // what was handed out
}

func drive(t testing.TB, cfg Config) *driver {
	t.Helper()
	m, err := NewMember(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &driver{t: t, m: m, now: zeroTime}
}

// joined is a driver whose member owns 0_0 and 0_1, and is stable.
func joined(t testing.TB, cfg Config) *driver {
	t.Helper()
	d := drive(t, cfg)
	d.m.Join(d.now)
	d.pump()
	d.answer(granted(1, tasks("0", 0, 1), none, none))
	d.answer(ok(1))
	if d.m.State() != Stable {
		t.Fatalf("state %v, want STABLE", d.m.State())
	}
	return d
}

// pump carries out what the member wants now.
func (d *driver) pump() {
	d.t.Helper()
	for {
		r := d.m.Ready(d.now)
		d.moves = append(d.moves, r.Transitions...)
		d.warnings = append(d.warnings, r.Warnings...)
		if r.Readiness != nil {
			d.ready = append(d.ready, *r.Readiness)
		}
		if r.Lost != nil {
			d.lost = append(d.lost, r.Lost)
		}
		if r.Heartbeat != nil {
			d.sent = append(d.sent, sentBeat{d.now, r.HeartbeatSeq, *r.Heartbeat, r.Heartbeat})
		}
		if r.Inquiry != nil {
			d.inquiries = append(d.inquiries, r.InquirySeq)
		}
		if r.Description != nil {
			d.pushed = append(d.pushed, r.DescriptionSeq)
		}
		d.err, d.done, d.wake = r.Err, r.Done, r.Wake
		again := false
		if r.Assignment != nil {
			d.assigned = append(d.assigned, *r.Assignment)
			if !d.noAck {
				d.m.Reconciled(r.Assignment.LocalEpoch)
				again = true
			}
		}
		if r.FindCoordinator != 0 {
			d.asking = r.FindCoordinator
			d.lookups = append(d.lookups, d.now)
			if !d.noCoordinator {
				d.m.CoordinatorAnswered(d.now, r.FindCoordinator, 1, 0, "")
				again = true
			}
		}
		if !again {
			if !r.Wake.IsZero() && !r.Wake.After(d.now) {
				d.t.Fatalf("in state %v it wants to be woken at once, %v after now", d.m.State(), r.Wake.Sub(d.now))
			}
			return
		}
	}
}

// advance lets time pass, with progress unless still.
func (d *driver) advance(dt time.Duration) { d.pass(dt, true) }

func (d *driver) pass(dt time.Duration, progress bool) {
	d.t.Helper()
	end := d.now.Add(dt)
	for !d.wake.IsZero() && !d.wake.After(end) {
		d.now = d.wake
		if progress {
			d.m.Progress(d.now)
		}
		d.pump()
	}
	d.now = end
	if progress {
		d.m.Progress(d.now)
	}
	d.pump()
}

// last is the newest request.
func (d *driver) last() *sentBeat {
	d.t.Helper()
	if len(d.sent) == 0 {
		d.t.Fatal("no request was sent")
	}
	return &d.sent[len(d.sent)-1]
}

// answer answers the newest request.
func (d *driver) answer(resp *kmsg.StreamsGroupHeartbeatResponse) {
	d.t.Helper()
	d.m.HeartbeatAnswered(d.now, d.last().seq, resp)
	d.pump()
}

// beat lets the next heartbeat come, and answers it.
func (d *driver) beat(resp *kmsg.StreamsGroupHeartbeatResponse) {
	d.t.Helper()
	d.next()
	d.answer(resp)
}

// next lets the next heartbeat come.
func (d *driver) next() *sentBeat {
	d.t.Helper()
	n := len(d.sent)
	for range 100 {
		if len(d.sent) > n {
			return d.last()
		}
		if d.wake.IsZero() {
			break
		}
		d.now = d.wake
		d.m.Progress(d.now)
		d.pump()
	}
	d.t.Fatalf("no request comes in state %v", d.m.State())
	return nil
}

// none checks that nothing is sent for a while.
func (d *driver) quiet(dt time.Duration) {
	d.t.Helper()
	n := len(d.sent)
	d.advance(dt)
	if len(d.sent) != n {
		d.t.Errorf("sent %+v in state %v", d.last(), d.m.State())
	}
}
