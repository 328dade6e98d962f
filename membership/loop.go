package membership

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Callbacks tell what happens to the member. The loop calls them on its own
// goroutine, one at a time and in order; they must return quickly, so they hand
// work over to another goroutine. They may call the Loop's methods, except Run
// and Leave, which would wait for themselves. Nil ones are not called.
type Callbacks struct {
	// OnAssignment: reconcile towards a. Revoke (suspend, commit, close) what
	// isn't in it, then take what is new, then call [Loop.Reconciled] with
	// a.LocalEpoch. Commit with [Loop.MemberEpoch]. A later call supersedes an
	// earlier one. a may hold the very tasks that are owned already (the
	// group became ready, or the member has rejoined): acknowledge it as well.
	OnAssignment func(a Assignment)

	// OnTasksLost: all tasks are lost. Close them dirty, without committing,
	// then call [Loop.LostDone]; the member rejoins only after that. reason
	// is a *[CoordinatorError], [ErrNoProgress], or what was given to
	// [Loop.Fence].
	OnTasksLost func(reason error)

	// OnReady: the group's condition has changed. Not ready (statuses 1, 2, 3
	// and 5): pause processing, close nothing. statuses are the last ones
	// that the coordinator sent; nil is none. It is called with the first
	// answer, and whenever the statuses differ.
	OnReady func(ready bool, statuses []Status)

	// OnStateChange: the member went from one state to another.
	OnStateChange func(from, to State)

	// OnEndpoints: the map of who owns what has changed. endpoints is
	// immutable, sorted by endpoint; empty means that nobody has an endpoint.
	// epoch may go down, when the coordinator has moved or restarted.
	OnEndpoints func(epoch int32, endpoints []EndpointPartitions)

	// OnWarning: an error that the member survives, but that somebody should
	// look at, for instance TOPIC_AUTHORIZATION_FAILED.
	OnWarning func(err error)
}

// Loop drives a [Member] over the wire.
type Loop struct {
	client *kgo.Client
	cb     Callbacks
	log    *slog.Logger
	cfg    Config

	// owner is held by the one goroutine that may touch member and what
	// follows it.
	owner   chan struct{}
	member  *Member
	lookups int
	silent  bool // it was said that the coordinator doesn't answer

	mu     sync.Mutex
	inbox  []event
	signal chan struct{} // has an element when inbox has, or may have

	epoch    atomic.Int32
	state    atomic.Uint32
	born     time.Time
	progress atomic.Int64 // nanoseconds since born
	until    atomic.Int64 // Member.ConfirmedUntil, likewise
	stale    atomic.Bool  // the next progress is waited for
	started  atomic.Bool
	left     chan struct{} // closed when the member has left for good
	leaveErr error         // readable once left is closed
}

type event func(m *Member, now time.Time)

// NewLoop validates cfg and makes a loop. client is used, not owned: close it
// after the loop has ended. A client whose producer or consumer is busy doesn't
// delay heartbeats, which have a connection apart from fetches and produces.
func NewLoop(client *kgo.Client, cfg Config, cb Callbacks) (*Loop, error) {
	if client == nil {
		return nil, fmt.Errorf("membership: invalid Config: no client")
	}
	m, err := NewMember(cfg)
	if err != nil {
		return nil, err
	}
	cfg = m.cfg
	return &Loop{
		client: client, cb: cb, cfg: cfg, member: m,
		log:    cfg.Logger.With("group", cfg.Group, "member", cfg.MemberID),
		owner:  make(chan struct{}, 1),
		signal: make(chan struct{}, 1),
		left:   make(chan struct{}),
		born:   time.Now(),
	}, nil
}

// Run joins the group and takes part in it. It returns
//   - nil once the member has left because of [Loop.Leave];
//   - ctx's error as soon as ctx ends, without leaving, as in a crash;
//   - an error that the member can't go on after, which says what to do:
//     [ErrShutdownRequested], a *[MissingSourceTopicsError], an
//     *[IncorrectlyPartitionedTopicsError], a *[CoordinatorError], an
//     *[UnreachableError], [ErrUnsupported] or an *[AnswerError].
//
// After the first three of these errors the member is still in the group:
// commit and close the tasks, then call [Loop.Leave]. After the others its
// state is [Fatal]: the tasks are lost, so close them without committing.
func (l *Loop) Run(ctx context.Context) error {
	if !l.started.CompareAndSwap(false, true) {
		return ErrRunning
	}
	select {
	case l.owner <- struct{}{}:
		defer func() { <-l.owner }()
	case <-l.left:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	l.member.Join(time.Now())
	return l.drive(ctx)
}

// Leave ends the membership and makes Run return nil. The tasks must have been
// committed and closed. It waits until the leave was answered or ctx ends; the
// request goes out once, and doesn't wait for one that is in flight. It may be
// called after Run has returned, and then sends the leave itself if the member
// is still in the group. The first call's mode counts.
func (l *Loop) Leave(ctx context.Context, how LeaveMode) error {
	l.post(func(m *Member, now time.Time) { m.Leave(now, how) })
	select {
	case <-l.left:
		return l.leaveErr
	case l.owner <- struct{}{}:
		// Nobody else drives the member.
		defer func() { <-l.owner }()
		select {
		case <-l.left:
			return l.leaveErr
		default:
		}
		if err := l.drive(ctx); err != nil {
			l.member.AbandonLeave(l.unanswered(err))
			_ = l.step() // says Done
		}
		return l.leaveErr
	case <-ctx.Done():
		err := l.unanswered(ctx.Err())
		l.post(func(m *Member, _ time.Time) { m.AbandonLeave(err) })
		return err
	}
}

func (l *Loop) unanswered(err error) error {
	return fmt.Errorf("streams group %q: leaving wasn't confirmed in time; "+
		"if the coordinator doesn't know, the tasks move when the session has expired: %w", l.cfg.Group, err)
}

// Reconciled says that exactly the tasks of the assignment with this local
// epoch are owned now; the member acknowledges it at once. An epoch that is not
// on offer any more is ignored.
func (l *Loop) Reconciled(localEpoch int64) {
	l.post(func(m *Member, _ time.Time) { m.Reconciled(localEpoch) })
}

// LostDone says that the tasks which OnTasksLost took away are released.
func (l *Loop) LostDone() { l.post((*Member).LostDone) }

// Fence says that a commit, not a heartbeat, has shown that the member's epoch
// is no longer good (UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH): OnTasksLost
// follows, then the member leaves and rejoins.
func (l *Loop) Fence(reason error) {
	l.post(func(m *Member, now time.Time) { m.Fence(now, reason) })
}

// RequestShutdown asks, at once, for the whole application to be shut down:
// every member's Run, this one's too, ends with [ErrShutdownRequested].
func (l *Loop) RequestShutdown() {
	l.post(func(m *Member, _ time.Time) { m.RequestShutdown() })
}

// SetTaskOffsets sets, for each task in the state directory that doesn't run
// as active on this member, the sum over its changelog partitions of the next
// offset, and of the end offset − 1. Both are replaced as a whole and must not
// be changed afterwards. A task whose end is unknown is left out of endOffsets,
// or has math.MaxInt64 there. When they are sent is the member's business.
func (l *Loop) SetTaskOffsets(offsets, endOffsets map[TaskID]int64) {
	l.post(func(m *Member, _ time.Time) { m.SetTaskOffsets(offsets, endOffsets) })
}

// Confirmed says whether the tasks may be processed: the coordinator has lately
// confirmed them, within three heartbeat intervals. Otherwise wait for it, or for
// OnTasksLost. It takes no lock, so that it can be asked often.
func (l *Loop) Confirmed() bool { return int64(time.Since(l.born)) < l.until.Load() }

// Progress says that the tasks make progress. Call it as often as convenient,
// also when there is nothing to do: it takes no lock. Without a call for the
// rebalance time-out, the member leaves (max.poll.interval.ms).
func (l *Loop) Progress() {
	l.progress.Store(int64(time.Since(l.born)))
	if l.stale.Load() {
		l.wake()
	}
}

// MemberID returns the member's id, which never changes.
func (l *Loop) MemberID() string { return l.cfg.MemberID }

// MemberEpoch returns the epoch to commit with. It takes no lock.
func (l *Loop) MemberEpoch() int32 { return l.epoch.Load() }

// State returns the member's state. It takes no lock.
func (l *Loop) State() State { return State(l.state.Load()) }

// post gives the owner of the member something to tell it.
func (l *Loop) post(e event) {
	select {
	case <-l.left:
		return // nobody will read it
	default:
	}
	l.mu.Lock()
	l.inbox = append(l.inbox, e)
	l.mu.Unlock()
	l.wake()
}

func (l *Loop) wake() {
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

func (l *Loop) posted() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.inbox
	l.inbox = nil
	return in
}
