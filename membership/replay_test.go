package membership

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The replay gives a Member the answers that a Java member got, and compares
// each of its requests with Java's, field for field. What the coordinator
// doesn't say (when tasks were owned, offsets, leaving) is taken from Java's
// next request.
//
// Not compared, because they are free: the order inside lists, and times to
// the millisecond. The known differences are in
// endings, and in replay.request.

// ending is how a member's life ends in the trace.
type ending func(t *testing.T, r Ready)

func endsWith(target error) ending {
	return func(t *testing.T, r Ready) {
		t.Helper()
		if !errors.Is(r.Err, target) {
			t.Errorf("the member ended with %v, want %v", r.Err, target)
		}
	}
}

func endsAs[E error](t *testing.T, r Ready) {
	t.Helper()
	if _, ok := errors.AsType[E](r.Err); !ok {
		t.Errorf("the member ended with %v, want a %T", r.Err, *new(E))
	}
}

func retries(t *testing.T, r Ready) {
	t.Helper()
	if r.Err != nil || r.Wake.IsZero() {
		t.Errorf("the member ended with %v, want it to go on", r.Err)
	}
}

// endings are the members that end otherwise than by leaving, by file. Where
// Java ends and this member goes on, or the other way round, it says so.
var endings = map[string]ending{
	"05-static-membership.jsonl":        endsWith(ErrInstanceIDInUse),
	"07-shutdown-application.jsonl":     endsWith(ErrShutdownRequested),
	"08-missing-source.jsonl":           endsAs[*MissingSourceTopicsError],
	"33-missing-source-hb500.jsonl":     endsAs[*MissingSourceTopicsError],
	"33-missing-source-hb3000.jsonl":    endsAs[*MissingSourceTopicsError],
	"36-source-topic-deleted.jsonl":     endsAs[*MissingSourceTopicsError],
	"09-wrong-copartitioning.jsonl":     endsAs[*IncorrectlyPartitionedTopicsError],
	"10-topology-change.jsonl":          endsWith(ErrTopologyMismatch),
	"17-hb-error-111.jsonl":             endsWith(kerr.UnreleasedInstanceID),
	"17-hb-error-113.jsonl":             endsWith(kerr.StaleMemberEpoch),
	"17-hb-error-69.jsonl":              endsWith(ErrNotStreamsGroup),
	"32-classic-group-in-the-way.jsonl": endsWith(ErrNotStreamsGroup),
	"18-hb-fatal-130.jsonl":             endsWith(kerr.StreamsInvalidTopology),
	"18-hb-fatal-131.jsonl":             endsWith(ErrTopologyMismatch),
	"18-hb-fatal-132.jsonl":             endsWith(ErrTopologyMismatch),
	"18-hb-fatal-17.jsonl":              endsWith(kerr.InvalidTopicException),
	"18-hb-fatal-24.jsonl":              endsWith(kerr.InvalidGroupID),
	"18-hb-fatal-3.jsonl":               endsWith(kerr.UnknownTopicOrPartition),
	"18-hb-fatal-30.jsonl":              endsWith(kerr.GroupAuthorizationFailed),
	"19-status-2.jsonl":                 endsAs[*IncorrectlyPartitionedTopicsError],
	"19-status-4.jsonl":                 endsWith(ErrShutdownRequested),
	// Java dies of these; they are retried here.
	"17-hb-error-13.jsonl": retries,
	"17-hb-error-7.jsonl":  retries,
	"18-hb-fatal-29.jsonl": retries,
	// Java retries FENCED_INSTANCE_ID; it ends the member here.
	"17-hb-error-82.jsonl": endsWith(ErrInstanceIDInUse),
}

func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/traces/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		t.Run(strings.TrimSuffix(name, ".jsonl"), func(t *testing.T) {
			lives := readTrace(t, name)
			ended := false
			for _, id := range slices.Sorted(maps.Keys(lives)) {
				t.Run(id, func(t *testing.T) {
					r := newReplay(t, lives[id])
					r.run()
					if r.last.Done {
						return
					}
					end := endings[name]
					switch {
					case end != nil && (r.last.Err != nil || !r.killed()):
						end(t, r.last)
						ended = true
					case r.last.Err != nil:
						t.Errorf("the member ended with %v, Java's didn't", r.last.Err)
					}
				})
			}
			if endings[name] != nil && !ended {
				t.Errorf("no member came to its end")
			}
		})
	}
}

// replay is one member's life.
type replay struct {
	t     *testing.T
	m     *Member
	life  []step
	queue []emitted // generated, not yet seen in the trace
	last  Ready

	offered       int64 // local epoch of the assignment on offer, 0: none
	lost          bool
	asleep        bool
	sent          *kmsg.StreamsGroupHeartbeatRequest
	seq           uint64
	sentAt        time.Time
	pushes        int
	skew          time.Duration // by how much the member's clock is ahead of Java's
	renewed       bool          // rejoined after a refused commit, not yet acknowledged
	offsets, ends map[TaskID]int64
}

type emitted struct {
	at  time.Time
	seq uint64
	req kmsg.StreamsGroupHeartbeatRequest
}

func newReplay(t *testing.T, life []step) *replay {
	first := life[0].req
	cfg := Config{
		Group: first.Group, MemberID: first.MemberID, ProcessID: *first.ProcessID, Topology: first.Topology,
		RebalanceTimeout: time.Duration(first.RebalanceTimeoutMillis) * time.Millisecond,
		Description:      &kmsg.TopologyDescription{},
		Random:           middle{},
		ClientTags:       map[string]string{},
	}
	if first.InstanceID != nil {
		cfg.InstanceID = *first.InstanceID
	}
	if first.UserEndpoint != nil {
		cfg.Endpoint = &Endpoint{first.UserEndpoint.Host, first.UserEndpoint.Port}
	}
	for _, tag := range first.ClientTags {
		cfg.ClientTags[tag.Key] = tag.Value
	}
	m, err := NewMember(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &replay{t: t, m: m, life: life}
}

// middle is a source of randomness that gives the middle of each range.
type middle struct{}

func (middle) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 0x7f
	}
	return len(p), nil
}

// killed tells whether the trace ends a member without a reason on the wire.
func (r *replay) killed() bool {
	last := r.life[len(r.life)-1]
	return last.resp == nil || last.resp.ErrorCode == 0 && len(last.resp.Status) == 0
}

func (r *replay) run() {
	for i, s := range r.life {
		if r.t.Failed() || r.last.Err != nil {
			return
		}
		s.at = s.at.Add(r.skew)
		if s.ev == "woke" {
			r.asleep = false
		}
		if !r.asleep {
			r.m.Progress(s.at)
		}
		switch {
		case s.ev == "sleeping":
			r.asleep = true
		case s.ev == "push":
			r.pushes--
			if r.pushes < 0 {
				r.t.Errorf("%v: Java pushed the description, the member didn't", s.at.Sub(zeroTime))
			}
		case s.req != nil:
			r.request(s, i)
		case s.resp != nil:
			if i+1 < len(r.life) && r.life[i+1].req != nil && r.life[i+1].req.MemberEpoch == 0 {
				r.setOffsets(r.life[i+1].req) // a rejoin may follow at once
			}
			r.m.HeartbeatAnswered(s.at, r.seq, s.resp)
			r.ready(s.at)
		}
	}
	if len(r.queue) > 0 && r.queue[0].at.Before(r.life[len(r.life)-1].at) {
		r.t.Errorf("%v: the member sent a request that Java didn't: %+v", r.queue[0].at.Sub(zeroTime), r.queue[0].req)
	}
}

// ready carries out what the member wants, with a coordinator that is found at
// once.
func (r *replay) ready(now time.Time) {
	for {
		out := r.m.Ready(now)
		r.last = out
		if out.Lost != nil {
			r.lost = true
			r.offered = 0
		}
		if out.Assignment != nil {
			r.offered = out.Assignment.LocalEpoch
		}
		if out.Description != nil {
			r.pushes++
			r.m.DescriptionAnswered(now, out.DescriptionSeq, &kmsg.StreamsGroupTopologyDescriptionUpdateResponse{})
		}
		if out.Heartbeat != nil {
			r.queue = append(r.queue, emitted{now, out.HeartbeatSeq, *out.Heartbeat})
		}
		if out.FindCoordinator == 0 {
			return
		}
		r.m.CoordinatorAnswered(now, out.FindCoordinator, 1, 0, "")
	}
}

func (r *replay) setOffsets(want *kmsg.StreamsGroupHeartbeatRequest) {
	if want.TaskOffsets == nil && want.TaskEndOffsets == nil {
		return
	}
	if want.TaskOffsets != nil {
		r.offsets = offsetMap(want.TaskOffsets)
	}
	if want.TaskEndOffsets != nil {
		r.ends = offsetMap(want.TaskEndOffsets)
	}
	r.m.SetTaskOffsets(r.offsets, r.ends)
}

// request makes the member do what led to Java's request, and compares.
func (r *replay) request(s step, i int) {
	t, m, want := r.t, r.m, s.req
	if want.ShutdownApplication {
		m.RequestShutdown()
	}
	r.setOffsets(want)
	if r.lost {
		m.LostDone(s.at)
		r.lost = false
	}
	switch {
	case m.State() == Unsubscribed && want.MemberEpoch == 0 && r.sent == nil:
		m.Join(s.at)
	case want.MemberEpoch < 0:
		rejoins := slices.ContainsFunc(r.life[i+1:], func(s step) bool { return s.req != nil })
		switch {
		case rejoins && !r.asleep:
			m.Fence(s.at, errors.New("a commit was refused"))
			m.LostDone(s.at)
			r.renewed = true
		case !rejoins:
			m.Leave(s.at, map[int32]LeaveMode{-1: LeaveGroup, -2: RemainInGroup}[want.MemberEpoch])
		}
	case r.offered != 0 && (want.ActiveTasks != nil || s.at.Sub(r.sentAt) < m.interval*3/4):
		m.Reconciled(r.offered)
		r.offered = 0
	}
	r.ready(s.at)
	if wake := r.last.Wake; len(r.queue) == 0 && !wake.IsZero() && wake.Sub(s.at) < 200*time.Millisecond {
		// Java's intervals vary a little: let the member's clock catch up.
		r.skew += wake.Sub(s.at)
		s.at = wake
		r.ready(wake)
	}
	if len(r.queue) == 0 {
		t.Fatalf("%v: Java sent a request, the member (%v) doesn't:\n%+v", s.at.Sub(zeroTime), m.State(), want)
	}
	got := r.queue[0]
	r.queue = r.queue[1:]
	if d := s.at.Sub(got.at); d > 150*time.Millisecond {
		t.Errorf("%v: sent %v before Java", s.at.Sub(zeroTime), d)
	}
	if r.renewed && want.MemberEpoch > 0 {
		// Java leaves the task lists out of this acknowledgement when they
		// are the ones that it sent before it left. They are always in here.
		r.renewed = false
		if want.ActiveTasks == nil {
			got.req.ActiveTasks, got.req.StandbyTasks, got.req.WarmupTasks = nil, nil, nil
		}
	}
	r.compare(s.at, &got.req, want)
	r.sent, r.seq, r.sentAt = &got.req, got.seq, s.at
}

func offsetMap(in []kmsg.TaskOffset) map[TaskID]int64 {
	out := map[TaskID]int64{}
	for _, o := range in {
		out[TaskID{o.SubtopologyID, o.Partition}] = o.Offset
	}
	return out
}

func (r *replay) compare(at time.Time, got, want *kmsg.StreamsGroupHeartbeatRequest) {
	r.t.Helper()
	if g, w := requestText(got), requestText(want); g != w {
		r.t.Errorf("%v: the request differs from Java's\n got  %s\n want %s", at.Sub(zeroTime), g, w)
	}
}

// requestText is a request in a form that doesn't depend on the order in lists.
func requestText(r *kmsg.StreamsGroupHeartbeatRequest) string {
	c := *r
	for _, list := range []*[]kmsg.TaskIDs{&c.ActiveTasks, &c.StandbyTasks, &c.WarmupTasks} {
		if *list != nil {
			*list = tasksToWire(tasksFromWire(*list))
		}
	}
	for _, list := range []*[]kmsg.TaskOffset{&c.TaskOffsets, &c.TaskEndOffsets} {
		if *list != nil {
			*list = slices.Clone(*list)
			slices.SortFunc(*list, func(a, b kmsg.TaskOffset) int {
				return TaskID{a.SubtopologyID, a.Partition}.Compare(TaskID{b.SubtopologyID, b.Partition})
			})
		}
	}
	if c.ClientTags != nil {
		c.ClientTags = slices.Clone(c.ClientTags)
		slices.SortFunc(c.ClientTags, func(a, b kmsg.StreamsGroupHeartbeatRequestClientTag) int {
			return strings.Compare(a.Key, b.Key)
		})
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(b)
}
