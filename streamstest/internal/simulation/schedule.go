package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Schedule is what a seed means. Durations have millisecond precision.
type Schedule struct {
	Seed uint64

	// The group. Each slot has so many stream threads.
	Slots     []SlotPlan
	Stateful  int // tasks of the subtopology with a store
	Stateless int // tasks of the one without
	// Repartition: the stateless subtopology reads an internal topic, of which it has as many tasks as the stateful one.
	Repartition bool
	Endpoints   bool // members publish where they answer interactive queries

	// The brokers' settings. The group config changes between the two intervals if Reconfigure is set.
	Interval, OtherInterval time.Duration
	SessionTimeout          time.Duration // at least four of either interval
	InitialDelay            time.Duration
	AssignmentInterval      time.Duration
	OffsetInterval          time.Duration
	TopicDelay              time.Duration // until an internal topic exists that the coordinator asked for
	Standbys, Warmups       int

	// The members' settings.
	RequestTimeout   time.Duration
	RebalanceTimeout time.Duration
	InstanceIDWait   time.Duration

	// The processing side: the longest time for each of committing what is revoked, creating what is new, and closing what is lost.
	MaxReconcile time.Duration
	MaxLatency   time.Duration // of the network, one way

	Faults Faults
}

// SlotPlan is a place for an instance of the application.
type SlotPlan struct {
	Threads int
	Static  bool
	Late    bool // it isn't there from the beginning
}

// Faults are what goes wrong, until For has passed. Rates are probabilities of one message, weights are relative.
type Faults struct {
	For time.Duration

	DropRequest, DropAnswer, Delay, Repeat float64
	MaxDelay                               time.Duration // of a delayed request or answer

	// Every is the mean time between two actions of the operator, who chooses among these by weight.
	Every                                                  time.Duration
	Start, Leave, Restart, Crash, Pause, Move, Cut, Inject int
	Reconfigure, Lookup, Throttle                          int
}

// String is for the message of a failing schedule.
func (s *Schedule) String() string {
	type plain Schedule // without this method
	return fmt.Sprintf("%+v", plain(*s))
}

// Draw makes the schedule of a seed.
func Draw(seed uint64) *Schedule {
	d := drawer{rand.New(rand.NewPCG(seed, 0x5c4ed01e))}
	s := &Schedule{Seed: seed}
	d.group(s)
	d.settings(s)
	d.faults(s)
	return s
}

type drawer struct{ *rand.Rand }

func (d drawer) chance(p float64) bool { return d.Float64() < p }

func pick[T any](d drawer, from ...T) T { return from[d.IntN(len(from))] }

func (d drawer) group(s *Schedule) {
	members := 1 + d.IntN(6)
	switch d.IntN(20) {
	case 0:
		members = 1 + d.IntN(50)
	case 1, 2, 3:
		members = 1 + d.IntN(15)
	}
	static := pick(d, 0, 0, 0.3, 1)
	for members > 0 {
		threads := min(members, pick(d, 1, 1, 1, 2, 3))
		s.Slots = append(s.Slots, SlotPlan{Threads: threads, Static: d.chance(static), Late: len(s.Slots) > 0 && d.chance(0.3)})
		members -= threads
	}
	s.Stateful, s.Stateless = 1+d.IntN(8), 1+d.IntN(4)
	s.Repartition, s.Endpoints = d.chance(0.2), d.chance(0.3)
}

func (d drawer) settings(s *Schedule) {
	intervals := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}
	s.Interval, s.OtherInterval = pick(d, intervals...), pick(d, intervals...)
	longest := max(s.Interval, s.OtherInterval)
	s.SessionTimeout = 4*longest + d.upTo(6*longest)
	s.InitialDelay = pick(d, 0, 0, 0, 3*time.Second)
	s.AssignmentInterval = pick(d, 0, 0, time.Second, 3*time.Second)
	s.OffsetInterval = pick(d, time.Second, 3*time.Second, 10*time.Second)
	s.TopicDelay = pick(d, 0, 0, 2*s.Interval, 6*s.Interval)
	if d.chance(0.4) {
		s.Standbys = 1 + d.IntN(2)
	}
	if d.chance(0.4) {
		s.Warmups = 1 + d.IntN(3)
	}
	s.RequestTimeout = pick(d, s.Interval, 2*s.Interval, 3*time.Second, 6*s.Interval, 30*time.Second)
	s.RebalanceTimeout = 3*s.SessionTimeout + 30*time.Second
	s.InstanceIDWait = pick(d, 0, s.SessionTimeout*3/2)
	s.MaxReconcile = pick(d, time.Millisecond, 200*time.Millisecond, s.Interval, 3*s.Interval)
	// An answer comes before the request time-out and the next interval.
	s.MaxLatency = min(s.RequestTimeout/3, pick(d, time.Millisecond, 20*time.Millisecond, s.shortest()/5, s.shortest()/2))
}

// faults draws which faults there are. Few kinds at a time leave more room for what follows from each.
func (d drawer) faults(s *Schedule) {
	f := &s.Faults
	f.For = time.Duration(15+d.IntN(40)) * max(s.Interval, s.OtherInterval)
	kinds := pick(d, 0.1, 0.3, 0.6)
	rate := func() float64 {
		if !d.chance(kinds) {
			return 0
		}
		return pick(d, 0.01, 0.05, 0.2)
	}
	f.DropRequest, f.DropAnswer, f.Delay, f.Repeat = rate(), rate(), rate(), rate()
	f.MaxDelay = pick(d, s.Interval, 2*s.Interval, s.SessionTimeout, 2*s.SessionTimeout)
	f.Every = pick(d, s.Interval, 3*s.Interval, 10*s.Interval)
	weight := func() int {
		if !d.chance(kinds) {
			return 0
		}
		return 1 + d.IntN(4)
	}
	f.Start, f.Leave, f.Restart, f.Crash, f.Pause = 1+weight(), weight(), weight(), weight(), weight()
	f.Move, f.Cut, f.Inject, f.Reconfigure, f.Lookup, f.Throttle = weight(), weight(), weight(), weight(), weight(), weight()
}

// upTo is at least 0 and at most m, in whole milliseconds.
func (d drawer) upTo(m time.Duration) time.Duration {
	return time.Duration(d.Int64N(m.Milliseconds()+1)) * time.Millisecond
}
