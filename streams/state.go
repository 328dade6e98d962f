package streams

import "fmt"

// State is where an application is in its life, with KafkaStreams' names:
//
//	CREATED ──▶ REBALANCING ◀──▶ RUNNING
//	                 │              │
//	                 ├──────────────┼──▶ PENDING_SHUTDOWN ──▶ NOT_RUNNING
//	                 │              │            └──▶ ERROR (it could not close well)
//	                 └──────────────┴──▶ PENDING_ERROR ──▶ ERROR
type State int8

// The states.
const (
	Created         State = iota // not run yet
	Rebalancing                  // joining, or tasks come, go or are restored
	Running                      // all assigned tasks are processing
	PendingShutdown              // the context has ended; committing and leaving
	NotRunning                   // ended well
	PendingError                 // a thread failed; the others are closing
	Error                        // ended with an error
)

var stateNames = [...]string{"CREATED", "REBALANCING", "RUNNING", "PENDING_SHUTDOWN", "NOT_RUNNING", "PENDING_ERROR", "ERROR"}

// String is the state's name in Java.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int8(s))
	}
	return stateNames[s]
}
