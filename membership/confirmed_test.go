package membership

import (
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestConfirmedUntil: only an answer without an error to a question that tells
// what is owned, and that wants none of it back, confirms; from when the question
// was sent, for three of the intervals that the coordinator gives.
func TestConfirmedUntil(t *testing.T) {
	d := drive(t, testConfig())
	check := func(when string, want time.Time) {
		t.Helper()
		if got := d.m.ConfirmedUntil(); !got.Equal(want) {
			t.Errorf("%s: confirmed until %v, want %v", when, got, want)
		}
	}
	check("before the join", time.Time{})
	d.m.Join(d.now)
	d.pump()
	check("before the first answer", time.Time{})
	sent := d.last().at
	d.now = d.now.Add(400 * time.Millisecond)
	d.answer(granted(1, none, none, none))
	check("owning nothing", sent.Add(3*time.Second))
	d.answer(ok(1))
	d.beat(granted(1, tasks("0", 0, 1), none, none))
	check("owning what the coordinator has not heard of", time.Time{})

	sent = d.last().at // the acknowledgement
	d.now = d.now.Add(400 * time.Millisecond)
	d.answer(ok(1))
	check("answered after a while", sent.Add(3*time.Second))
	d.next()
	check("unanswered", sent.Add(3*time.Second))
	d.m.HeartbeatFailed(d.now, d.last().seq, io.EOF)
	d.pump()
	check("without an answer", sent.Add(3*time.Second))
	d.next()
	refusal := ok(0)
	refusal.ErrorCode = kerr.CoordinatorLoadInProgress.Code
	d.answer(refusal)
	check("with an error", sent.Add(3*time.Second))

	d.beat(ok(1))
	check("with an answer missing", sent.Add(3*time.Second))
	d.m.InquiryAnswered(d.now, d.inquiries[0], &kmsg.StreamsGroupDescribeResponse{
		Groups: []kmsg.StreamsGroupDescribeResponseGroup{describedAs(1, tasks("0", 0, 1))},
	})
	d.pump()
	sent = d.next().at
	slower := ok(1)
	slower.HeartbeatIntervalMillis = 2000
	d.answer(slower)
	check("with another interval", sent.Add(6*time.Second))

	d.noAck = true
	d.beat(granted(1, tasks("0", 0), none, none))
	check("with a task to be given up", time.Time{})
	d.m.Reconciled(d.assigned[len(d.assigned)-1].LocalEpoch)
	d.pump()
	check("given up and not acknowledged", time.Time{})
	sent = d.last().at
	d.answer(ok(1))
	check("given up and acknowledged", sent.Add(3*time.Second))

	d.next()
	refusal.ErrorCode = kerr.UnknownMemberID.Code
	d.answer(refusal)
	check("when the tasks are lost", time.Time{})
}
