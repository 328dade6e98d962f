package membership

import (
	"math"
	"testing"
	"time"
)

func TestWarmups(t *testing.T) {
	task := TaskID{"0", 2}
	at := func(offset, end int64) (map[TaskID]int64, map[TaskID]int64) {
		return map[TaskID]int64{task: offset}, map[TaskID]int64{task: end}
	}
	d := drive(t, testConfig())
	d.m.SetTaskOffsets(at(10, math.MaxInt64))
	d.m.Join(d.now)
	d.pump()
	if l := d.last(); len(l.TaskOffsets) != 1 || l.TaskOffsets[0].Offset != 10 || len(l.TaskEndOffsets) != 1 {
		t.Errorf("joined with %+v", l)
	}
	d.answer(granted(1, none, none, tasks("0", 2)))
	d.answer(ok(1))

	// Behind: no news before the offset interval, and none without a change.
	d.m.SetTaskOffsets(at(20, 1000))
	d.pump()
	if l := d.next(); l.TaskOffsets != nil {
		t.Errorf("sent %+v before the offset interval", l)
	}
	d.answer(ok(1))
	d.beat(ok(1))
	d.beat(ok(1))
	if l := d.last(); len(l.TaskOffsets) != 1 || l.TaskOffsets[0].Offset != 20 || l.TaskEndOffsets[0].Offset != 1000 {
		t.Errorf("after the offset interval: %+v", l)
	}
	for range 5 {
		d.beat(ok(1))
		if l := d.last(); l.TaskOffsets != nil || l.TaskEndOffsets != nil {
			t.Errorf("nothing changed, and it sends %+v", l)
		}
	}

	// Caught up: at once, then with every heartbeat.
	d.advance(100 * time.Millisecond)
	d.m.SetTaskOffsets(at(900, 1000))
	d.pump()
	if l := d.last(); l.at != d.now || len(l.TaskOffsets) != 1 || l.ActiveTasks != nil {
		t.Errorf("caught up, and it sends %+v", l)
	}
	d.answer(ok(1))
	if l := d.next(); len(l.TaskOffsets) != 1 || len(l.TaskEndOffsets) != 1 {
		t.Errorf("the next heartbeat: %+v", l)
	}
	d.answer(ok(1))

	// Back and forth doesn't hurry it again.
	n := len(d.sent)
	for range 10 {
		d.m.SetTaskOffsets(at(900, 2000))
		d.pump()
		d.m.SetTaskOffsets(at(1950, 2000))
		d.pump()
	}
	if len(d.sent) != n {
		t.Errorf("%d heartbeats at once", len(d.sent)-n)
	}

	// A standby that is as close isn't a warm-up.
	d = drive(t, testConfig())
	d.m.Join(d.now)
	d.pump()
	d.answer(granted(1, none, tasks("0", 2), none))
	d.answer(ok(1))
	d.m.SetTaskOffsets(at(900, 1000))
	d.pump()
	if l := d.next(); l.TaskOffsets != nil {
		t.Errorf("a standby reports with %+v", l)
	}
}

// Offsets go out with an acknowledgement, whatever the interval; each list
// only if it differs.
func TestOffsetsWithAcknowledgement(t *testing.T) {
	d := joined(t, testConfig())
	d.beat(ok(1))
	d.noAck = true
	d.beat(granted(2, tasks("0", 0), none, none))
	d.m.SetTaskOffsets(map[TaskID]int64{{"0", 1}: 7}, nil)
	d.m.Reconciled(d.assigned[len(d.assigned)-1].LocalEpoch)
	d.pump()
	if l := d.last(); len(l.TaskOffsets) != 1 || l.TaskEndOffsets != nil {
		t.Errorf("acknowledged with %+v", l)
	}
	// Once empty, it says so once.
	d.answer(ok(2))
	d.m.SetTaskOffsets(nil, nil)
	said := 0
	for range 10 {
		d.beat(ok(2))
		if l := d.last(); l.TaskOffsets != nil {
			said++
			if len(l.TaskOffsets) != 0 {
				t.Errorf("sent %+v", l)
			}
		}
	}
	if said != 1 {
		t.Errorf("said %d times", said)
	}
}

// A member that holds warm-up tasks moves to a coordinator of version 0.
func TestVersion0(t *testing.T) {
	d := joined(t, testConfig())
	d.m.SetTaskOffsets(map[TaskID]int64{{"0", 5}: 7}, map[TaskID]int64{{"0", 5}: 7})
	d.beat(granted(1, tasks("0", 0), none, tasks("0", 5)))
	old := ok(1)
	old.Version = 0
	moved := refusal(16, "")
	moved.Version = 0
	// What goes to it before its version is known is fitted when it is
	// written; see TestLoopVersion0.
	d.answer(moved)
	l := d.last()
	if l.TaskOffsets != nil || l.TaskEndOffsets != nil || l.WarmupTasks == nil || len(l.WarmupTasks) != 0 || len(l.ActiveTasks) != 1 {
		t.Errorf("to version 0: %+v", l)
	}
	d.answer(old)
	defer func() {
		// Back to version 1, which must hear of the warm-up task.
		d.beat(ok(1))
		if l := d.last(); len(l.WarmupTasks) != 1 || len(l.TaskOffsets) != 1 {
			t.Errorf("to version 1: %+v", l)
		}
	}()
	n := len(d.sent)
	d.m.SetTaskOffsets(map[TaskID]int64{{"0", 5}: 8}, map[TaskID]int64{{"0", 5}: 8})
	d.pump()
	if len(d.sent) != n {
		t.Error("hurried for version 0")
	}
}
