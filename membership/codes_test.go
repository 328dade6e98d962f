package membership

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What every error code of a heartbeat leads to. All others are fatal.
var wantActions = map[int16]action{
	7: actRetry, 14: actRetry,
	13: actFind, 15: actFind, 16: actFind,
	25: actFence, 110: actFence,
	-1: actPatience,
	29: actSurface,
}

// wantSentinels are the codes that a caller branches on.
var wantSentinels = map[int16]error{
	35: ErrUnsupported, 69: ErrNotStreamsGroup, 82: ErrInstanceIDInUse, 111: ErrInstanceIDInUse,
	131: ErrTopologyMismatch, 132: ErrTopologyMismatch,
}

func allCodes() (out []int16) {
	out = append(out, -1, 999)
	for c := int16(1); c <= 140; c++ {
		out = append(out, c)
	}
	return out
}

func TestErrorCodes(t *testing.T) {
	for _, code := range allCodes() {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Run("stable", func(t *testing.T) { testCode(t, code, false) })
			t.Run("joining", func(t *testing.T) { testCode(t, code, true) })
		})
	}
}

func testCode(t *testing.T, code int16, joining bool) {
	cfg := testConfig()
	cfg.InstanceID = "instance"
	var d *driver
	if joining {
		d = drive(t, cfg)
		d.m.Join(d.now)
		d.pump()
	} else {
		d = joined(t, cfg)
		d.next()
	}
	lookups, at := len(d.lookups), d.now
	d.answer(refusal(code, "words"))

	want := wantActions[code]
	if want == actFatal {
		checkFatal(t, d, code)
		return
	}
	if d.err != nil {
		t.Fatalf("ended with %v", d.err)
	}
	if want == actFence && !joining {
		if len(d.lost) != 1 || !errors.Is(d.lost[0], kerr.ErrorForCode(code)) {
			t.Fatalf("lost: %v", d.lost)
		}
		if d.m.State() != Fenced || d.m.Epoch() != 0 {
			t.Errorf("state %v, epoch %d", d.m.State(), d.m.Epoch())
		}
		d.quiet(time.Minute)
		d.m.LostDone(d.now)
		d.pump()
		at = d.now
	} else if len(d.lost) != 0 {
		t.Errorf("lost: %v", d.lost)
	}
	if asked := len(d.lookups) > lookups; asked != (want == actFind) {
		t.Errorf("coordinator looked up: %v", asked)
	}
	n := 2
	if joining {
		n = 1
	}
	if len(d.sent) <= n+1 && (want == actRetry || want == actPatience || want == actSurface) {
		d.next()
	}
	again := d.last()
	if wait := again.at.Sub(at); (want == actRetry || want == actPatience) && (wait < 80*time.Millisecond || wait > 120*time.Millisecond) {
		t.Errorf("again after %v, want 100 ms or so", wait)
	} else if want == actSurface && wait < d.m.interval {
		t.Errorf("again after %v, want no faster than heartbeats", wait)
	} else if (want == actFind || want == actFence) && wait != 0 {
		t.Errorf("again after %v, want at once", wait)
	}
	if warned := len(d.warnings) == 1; warned != (want == actSurface || want == actPatience) {
		t.Errorf("warnings: %v", d.warnings)
	}
	if joining || want == actFence {
		if again.MemberEpoch != 0 || again.Topology == nil || again.ProcessID == nil || again.MemberID != cfg.MemberID {
			t.Errorf("rejoined with %+v", again)
		}
	} else if again.MemberEpoch != 1 || again.Topology != nil || len(again.ActiveTasks) != 1 ||
		again.StandbyTasks == nil || again.WarmupTasks == nil || again.TaskOffsets == nil || again.TaskEndOffsets == nil {
		t.Errorf("resent %+v, want all that is owned", again)
	}

	// The same again and again is neither hot nor said again.
	began := d.now
	for range 20 {
		if want == actPatience && d.now.Sub(began) > 8*time.Second {
			break
		}
		d.answer(refusal(code, "words"))
		if d.m.State() == Fenced {
			d.m.LostDone(d.now)
			d.pump()
		}
		d.next()
	}
	if took := d.now.Sub(began); took < 8*time.Second {
		t.Errorf("20 retries in %v", took)
	}
	if len(d.warnings) > 1 {
		t.Errorf("%d warnings", len(d.warnings))
	}

	// Then all is well, and a later error begins anew.
	d.answer(granted(2, tasks("0", 0, 1), none, none))
	if d.m.State() == Acknowledging || d.m.State() == Reconciling {
		d.next()
	}
	d.answer(ok(2))
	if d.m.State() != Stable {
		t.Errorf("state %v", d.m.State())
	}
	d.next()
	lookups, at, n = len(d.lookups), d.now, len(d.warnings)
	d.answer(refusal(code, "words"))
	switch want {
	case actRetry, actPatience:
		if wait := d.next().at.Sub(at); wait > 120*time.Millisecond {
			t.Errorf("after a success, again after %v", wait)
		}
	case actFind:
		if d.last().at != at || len(d.lookups) != lookups+1 {
			t.Errorf("after a success, again after %v", d.last().at.Sub(at))
		}
	case actFence:
		d.m.LostDone(d.now)
		d.pump()
		if d.last().at != at || d.last().MemberEpoch != 0 {
			t.Errorf("after a success, again after %v", d.last().at.Sub(at))
		}
	case actSurface:
		if len(d.warnings) != n+1 {
			t.Errorf("after a success, not said again")
		}
	}
}

func checkFatal(t *testing.T, d *driver, code int16) {
	t.Helper()
	ce, ok := errors.AsType[*CoordinatorError](d.err)
	if !ok {
		t.Fatalf("ended with %v", d.err)
	}
	want := kerr.ErrorForCode(code)
	if code == 999 || want == kerr.UnknownServerError && code != -1 {
		if !strings.Contains(d.err.Error(), fmt.Sprint(code)) {
			t.Errorf("the code isn't in %q", d.err)
		}
	} else if !errors.Is(d.err, want) {
		t.Errorf("%v isn't %v", d.err, want)
	}
	if s := wantSentinels[code]; s != nil && (!errors.Is(d.err, s) || ce.Remedy == "") {
		t.Errorf("%v isn't %v with a remedy", d.err, s)
	}
	for _, s := range []string{`"app"`, "StreamsGroupHeartbeat", "words"} {
		if !strings.Contains(d.err.Error(), s) {
			t.Errorf("%q lacks %q", d.err, s)
		}
	}
	if d.m.State() != Fatal || !d.wake.IsZero() {
		t.Errorf("state %v, wake %v", d.m.State(), d.wake)
	}
	d.quiet(time.Hour)
	d.m.Leave(d.now, LeaveGroup)
	d.pump()
	if !d.done {
		t.Error("leaving isn't done")
	}
}

// An internal error of the coordinator is retried, but not for ever.
func TestServerError(t *testing.T) {
	cfg := testConfig()
	cfg.Endpoint = &Endpoint{"host", 1}
	d := drive(t, cfg)
	d.m.Join(d.now)
	d.pump()
	for range 100 {
		d.answer(refusal(-1, ""))
		if d.err != nil {
			break
		}
		d.next()
	}
	if took := d.now.Sub(zeroTime); took < serverErrorPatience || took > serverErrorPatience+2*time.Second {
		t.Errorf("ended after %v", took)
	}
	if !errors.Is(d.err, kerr.UnknownServerError) || !strings.Contains(d.err.Error(), "check that these exist: in") {
		t.Errorf("ended with %v", d.err)
	}
}

func TestErrorsByText(t *testing.T) {
	for message, want := range map[string]error{
		"Topology updates are not supported yet.":                      ErrTopologyMismatch,
		"Regular expressions for source topics are not supported yet.": ErrPatternsUnsupported,
	} {
		d := drive(t, testConfig())
		d.m.Join(d.now)
		d.pump()
		d.answer(refusal(42, message))
		if !errors.Is(d.err, want) || !errors.Is(d.err, kerr.InvalidRequest) {
			t.Errorf("%s ended with %v", message, d.err)
		}
	}
	d := drive(t, testConfig())
	d.m.Join(d.now)
	d.pump()
	d.answer(refusal(42, "something else"))
	if errors.Is(d.err, ErrTopologyMismatch) || !errors.Is(d.err, kerr.InvalidRequest) {
		t.Errorf("ended with %v", d.err)
	}
}

func TestStatuses(t *testing.T) {
	for _, tt := range []struct {
		codes []StatusCode
		ready bool
	}{
		{nil, true},
		{[]StatusCode{StatusStaleTopology}, true},
		{[]StatusCode{StatusMissingSourceTopics}, false},
		{[]StatusCode{StatusMissingInternalTopics}, false},
		{[]StatusCode{StatusAssignmentDelayed}, false},
		{[]StatusCode{StatusMissingClientTags}, true},
		{[]StatusCode{42}, true},
		{[]StatusCode{StatusAssignmentDelayed, StatusMissingInternalTopics}, false},
		{[]StatusCode{StatusStaleTopology, StatusMissingInternalTopics}, false},
	} {
		t.Run(fmt.Sprint(tt.codes), func(t *testing.T) {
			d := joined(t, testConfig())
			if len(d.ready) != 1 || !d.ready[0].Ready {
				t.Fatalf("readiness after the join: %v", d.ready)
			}
			n := len(d.assigned)
			d.beat(withStatus(ok(1), tt.codes...))
			if changed := len(d.ready) == 2; changed != (len(tt.codes) > 0) {
				t.Fatalf("readiness: %v", d.ready)
			}
			r := d.ready[len(d.ready)-1]
			if r.Ready != tt.ready || len(r.Statuses) != len(tt.codes) {
				t.Errorf("readiness %v, want %v", r, tt.ready)
			}
			// The edge is an assignment of the same tasks, acknowledged at once.
			if edge := len(d.assigned) > n; edge == tt.ready {
				t.Errorf("assignments: %v", d.assigned)
			}
			if !tt.ready {
				if l := d.last(); l.at != d.now || len(l.ActiveTasks) != 1 {
					t.Errorf("acknowledged with %+v", l)
				}
				d.answer(withStatus(ok(1), tt.codes...))
			}
			// Null leaves the statuses as they are.
			null := ok(1)
			null.Status = nil
			n, k := len(d.assigned), len(d.ready)
			d.beat(null)
			if len(d.ready) != k || len(d.assigned) != n {
				t.Errorf("null changed the readiness: %v", d.ready[k:])
			}
			// Empty clears them, which is the other edge.
			d.beat(ok(1))
			if last := d.ready[len(d.ready)-1]; !last.Ready || len(last.Statuses) != 0 {
				t.Errorf("cleared: %v", last)
			}
			if edge := len(d.assigned) > n; edge == tt.ready {
				t.Errorf("assignments: %v", d.assigned)
			}
			if d.err != nil || len(d.lost) != 0 {
				t.Errorf("err %v, lost %v", d.err, d.lost)
			}
		})
	}
}

// A source topic is missing: waited for two heartbeat intervals, counted in
// answers, and forgotten if it appears.
func TestMissingSourceTopics(t *testing.T) {
	missing := func() *kmsg.StreamsGroupHeartbeatResponse {
		return withStatus(granted(1, none, none, none), StatusMissingSourceTopics)
	}
	d := drive(t, testConfig())
	d.m.Join(d.now)
	d.pump()
	d.answer(missing())
	began := d.now
	d.answer(withStatus(ok(1), StatusMissingSourceTopics))
	d.beat(withStatus(ok(1), StatusMissingSourceTopics))
	if d.err != nil {
		t.Fatalf("ended after one interval: %v", d.err)
	}
	if len(d.assigned) != 1 || !d.assigned[0].empty() {
		t.Errorf("assigned: %v", d.assigned)
	}
	d.beat(withStatus(ok(1), StatusMissingSourceTopics))
	e, isIt := errors.AsType[*MissingSourceTopicsError](d.err)
	if !isIt || e.After != 2*time.Second || !strings.Contains(d.err.Error(), "detail of MISSING_SOURCE_TOPICS") {
		t.Errorf("ended with %v", d.err)
	}
	if got := d.now.Sub(began); got != 2*time.Second {
		t.Errorf("ended after %v", got)
	}
	// It is still in the group, so it may say good-bye.
	if d.m.State() == Fatal {
		t.Errorf("state %v", d.m.State())
	}
	d.m.Leave(d.now, LeaveGroup)
	d.pump()
	if l := d.last(); l.MemberEpoch != -1 {
		t.Errorf("left with %+v", l)
	}
	d.answer(ok(-1))
	if !d.done {
		t.Error("leaving isn't done")
	}

	d = drive(t, testConfig())
	d.m.Join(d.now)
	d.pump()
	d.answer(missing())
	d.answer(withStatus(ok(1), StatusMissingSourceTopics))
	d.beat(withStatus(ok(1), StatusMissingSourceTopics))
	d.beat(withStatus(ok(1), StatusMissingInternalTopics)) // created in time
	d.beat(granted(2, tasks("0", 0), none, none))
	d.answer(withStatus(ok(2), StatusMissingSourceTopics)) // deleted again: a new wait
	d.answer(withStatus(ok(2), StatusMissingSourceTopics))
	if d.err != nil {
		t.Errorf("ended with %v", d.err)
	}
}

func TestFatalStatuses(t *testing.T) {
	d := joined(t, testConfig())
	d.beat(withStatus(ok(1), StatusIncorrectlyPartitionedTopics))
	if _, isIt := errors.AsType[*IncorrectlyPartitionedTopicsError](d.err); !isIt || !strings.Contains(d.err.Error(), "detail of") {
		t.Errorf("ended with %v", d.err)
	}
	d.quiet(time.Minute)

	d = joined(t, testConfig())
	d.beat(withStatus(ok(1), StatusShutdownApplication))
	if !errors.Is(d.err, ErrShutdownRequested) {
		t.Errorf("ended with %v", d.err)
	}
	n := len(d.sent)
	d.m.Leave(d.now, LeaveDefault) // dynamic: nothing is sent after a failure
	d.pump()
	if !d.done || len(d.sent) != n {
		t.Errorf("done %v, sent %d", d.done, len(d.sent)-n)
	}
}

// A lookup's error codes: retried, or fatal.
func TestFindCoordinatorCodes(t *testing.T) {
	for _, code := range allCodes() {
		d := drive(t, testConfig())
		d.noCoordinator = true
		d.m.Join(d.now)
		d.pump()
		d.m.CoordinatorAnswered(d.now, d.asking, -1, code, "words")
		d.pump()
		if kerr.IsRetriable(kerr.ErrorForCode(code)) {
			if d.err != nil {
				t.Errorf("%d: ended with %v", code, d.err)
			}
			for range 100 {
				d.advance(d.wake.Sub(d.now))
				d.m.CoordinatorAnswered(d.now, d.asking, -1, code, "words")
				d.pump()
			}
			if took := d.now.Sub(zeroTime); took < 70*time.Second || d.err != nil {
				t.Errorf("%d: 100 lookups took %v; %v", code, took, d.err)
			}
			continue
		}
		e, isIt := errors.AsType[*CoordinatorError](d.err)
		if !isIt || e.Request != "FindCoordinator" || d.m.State() != Fatal {
			t.Errorf("%d: ended with %v", code, d.err)
		}
	}
}
