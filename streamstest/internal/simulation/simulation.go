package simulation

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/membership"
)

const group = "app"

// Result is what came of a schedule that kept all its promises.
type Result struct {
	Events     int
	Heartbeats int
	Members    int           // in the end
	Settled    time.Duration // how long the group took to settle once the faults were over
}

// Failure is a promise that wasn't kept.
type Failure struct {
	Schedule   *Schedule
	At         time.Duration // in logical time
	What       string
	Transcript []string // the last events; nil if none was kept
}

// Error tells what was broken, and how to see it again.
func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schedule %d, after %v: %s\nreplay it with: go test ./streamstest/internal/simulation -run TestSchedules -simulation.seed=%d\n%v",
		f.Schedule.Seed, f.At, f.What, f.Schedule.Seed, f.Schedule)
	if len(f.Transcript) > 0 {
		fmt.Fprintf(&b, "\n%s", strings.Join(f.Transcript, "\n"))
	}
	return b.String()
}

// Run runs a schedule until its group has settled. The error is a *Failure, with the last keep events.
func Run(plan *Schedule, keep int) (Result, error) {
	s := newSim(plan, keep)
	s.run()
	if s.failure != nil {
		s.failure.Transcript = s.transcript.all()
		return s.result, s.failure
	}
	return s.result, nil
}

// sim is one schedule while it runs.
type sim struct {
	plan *Schedule
	rng  drawer
	queue
	now        time.Duration
	transcript *transcript
	log        *slog.Logger

	topology *kmsg.StreamsGroupHeartbeatRequestTopology
	broker   *broker
	slots    []*slot
	born     int // hosts so far
	holders  map[membership.TaskID][]*host
	// contested are the tasks that more than one host owns as active.
	contested map[membership.TaskID]struct{}

	calm    bool // the faults are over
	done    bool // the group has settled
	result  Result
	failure *Failure
}

func newSim(plan *Schedule, keep int) *sim {
	s := &sim{
		plan:       plan,
		rng:        drawer{rand.New(rand.NewPCG(plan.Seed, 0x51))},
		transcript: newTranscript(keep),
		log:        slog.New(slog.DiscardHandler),
		holders:    make(map[membership.TaskID][]*host),
		contested:  make(map[membership.TaskID]struct{}),
	}
	s.topology = topology(plan.Repartition)
	s.broker = newBroker(s)
	for i, p := range plan.Slots {
		s.slots = append(s.slots, newSlot(s, i, p))
	}
	return s
}

var beginning = time.UnixMilli(1_700_000_000_000)

// time is the logical time as members and coordinator see it.
func (s *sim) time() time.Time { return beginning.Add(s.now) }

func (s *sim) after(d time.Duration, do func()) { s.push(s.now+d, do) }

func (s *sim) say(who, format string, args ...any) {
	if s.transcript != nil {
		s.transcript.add(s.now, who, format, args...)
	}
}

// fail ends the schedule. The first failure counts.
func (s *sim) fail(format string, args ...any) {
	if s.failure == nil {
		s.failure = &Failure{Schedule: s.plan, At: s.now, What: fmt.Sprintf(format, args...)}
	}
}

func (s *sim) run() {
	for _, slot := range s.slots {
		if !slot.plan.Late {
			s.after(s.rng.upTo(s.plan.Interval), slot.start)
		}
	}
	if s.plan.Faults.For > 0 {
		s.operate()
	}
	s.push(s.plan.Faults.For, s.calmDown)
	for s.failure == nil && !s.done && len(s.events) > 0 {
		e := s.pop()
		s.now = e.at
		s.result.Events++
		e.do()
		s.checkTasks()
	}
	if s.failure == nil && !s.done {
		s.fail("nothing is left to happen")
	}
}
