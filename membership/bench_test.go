package membership

import (
	"testing"
	"time"
)

// A heartbeat and its answer, when nothing has changed.
func BenchmarkMemberStep(b *testing.B) {
	d := joined(b, testConfig())
	m, now, resp := d.m, d.now, ok(1)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		m.Progress(now)
		r := m.Ready(now)
		m.HeartbeatAnswered(now, r.HeartbeatSeq, resp)
		m.Ready(now)
	}
}

func BenchmarkProgress(b *testing.B) {
	l := &Loop{born: time.Now(), signal: make(chan struct{}, 1)}
	for b.Loop() {
		l.Progress()
	}
}

// Nothing is allocated for a heartbeat that says nothing new.
func TestStepAllocatesNothing(t *testing.T) {
	d := joined(t, testConfig())
	m, now, resp := d.m, d.now, ok(1)
	beats := 0
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		m.Progress(now)
		r := m.Ready(now)
		if r.Heartbeat != nil {
			beats++
		}
		m.HeartbeatAnswered(now, r.HeartbeatSeq, resp)
		m.Ready(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if beats < 100 {
		t.Errorf("%d heartbeats", beats)
	}
}
