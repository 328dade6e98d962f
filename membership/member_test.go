package membership

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func ids(ss ...string) (out []TaskID) {
	for _, s := range ss {
		t, err := ParseTaskID(s)
		if err != nil {
			panic(err)
		}
		out = append(out, t)
	}
	return out
}

// A change in one role resends all three; no change sends none.
func TestListsTravelTogether(t *testing.T) {
	d := drive(t, testConfig())
	d.m.Join(d.now)
	d.pump()
	if l := d.last(); l.ActiveTasks == nil || l.StandbyTasks == nil || l.WarmupTasks == nil || len(l.ActiveTasks) > 0 {
		t.Errorf("joined with %+v", l)
	}
	d.answer(granted(1, tasks("0", 0), tasks("0", 1), none))
	d.answer(ok(1))
	if l := d.next(); l.ActiveTasks != nil || l.StandbyTasks != nil || l.WarmupTasks != nil {
		t.Errorf("nothing changed, and it sends %+v", l)
	}
	d.answer(granted(1, tasks("0", 0), none, none))
	l := d.last()
	if !reflect.DeepEqual(l.ActiveTasks, tasks("0", 0)) || l.StandbyTasks == nil || len(l.StandbyTasks) > 0 || l.WarmupTasks == nil {
		t.Errorf("a standby was taken away, and it sends %+v", l)
	}
	if l.at != d.now {
		t.Errorf("acknowledged %v later", l.at.Sub(d.now))
	}
	d.answer(ok(1))
	// The same target again is no news.
	n := len(d.assigned)
	d.beat(granted(1, tasks("0", 0), none, none))
	if len(d.assigned) != n || d.m.State() != Stable {
		t.Errorf("assigned %v in state %v", d.assigned[n:], d.m.State())
	}
	if l := d.next(); l.ActiveTasks != nil {
		t.Errorf("nothing changed, and it sends %+v", l)
	}
}

func TestAssignmentIsSorted(t *testing.T) {
	d := drive(t, testConfig())
	d.m.Join(d.now)
	d.pump()
	active := []kmsg.TaskIDs{
		{SubtopologyID: "10", Partitions: []int32{0}},
		{SubtopologyID: "2", Partitions: []int32{3, 1, 3}},
		{SubtopologyID: "10", Partitions: []int32{0, 2}},
	}
	d.answer(granted(1, active, none, none))
	if got, want := d.assigned[0].Active, ids("2_1", "2_3", "10_0", "10_2"); !slices.Equal(got, want) {
		t.Errorf("active %v, want %v", got, want)
	}
	want := []kmsg.TaskIDs{{SubtopologyID: "2", Partitions: []int32{1, 3}}, {SubtopologyID: "10", Partitions: []int32{0, 2}}}
	if got := d.last().ActiveTasks; !reflect.DeepEqual(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

// Assignments may be superseded, and acknowledged in part or late.
func TestSuperseded(t *testing.T) {
	d := joined(t, testConfig())
	d.noAck = true
	d.beat(granted(1, tasks("0", 0), none, none))       // A
	d.beat(granted(2, tasks("0", 0, 2), none, none))    // B
	d.beat(granted(2, tasks("0", 0), none, none))       // A again
	d.beat(granted(2, tasks("0", 0, 2, 3), none, none)) // C
	as := d.assigned[len(d.assigned)-4:]
	for i := 1; i < 4; i++ {
		if as[i].LocalEpoch != as[i-1].LocalEpoch+1 {
			t.Errorf("local epochs %d, %d", as[i-1].LocalEpoch, as[i].LocalEpoch)
		}
	}
	if d.m.State() != Reconciling || d.m.Epoch() != 2 {
		t.Errorf("state %v, epoch %d", d.m.State(), d.m.Epoch())
	}
	d.m.Reconciled(as[3].LocalEpoch + 1) // never offered
	d.quiet(500 * time.Millisecond)
	d.m.Reconciled(as[1].LocalEpoch)
	d.pump()
	if l := d.last(); !reflect.DeepEqual(l.ActiveTasks, tasks("0", 0, 2)) || d.m.State() != Reconciling {
		t.Errorf("B acknowledged with %v, state %v", l.ActiveTasks, d.m.State())
	}
	d.answer(ok(2))
	d.m.Reconciled(as[0].LocalEpoch) // passed already
	d.quiet(500 * time.Millisecond)
	d.m.Reconciled(as[3].LocalEpoch)
	d.pump()
	if l := d.last(); !reflect.DeepEqual(l.ActiveTasks, tasks("0", 0, 2, 3)) || d.m.State() != Stable {
		t.Errorf("C acknowledged with %v, state %v", l.ActiveTasks, d.m.State())
	}
}

// An acknowledgement that waits for an answer isn't lost when that answer
// brings the next assignment.
func TestAcknowledgeAcrossAssignment(t *testing.T) {
	d := joined(t, testConfig())
	d.noAck = true
	d.beat(granted(1, tasks("0", 0), none, none))
	d.next()
	d.m.Reconciled(d.assigned[len(d.assigned)-1].LocalEpoch)
	d.quiet(0)
	if d.m.State() != Acknowledging {
		t.Fatalf("state %v", d.m.State())
	}
	d.answer(granted(2, tasks("0", 0, 5), none, none))
	if l := d.last(); l.at != d.now || !reflect.DeepEqual(l.ActiveTasks, tasks("0", 0)) {
		t.Errorf("acknowledged with %+v", l)
	}
	if d.m.State() != Reconciling {
		t.Errorf("state %v", d.m.State())
	}
}

// A reconciliation is abandoned if the member rejoined meanwhile.
func TestReconciledOfAFormerLife(t *testing.T) {
	d := joined(t, testConfig())
	d.noAck = true
	d.beat(granted(2, tasks("0", 0, 1, 2), none, none))
	old := d.assigned[len(d.assigned)-1].LocalEpoch
	d.beat(refusal(25, ""))
	d.m.Reconciled(old)
	d.quiet(time.Minute)
	d.m.LostDone(d.now)
	d.pump()
	d.answer(granted(3, tasks("0", 0, 1, 2), none, none))
	d.m.Reconciled(old)
	d.quiet(500 * time.Millisecond)
	if d.m.State() != Reconciling {
		t.Errorf("state %v", d.m.State())
	}
}

func TestJoinAnswers(t *testing.T) {
	for _, tt := range []struct {
		name string
		resp *kmsg.StreamsGroupHeartbeatResponse
	}{
		{"nothing assigned", granted(3, none, none, none)},
		{"null lists", ok(3)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := drive(t, testConfig())
			d.m.Join(d.now)
			d.pump()
			d.answer(tt.resp)
			if l := d.last(); l.MemberEpoch != 3 || l.ActiveTasks == nil || l.at != d.now {
				t.Errorf("acknowledged with %+v", l)
			}
			d.answer(ok(3))
			if d.m.State() != Stable {
				t.Errorf("state %v", d.m.State())
			}
		})
	}
	t.Run("mixed lists", func(t *testing.T) {
		d := joined(t, testConfig())
		resp := ok(1)
		resp.ActiveTasks = tasks("0", 0)
		d.beat(resp)
		if _, isIt := errors.AsType[*AnswerError](d.err); !isIt || d.m.State() != Fatal {
			t.Errorf("ended with %v", d.err)
		}
	})
	t.Run("no epoch", func(t *testing.T) {
		d := joined(t, testConfig())
		d.beat(ok(0))
		if _, isIt := errors.AsType[*AnswerError](d.err); !isIt {
			t.Errorf("ended with %v", d.err)
		}
	})
}

// The coordinator's intervals may change at any time.
func TestIntervals(t *testing.T) {
	d := joined(t, testConfig())
	at := d.last().at
	if l := d.next(); l.at.Sub(at) != time.Second {
		t.Errorf("heartbeat after %v", l.at.Sub(at))
	}
	slower := ok(1)
	slower.HeartbeatIntervalMillis = 5000
	d.answer(slower)
	at = d.last().at
	if l := d.next(); l.at.Sub(at) != 5*time.Second {
		t.Errorf("heartbeat after %v", l.at.Sub(at))
	}
	zero := ok(1)
	zero.HeartbeatIntervalMillis = 0
	d.answer(zero)
	at = d.last().at
	if l := d.next(); l.at.Sub(at) != 5*time.Second {
		t.Errorf("heartbeat after %v", l.at.Sub(at))
	}
	// No answer, no heartbeat.
	d.quiet(time.Minute)
}

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

func TestRequestShutdown(t *testing.T) {
	d := joined(t, testConfig())
	d.advance(300 * time.Millisecond)
	d.m.RequestShutdown()
	d.pump()
	if l := d.last(); l.at != d.now || !l.ShutdownApplication {
		t.Errorf("sent %+v", l)
	}
	d.answer(ok(1))
	n := len(d.sent)
	d.m.RequestShutdown()
	d.pump()
	if len(d.sent) != n {
		t.Errorf("said twice at once")
	}
	if l := d.next(); !l.ShutdownApplication {
		t.Errorf("the next heartbeat forgot it")
	}
}

func TestEndpoints(t *testing.T) {
	cfg := testConfig()
	cfg.Endpoint = &Endpoint{"host", 7}
	d := drive(t, cfg)
	d.m.Join(d.now)
	d.pump()
	if l := d.last(); l.EndpointInformationEpoch != -1 || l.UserEndpoint == nil || l.UserEndpoint.Port != 7 {
		t.Errorf("joined with %+v", l)
	}
	part := func(epoch int32, es ...kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint) *kmsg.StreamsGroupHeartbeatResponse {
		r := granted(1, none, none, none)
		r.EndpointInformationEpoch = epoch
		r.PartitionsByUserEndpoint = es
		return r
	}
	type active = kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpointActivePartition
	type standby = kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpointStandbyPartition
	entry := func(host string, a []active, s []standby) kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint {
		return kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint{
			UserEndpoint: kmsg.Endpoint{Host: host, Port: 1}, ActivePartitions: a, StandbyPartitions: s,
		}
	}
	d.m.HeartbeatAnswered(d.now, d.last().seq, part(4,
		entry("b", []active{{Topic: "y", Partitions: []int32{2}}}, nil),
		entry("a", nil, []standby{{Topic: "x", Partitions: []int32{0}}}),
		entry("b", []active{{Topic: "x", Partitions: []int32{1}}, {Topic: "y", Partitions: []int32{0, 2}}}, nil),
	))
	r := d.m.Ready(d.now)
	want := &Endpoints{4, []EndpointPartitions{
		{Endpoint{"a", 1}, nil, []TopicPartitions{{"x", []int32{0}}}},
		{Endpoint{"b", 1}, []TopicPartitions{{"x", []int32{1}}, {"y", []int32{0, 2}}}, nil},
	}}
	if !reflect.DeepEqual(r.Endpoints, want) {
		t.Errorf("endpoints %+v, want %+v", r.Endpoints, want)
	}
	d.m.Reconciled(r.Assignment.LocalEpoch)
	d.pump()
	if l := d.last(); l.EndpointInformationEpoch != 4 {
		t.Errorf("echoed %d", l.EndpointInformationEpoch)
	}
	// Null is unchanged; the epoch may go down; empty is nobody.
	d.m.HeartbeatAnswered(d.now, d.last().seq, part(4))
	if r := d.m.Ready(d.now); r.Endpoints != nil {
		t.Errorf("null changed the endpoints: %v", r.Endpoints)
	}
	d.next()
	down := part(0)
	down.PartitionsByUserEndpoint = []kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint{}
	d.m.HeartbeatAnswered(d.now, d.last().seq, down)
	if r := d.m.Ready(d.now); r.Endpoints == nil || r.Endpoints.Epoch != 0 || len(r.Endpoints.Partitions) != 0 {
		t.Errorf("endpoints %v", r.Endpoints)
	}
	// The echo survives a fence.
	d.beat(refusal(110, ""))
	if l := d.last(); l.MemberEpoch != 0 || l.EndpointInformationEpoch != 0 || l.UserEndpoint == nil {
		t.Errorf("rejoined with %+v", l)
	}
}

func TestEndpointEpochOnCoordinatorChange(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version int16
		node    int32
		want    int32
	}{
		{"same node", 1, 1, 9},
		{"another node", 1, 2, -1},
		{"same node, version 0", 0, 1, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := joined(t, testConfig())
			r := ok(1)
			r.EndpointInformationEpoch, r.Version = 9, tt.version
			d.beat(r)
			d.noCoordinator = true
			moved := refusal(16, "")
			moved.Version = tt.version
			d.beat(moved)
			d.m.CoordinatorAnswered(d.now, d.asking, tt.node, 0, "")
			d.pump()
			if l := d.last(); l.EndpointInformationEpoch != tt.want {
				t.Errorf("echoed %d, want %d", l.EndpointInformationEpoch, tt.want)
			}
		})
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

func TestDescription(t *testing.T) {
	asked := func() *kmsg.StreamsGroupHeartbeatResponse {
		r := ok(1)
		r.TopologyDescriptionRequired = true
		return r
	}
	answer := func(d *driver, code int16) {
		d.m.DescriptionAnswered(d.now, d.pushed[len(d.pushed)-1], &kmsg.StreamsGroupTopologyDescriptionUpdateResponse{ErrorCode: code})
		d.pump()
	}
	t.Run("asked twice", func(t *testing.T) {
		d := joined(t, testConfig())
		d.beat(asked())
		d.beat(asked())
		if len(d.pushed) != 1 {
			t.Fatalf("%d pushes in flight", len(d.pushed))
		}
		answer(d, 0)
		d.beat(asked())
		if len(d.pushed) != 2 {
			t.Errorf("%d pushes", len(d.pushed))
		}
	})
	t.Run("retried", func(t *testing.T) {
		for _, code := range []int16{14, 7, 16, 15, 13} {
			d := joined(t, testConfig())
			d.beat(asked())
			for i, want := range []time.Duration{100, 200, 400} {
				at, n := d.now, len(d.pushed)
				answer(d, code)
				for len(d.pushed) == n {
					d.advance(10 * time.Millisecond)
				}
				if wait := d.now.Sub(at); wait < want*time.Millisecond || wait > (want+150)*time.Millisecond {
					t.Errorf("%d: push %d after %v", code, i, wait)
				}
			}
			if len(d.warnings) != 0 {
				t.Errorf("%d: warnings %v", code, d.warnings)
			}
		}
	})
	t.Run("dropped", func(t *testing.T) {
		for _, code := range allCodes() {
			if slices.Contains([]int16{14, 7, 16, 15, 13}, code) {
				continue
			}
			d := joined(t, testConfig())
			d.beat(asked())
			answer(d, code)
			d.advance(time.Minute)
			if len(d.pushed) != 1 || d.err != nil || d.m.State() != Stable {
				t.Errorf("%d: %d pushes, err %v, state %v", code, len(d.pushed), d.err, d.m.State())
			}
			if warned := len(d.warnings) == 1; warned == (code == 25) {
				t.Errorf("%d: warnings %v", code, d.warnings)
			}
		}
	})
	t.Run("connection lost", func(t *testing.T) {
		d := joined(t, testConfig())
		d.beat(asked())
		lookups := len(d.lookups)
		d.m.DescriptionFailed(d.now, d.pushed[0], errors.New("lost"))
		d.pump()
		d.advance(200 * time.Millisecond)
		if len(d.pushed) != 2 || len(d.lookups) != lookups+1 {
			t.Errorf("%d pushes, %d lookups", len(d.pushed), len(d.lookups)-lookups)
		}
		d.m.DescriptionFailed(d.now, d.pushed[1], ErrUnsupported)
		d.advance(time.Second)
		if len(d.pushed) != 2 || len(d.warnings) != 1 || d.err != nil {
			t.Errorf("%d pushes, warnings %v, err %v", len(d.pushed), d.warnings, d.err)
		}
	})
	t.Run("fenced meanwhile", func(t *testing.T) {
		d := joined(t, testConfig())
		d.beat(asked())
		d.beat(refusal(25, ""))
		answer(d, 14)
		d.m.LostDone(d.now)
		d.pump()
		d.answer(granted(2, none, none, none))
		d.advance(100 * time.Millisecond)
		if len(d.pushed) != 1 {
			t.Errorf("%d pushes", len(d.pushed))
		}
	})
	t.Run("off", func(t *testing.T) {
		cfg := testConfig()
		cfg.Description = nil
		d := joined(t, cfg)
		d.beat(asked())
		if len(d.pushed) != 0 {
			t.Errorf("%d pushes", len(d.pushed))
		}
	})
}
