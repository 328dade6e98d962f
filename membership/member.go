package membership

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Member is one member of a streams group as a pure state machine: it has no
// goroutine, no clock and no socket. Tell it what happened with its methods,
// then carry out what [Member.Ready] returns; do that after every event and
// when [Ready.Wake] has come. Time must not run backwards. It is not safe for
// concurrent use; [Loop] drives one over the wire.
type Member struct {
	cfg   Config
	join  joinFields
	state State
	// epoch is what the coordinator gave last; 0 joining, −1 and −2 leaving.
	epoch int32

	// What the coordinator set last.
	interval       time.Duration // between heartbeats, never 0
	offsetInterval time.Duration
	recoveryLag    int64 // −1 unknown
	version        int16 // of the last answer, −1 before the first
	endpointEpoch  int32 // echoed
	statuses       []Status
	ready          bool
	readyTold      bool      // the first value was handed out
	missingSince   time.Time // since when source topics are missing; zero: none is

	// target is what the coordinator wants, current what is owned, offered the
	// targets handed out and not yet owned, oldest first. Invariant: only what
	// Reconciled named ever becomes current, and only current is ever sent.
	target, current Assignment
	targeted        bool // target was set since the last join
	targetReady     bool // the group's readiness that target went out with
	localEpoch      int64
	offered         []Assignment

	// listsSent: the coordinator knows current. It and what offsets remembers
	// end with any error, since nobody knows then what arrived.
	listsSent bool
	offsets   offsetReport

	beat        beat
	coordinator coordinator
	push        push
	inquiry     inquiry
	exit        exit

	// progressAt is when the tasks last made progress; stalledAt is the value
	// that it had when the member left for the lack of it.
	progressAt, stalledAt time.Time

	// confirmedAt is when the heartbeat was sent whose answer was last the
	// coordinator's word that the tasks which are owned are ours: it knew of
	// them, and wants none of them back. Zero: there is no such word.
	confirmedAt time.Time
	owning      int // rises with every change of current

	lostWait   bool // tasks are lost and not yet released
	introduced bool // a join went out since the member was last outside
	shutdown   bool // RequestShutdown was called
	fences     backoff

	// Before the first join was answered.
	joined            bool
	startedAt         time.Time
	lastErr           error // last transport failure, if nothing answered since
	instanceWaitUntil time.Time
	brokenSince       time.Time // since when the coordinator fails internally; zero: it doesn't
	surfaced          int16     // code surfaced last, so that it is said once

	failure error
	out     Ready
}

// beat is the timing of heartbeats: at most one is in flight, except that a
// leave overtakes.
type beat struct {
	seq       uint64 // numbers requests of all kinds
	inFlight  uint64 // 0: none
	sentAt    time.Time
	owning    int       // Member.owning when it was sent
	due       time.Time // the interval's end
	notBefore time.Time // the end of a back-off
	urgent    bool      // don't wait for due
	retry     backoff
	throttled time.Time // nothing goes out before
	// sent is in flight, spare can be used again. One that got no answer may
	// still be read by the transport, so it is left to it.
	sent, spare *kmsg.StreamsGroupHeartbeatRequest
}

// coordinator is what the member knows about where its group lives.
type coordinator struct {
	known  bool
	node   int32  // known last, −1 never
	asking uint64 // number of the lookup that is out, 0: none
	due    time.Time
	retry  backoff
}

// defaultHeartbeatInterval is group.streams.heartbeat.interval.ms's default; it
// only matters before the coordinator has said otherwise.
const defaultHeartbeatInterval = 5 * time.Second

// NewMember validates cfg and makes a member that is in no group.
func NewMember(cfg Config) (*Member, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	m := &Member{cfg: cfg, join: newJoinFields(&cfg), recoveryLag: -1, version: -1, endpointEpoch: -1}
	m.interval = defaultHeartbeatInterval
	m.coordinator.node = -1
	return m, nil
}

// Join starts the member. A second call does nothing.
func (m *Member) Join(now time.Time) {
	if !m.startedAt.IsZero() || m.exit.done {
		return
	}
	m.startedAt = now
	m.Progress(now)
	m.toJoining(now)
}

// MemberID returns the member's id, which never changes.
func (m *Member) MemberID() string { return m.cfg.MemberID }

// Epoch returns the member epoch: what to commit with; 0 while joining, −1
// or −2 from when the member is leaving.
func (m *Member) Epoch() int32 { return m.epoch }

// State returns where the member is in its life.
func (m *Member) State() State { return m.state }

// confirmedIntervals is for how many heartbeat intervals a confirmation holds.
// It has to end well before the group's session time-out, which a member isn't
// told: Kafka's default is nine intervals.
const confirmedIntervals = 3

// ConfirmedUntil returns until when the tasks may be processed on the strength
// of what the coordinator said last. After that it may have given them to others
// without this member knowing, because the process was stopped for a while or
// the network is split: wait for the next answer. Zero is never: the tasks are
// lost, or there have been none.
func (m *Member) ConfirmedUntil() time.Time {
	if m.confirmedAt.IsZero() {
		return time.Time{}
	}
	return m.confirmedAt.Add(confirmedIntervals * m.interval)
}

// confirm takes an answer for the coordinator's word that the tasks are ours. It
// is none while an answer is missing in which it may have taken some away, and
// none to a question that was asked before they were owned.
func (m *Member) confirm() {
	if m.beat.owning == m.owning && !m.inquiry.unsure && covers(m.target.Active, m.current.Active) {
		m.confirmedAt = m.beat.sentAt
	}
}

// covers tells whether all, which is sorted, has every task of some.
func covers(all, some []TaskID) bool {
	for _, t := range some {
		if _, ok := slices.BinarySearchFunc(all, t, TaskID.Compare); !ok {
			return false
		}
	}
	return true
}

// Progress says that the tasks made progress at the given time.
func (m *Member) Progress(at time.Time) { m.progressAt = later(m.progressAt, at) }

// RequestShutdown asks the coordinator to stop the whole application: the next
// request, which goes out at once, and all later ones say so.
func (m *Member) RequestShutdown() {
	if !m.shutdown {
		m.shutdown, m.beat.urgent = true, true
	}
}

// Reconciled says that exactly the tasks of the assignment with this local
// epoch are owned now. It does nothing when that assignment is no longer on
// offer, because a later one was acknowledged or the member has been fenced or
// has left meanwhile.
func (m *Member) Reconciled(localEpoch int64) {
	for i := range m.offered {
		if m.offered[i].LocalEpoch != localEpoch {
			continue
		}
		if !covers(m.current.Active, m.offered[i].Active) {
			m.confirmedAt = time.Time{} // the coordinator doesn't know yet
		}
		m.current = m.offered[i]
		m.owning++
		m.offered = append(m.offered[:0], m.offered[i+1:]...)
		m.listsSent = false
		m.offsets.assigned(m.current.Warmup)
		m.to(Acknowledging)
		m.beat.urgent = true
		return
	}
}

// SetTaskOffsets sets, for each task in the state directory that doesn't run
// as active on this member, the sum over its changelog partitions of the next
// offset, and of the end offset − 1. Both are replaced as a whole. A task whose
// end is unknown is left out of ends, or has math.MaxInt64 there.
func (m *Member) SetTaskOffsets(offsets, ends map[TaskID]int64) {
	m.offsets.set(offsets, ends)
	m.hurryWarmups()
}

// hurryWarmups makes the next heartbeat go out at once if a warm-up task has
// caught up: the coordinator may promote it.
func (m *Member) hurryWarmups() {
	if m.version != 0 && m.offsets.newlyCaughtUp(m.current.Warmup, m.recoveryLag) {
		m.beat.urgent = true
	}
}

// to changes the state. An illegal change is a bug of this package; it ends
// the member rather than the process.
func (m *Member) to(s State) {
	if s == m.state {
		return
	}
	if !s.in(legal[m.state]) {
		if m.state == Fatal {
			return // the error that made it so is the one to report
		}
		m.failure = fmt.Errorf("membership: bug: illegal transition from %v to %v", m.state, s)
		s = Fatal
	}
	m.out.Transitions = append(m.out.Transitions, Transition{m.state, s})
	m.state = s
}

func (m *Member) toJoining(now time.Time) {
	m.epoch = 0
	m.introduced = false
	m.exit.why = stay
	m.forget()
	m.beat.due = now
	m.to(Joining)
}

// forget drops what was sent last.
func (m *Member) forget() {
	m.listsSent = false
	m.offsets.known = false
}

// loseCoordinator makes the next request wait for a lookup.
func (m *Member) loseCoordinator(now time.Time) {
	c := &m.coordinator
	if c.known {
		c.known = false
		c.due = now.Add(c.retry.nextFree(m.random()))
	}
	if m.version == 0 {
		// Brokers before 4.4 send the endpoints only if their epoch is greater
		// than the echo, and the epoch doesn't survive a restart.
		m.endpointEpoch = -1
	}
}

// loseTasks says that all tasks are gone. Whoever has them must release them
// before the member rejoins; lostWait tells whether there is anybody to wait for.
func (m *Member) loseTasks(reason error) {
	held := !m.current.empty() || m.lostWait
	for i := range m.offered {
		held = held || !m.offered[i].empty()
	}
	if held && !m.lostWait {
		m.out.Lost = reason
	}
	m.lostWait = held
	m.current, m.target = Assignment{}, Assignment{}
	m.targeted = false
	m.confirmedAt = time.Time{}
	m.offered = m.offered[:0]
	m.out.Assignment = nil
	m.offsets.assigned(nil)
	m.push.drop()
	m.inquiry.drop()
}

// fail ends the member. If the coordinator threw it out it becomes FATAL;
// otherwise it is still in the group, and Leave may say good-bye.
func (m *Member) fail(err error, thrownOut bool) {
	if m.failure == nil {
		m.failure = err
	}
	m.push.drop()
	if thrownOut {
		m.to(Fatal)
	}
}

// random is in [0,1).
func (m *Member) random() float64 {
	var b [8]byte
	if _, err := io.ReadFull(m.cfg.Random, b[:]); err != nil {
		return 0.5 // no jitter is better than no retry
	}
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}

func (m *Member) nextSeq() uint64 {
	m.beat.seq++
	return m.beat.seq
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
