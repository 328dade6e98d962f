package taskmgr

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestTaskWaits: a task goes on without records of one of its partitions only where
// the broker has none, and with max.task.idle.ms only after that time.
func TestTaskWaits(t *testing.T) {
	some := []*kgo.Record{record("a", 3, 10)}
	for _, c := range []struct {
		name    string
		maxIdle time.Duration
		change  func(empty *input)
		at      []int64 // system times at which it is asked, and
		waits   []bool  // what it says
	}{
		{name: "all have records", change: func(in *input) { in.queue = some }, waits: []bool{false}},
		{name: "the broker has none", change: func(in *input) { in.fetched, in.end = 5, 5 }, waits: []bool{false}},
		{name: "the broker has more", change: func(in *input) { in.fetched, in.end = 5, 6 }, waits: []bool{true}},
		{name: "nothing is known", change: func(in *input) { in.end = -1 }, waits: []bool{true}},
		{name: "it never waits", maxIdle: -1, change: func(in *input) { in.end = -1 }, waits: []bool{false}},
		{name: "it idles", maxIdle: 100, change: func(in *input) { in.fetched, in.end = 5, 5 },
			at: []int64{1000, 1099, 1100, 5000}, waits: []bool{true, true, false, false}},
		{name: "it doesn't idle before it has caught up", maxIdle: 100, change: func(in *input) { in.fetched, in.end = 4, 5 },
			at: []int64{1000, 9000}, waits: []bool{true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			task, _ := runningTask(t, "a", "b")
			task.maxIdle = c.maxIdle * time.Millisecond
			if c.maxIdle < 0 {
				task.maxIdle = -1
			}
			task.inputs[0].queue = some
			c.change(task.inputs[1])
			for i, want := range c.waits {
				if c.at != nil {
					task.ctx.SetSystemTime(c.at[i])
				}
				if got := task.waits(); got != want {
					t.Errorf("at %d it waits: %v", task.ctx.systemTime, got)
				}
			}
		})
	}
}

// TestIdleBeginsAnew: what has had records idles again from when it has none.
func TestIdleBeginsAnew(t *testing.T) {
	task, _ := runningTask(t, "a", "b")
	task.maxIdle = 100 * time.Millisecond
	a, b := task.inputs[0], task.inputs[1]
	a.queue = []*kgo.Record{record("a", 3, 10)}
	for _, step := range []struct {
		now   int64
		has   bool
		waits bool
	}{{1000, false, true}, {1100, false, false}, {1200, true, false}, {1300, false, true}, {1399, false, true}, {1400, false, false}} {
		b.queue = nil
		if step.has {
			b.queue = a.queue
		}
		task.ctx.SetSystemTime(step.now)
		if got := task.waits(); got != step.waits {
			t.Errorf("at %d it waits: %v", step.now, got)
		}
	}
}

// TestSkipEmpty: offsets are skipped that have markers or nothing, and none that may
// have a record.
func TestSkipEmpty(t *testing.T) {
	batch := func(base int64, delta, count uint32, control bool) []byte {
		b := make([]byte, batchHead)
		binary.BigEndian.PutUint64(b, uint64(base))
		binary.BigEndian.PutUint32(b[8:], batchHead-12)
		binary.BigEndian.PutUint32(b[batchLastDelta:], delta)
		binary.BigEndian.PutUint32(b[batchCount:], count)
		if control {
			binary.BigEndian.PutUint16(b[batchAttributes:], controlBatch)
		}
		return b
	}
	marker, emptied, records := batch(10, 0, 1, true), batch(11, 3, 0, false), batch(15, 4, 5, false)
	join := func(bs ...[]byte) (all []byte) {
		for _, b := range bs {
			all = append(all, b...)
		}
		return all
	}
	for _, c := range []struct {
		name    string
		batches []byte
		from    int64
		want    int64
	}{
		{"nothing", nil, 10, 10},
		{"a marker", marker, 10, 11},
		{"what compaction left of a batch", join(marker, emptied), 10, 15},
		{"records behind them", join(marker, emptied, records), 10, 15},
		{"in the middle of records", records, 17, 17},
		{"records that were read, and a marker", join(records, batch(20, 0, 1, true)), 20, 21},
		{"a part of a batch", join(marker, emptied[:30]), 10, 11},
		{"a malformed length", append(marker[:8:8], append([]byte{0xff, 0xff, 0xff, 0xff}, marker[12:]...)...), 10, 11},
	} {
		if got := skipEmpty(c.batches, c.from); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
