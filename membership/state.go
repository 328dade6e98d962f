package membership

import "fmt"

// State is where a member is in its life. The names and the meaning are Java's
// (org.apache.kafka.clients.consumer.internals.MemberState).
//
// Legal transitions; a member never makes another one:
//
//	UNSUBSCRIBED    → JOINING, FATAL
//	JOINING         → RECONCILING, STABLE, FENCED, STALE, PREPARE_LEAVING, UNSUBSCRIBED, FATAL
//	RECONCILING     → ACKNOWLEDGING, STABLE, FENCED, PREPARE_LEAVING, FATAL
//	ACKNOWLEDGING   → STABLE, RECONCILING, FENCED, PREPARE_LEAVING, FATAL
//	STABLE          → RECONCILING, FENCED, PREPARE_LEAVING, FATAL
//	FENCED          → JOINING, UNSUBSCRIBED, FATAL
//	PREPARE_LEAVING → LEAVING, FENCED, UNSUBSCRIBED, FATAL
//	LEAVING         → UNSUBSCRIBED, STALE, FENCED, FATAL
//	STALE           → JOINING, UNSUBSCRIBED, FATAL
//	FATAL           → nothing
type State uint8

const (
	// Unsubscribed is a member that is in no group: it has not joined yet, or
	// it has left.
	Unsubscribed State = iota
	// Joining sends epoch 0 with everything the coordinator must know.
	Joining
	// Reconciling has a target assignment that is not owned yet.
	Reconciling
	// Acknowledging owns its target and is about to say so. It ends when the
	// request is generated, not when it is answered.
	Acknowledging
	// Stable owns its target, and the coordinator has been told.
	Stable
	// Fenced has lost its tasks and rejoins once they are released.
	Fenced
	// PrepareLeaving releases its tasks before it sends a leave.
	PrepareLeaving
	// Leaving is about to send its leave. It ends when the request is
	// generated.
	Leaving
	// Stale has left because its tasks made no progress for the rebalance
	// time-out. It rejoins at the next progress, once its tasks are released.
	Stale
	// Fatal has met an error that it can't recover from.
	Fatal
)

var stateNames = [...]string{
	"UNSUBSCRIBED", "JOINING", "RECONCILING", "ACKNOWLEDGING", "STABLE",
	"FENCED", "PREPARE_LEAVING", "LEAVING", "STALE", "FATAL",
}

// String returns Java's name, for instance "PREPARE_LEAVING".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// states is a set.
type states uint16

func set(ss ...State) (out states) {
	for _, s := range ss {
		out |= 1 << s
	}
	return out
}

func (s State) in(ss states) bool { return ss&(1<<s) != 0 }

var legal = [...]states{
	Unsubscribed:   set(Joining, Fatal),
	Joining:        set(Reconciling, Stable, Fenced, Stale, PrepareLeaving, Unsubscribed, Fatal),
	Reconciling:    set(Acknowledging, Stable, Fenced, PrepareLeaving, Fatal),
	Acknowledging:  set(Stable, Reconciling, Fenced, PrepareLeaving, Fatal),
	Stable:         set(Reconciling, Fenced, PrepareLeaving, Fatal),
	Fenced:         set(Joining, Unsubscribed, Fatal),
	PrepareLeaving: set(Leaving, Fenced, Unsubscribed, Fatal),
	Leaving:        set(Unsubscribed, Stale, Fenced, Fatal),
	Stale:          set(Joining, Unsubscribed, Fatal),
	Fatal:          0,
}

var (
	// inGroup are the states of a member that takes part: it heartbeats at the
	// interval and takes assignments.
	inGroup = set(Joining, Reconciling, Acknowledging, Stable)
	// beating are the states in which requests go out at the interval.
	beating = inGroup | set(PrepareLeaving)
)

// Transition is one change of a member's state.
type Transition struct{ From, To State }
