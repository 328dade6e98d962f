package membership

import (
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// describedAs is a group whose member "member" has active tasks.
func describedAs(epoch int32, active []kmsg.TaskIDs) kmsg.StreamsGroupDescribeResponseGroup {
	group := kmsg.NewStreamsGroupDescribeResponseGroup()
	group.Group = "app"
	for _, id := range []string{"other", "member"} {
		m := kmsg.NewStreamsGroupDescribeResponseGroupMember()
		m.MemberID, m.MemberEpoch = id, epoch
		if id == "member" {
			m.Assignment.ActiveTasks = active
		}
		group.Members = append(group.Members, m)
	}
	return group
}

// unanswered is a driver whose member owns 0_0 and 0_1, and whose last heartbeat
// failed with err.
func unanswered(t *testing.T, err error) *driver {
	d := joined(t, testConfig())
	d.next()
	d.m.HeartbeatFailed(d.now, d.last().seq, err)
	d.pump()
	return d
}

func (d *driver) inquired(group kmsg.StreamsGroupDescribeResponseGroup) {
	d.t.Helper()
	if len(d.inquiries) == 0 {
		d.t.Fatal("nothing was asked")
	}
	d.m.InquiryAnswered(d.now, d.inquiries[len(d.inquiries)-1], &kmsg.StreamsGroupDescribeResponse{Groups: []kmsg.StreamsGroupDescribeResponseGroup{group}})
	d.pump()
}

// TestInquiryFindsLostAssignment: the coordinator took two tasks away and gave
// another, and the answer that said so was lost.
func TestInquiryFindsLostAssignment(t *testing.T) {
	d := unanswered(t, io.EOF)
	if len(d.inquiries) > 0 {
		t.Error("asked before the coordinator answers again")
	}
	d.beat(ok(2))
	before := len(d.assigned)
	d.inquired(describedAs(2, tasks("0", 1, 2)))
	want := []TaskID{{"0", 1}, {"0", 2}}
	if len(d.assigned) != before+1 || !slices.Equal(d.assigned[before].Active, want) {
		t.Fatalf("assignments %+v, want %v", d.assigned[before:], want)
	}
	if last := d.last(); last.ActiveTasks == nil || !slices.Equal(tasksFromWire(last.ActiveTasks), want) {
		t.Errorf("acknowledged %+v", last.ActiveTasks)
	}
	d.answer(ok(2))
	if n := len(d.inquiries); n != 1 || d.m.State() != Stable {
		t.Errorf("asked %d times, state %v", n, d.m.State())
	}
	d.beat(ok(2))
	if len(d.inquiries) != 1 {
		t.Error("asked again without a reason")
	}
}

// TestInquiryFindsNothingNew: what the member has is right.
func TestInquiryFindsNothingNew(t *testing.T) {
	d := unanswered(t, io.EOF)
	d.beat(ok(1))
	before := len(d.assigned)
	d.inquired(describedAs(1, tasks("0", 0, 1)))
	if len(d.assigned) != before || d.m.State() != Stable {
		t.Errorf("assignments %+v, state %v", d.assigned[before:], d.m.State())
	}
	d.beat(ok(1))
	if len(d.inquiries) != 1 {
		t.Errorf("asked %d times", len(d.inquiries))
	}
}

// TestNoInquiry: there is nothing to ask about.
func TestNoInquiry(t *testing.T) {
	t.Run("never connected", func(t *testing.T) {
		d := unanswered(t, &net.OpError{Op: "dial", Err: errors.New("refused")})
		d.beat(ok(1))
		if len(d.inquiries) > 0 {
			t.Error("asked about a request that was never sent")
		}
	})
	t.Run("told anew", func(t *testing.T) {
		d := unanswered(t, io.EOF)
		d.beat(granted(2, tasks("0", 5), none, none))
		d.answer(ok(2))
		if len(d.inquiries) > 0 {
			t.Error("asked though the answer has said it")
		}
	})
	t.Run("told while asking", func(t *testing.T) {
		d := unanswered(t, io.EOF)
		d.beat(ok(1))
		asked := d.inquiries[0]
		d.beat(granted(2, tasks("0", 5), none, none))
		before := len(d.assigned)
		d.m.InquiryAnswered(d.now, asked, &kmsg.StreamsGroupDescribeResponse{Groups: []kmsg.StreamsGroupDescribeResponseGroup{describedAs(2, tasks("0", 0, 1))}})
		d.pump()
		if len(d.assigned) != before {
			t.Errorf("an old description was taken: %+v", d.assigned[before:])
		}
	})
	t.Run("fenced", func(t *testing.T) {
		d := unanswered(t, io.EOF)
		refusal := ok(0)
		refusal.ErrorCode = kerr.UnknownMemberID.Code
		d.beat(refusal)
		d.m.LostDone(d.now)
		d.pump()
		d.answer(granted(3, tasks("0", 0), none, none))
		d.answer(ok(3))
		if len(d.inquiries) > 0 {
			t.Error("asked though it has joined again")
		}
	})
}

// TestInquiryErrors: what each answer leads to.
func TestInquiryErrors(t *testing.T) {
	failed := func(code *kerr.Error) kmsg.StreamsGroupDescribeResponseGroup {
		return kmsg.StreamsGroupDescribeResponseGroup{Group: "app", ErrorCode: code.Code}
	}
	for _, c := range []struct {
		name  string
		group kmsg.StreamsGroupDescribeResponseGroup
		again bool // it asks again
		lost  bool // it joins again
		looks bool // it looks for the coordinator
	}{
		{"loading", failed(kerr.CoordinatorLoadInProgress), true, false, false},
		{"moved", failed(kerr.NotCoordinator), true, false, true},
		{"not available", failed(kerr.CoordinatorNotAvailable), true, false, true},
		{"not allowed", failed(kerr.GroupAuthorizationFailed), false, true, false},
		{"of another time", describedAs(7, tasks("0", 9)), true, false, false},
		{"not a member", kmsg.StreamsGroupDescribeResponseGroup{Group: "app"}, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := unanswered(t, io.EOF)
			d.beat(ok(1))
			lookups := len(d.lookups)
			d.inquired(c.group)
			if lost := len(d.lost) > 0; lost != c.lost || lost != (len(d.warnings) > 0) {
				t.Errorf("lost %v, warnings %v", d.lost, d.warnings)
			}
			d.m.LostDone(d.now)
			d.advance(500 * time.Millisecond)
			if again := len(d.inquiries) > 1; again != c.again {
				t.Errorf("asked %d times", len(d.inquiries))
			}
			if looks := len(d.lookups) > lookups; looks != c.looks {
				t.Errorf("%d lookups", len(d.lookups)-lookups)
			}
			if c.again {
				d.inquired(describedAs(1, tasks("0", 3)))
				if last := d.assigned[len(d.assigned)-1]; !slices.Equal(last.Active, []TaskID{{"0", 3}}) {
					t.Errorf("took %+v", last)
				}
			}
		})
	}
	t.Run("no answer", func(t *testing.T) {
		d := unanswered(t, io.EOF)
		d.beat(ok(1))
		for range 5 {
			d.m.InquiryFailed(d.now, d.inquiries[len(d.inquiries)-1], io.EOF)
			n := len(d.inquiries)
			d.pump()
			if len(d.inquiries) != n {
				t.Fatal("asked again at once")
			}
			for len(d.inquiries) == n {
				d.advance(100 * time.Millisecond)
				if len(d.sent) > 0 && d.m.beat.inFlight != 0 {
					d.answer(ok(1))
				}
			}
		}
		if len(d.lost) > 0 {
			t.Errorf("lost %v", d.lost)
		}
	})
}

// TestLoopInquiry: over the wire, an assignment whose answer is lost with its
// connection is found.
func TestLoopInquiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		lose := false
		c.answer = func(r received) (*kmsg.StreamsGroupHeartbeatResponse, error) {
			if lose && r.MemberEpoch > 0 {
				lose = false
				return nil, errHangUp
			}
			return plain(r)
		}
		h := c.start(testConfig())
		sleep(1500 * time.Millisecond)
		c.set(func() { lose, c.given = true, tasks("0", 1, 4) })
		sleep(5 * time.Second)
		want := []TaskID{{"0", 1}, {"0", 4}}
		got := c.got()
		if last := h.assigned[len(h.assigned)-1]; !slices.Equal(last.Active, want) {
			t.Errorf("took %+v, want %v", last, want)
		}
		if !slices.ContainsFunc(got, func(r received) bool { return slices.Equal(tasksFromWire(r.ActiveTasks), want) }) {
			t.Error("nothing was acknowledged")
		}
		if c.inquiries != 1 || h.State() != Stable {
			t.Errorf("%d inquiries, state %v", c.inquiries, h.State())
		}
		if err := h.leave(LeaveDefault); err != nil {
			t.Error(err)
		}
	})
}

// TestListsAfterALostAnswer: the lost answer gave a task, and the next one, which
// takes it away again, says the very same as the last that was heard. The
// coordinator waits for the acknowledgement all the same.
func TestListsAfterALostAnswer(t *testing.T) {
	d := unanswered(t, io.EOF)
	before := len(d.assigned)
	d.beat(granted(2, tasks("0", 0, 1), none, none))
	if len(d.assigned) != before+1 {
		t.Fatalf("%d assignments, want one more", len(d.assigned)-before)
	}
	if last := d.last(); !slices.Equal(tasksFromWire(last.ActiveTasks), []TaskID{{"0", 0}, {"0", 1}}) || last.StandbyTasks == nil {
		t.Errorf("acknowledged with %+v", last)
	}
}
