package mirror

import (
	"fmt"
	"maps"
	"slices"
)

// State is where a partition is in being mirrored (KIP-1279):
//
//	Preparing ──▶ Mirroring ──▶ Pausing ──▶ Paused
//	                  │                       │
//	                  └──────▶ Stopping ◀─────┘
//	                              │
//	                              ▼
//	                           Stopped
//
// and from everywhere to Failed.
type State int8

// The states. Their values are this package's own; on the wire they have the
// numbers of [StateNumbers].
const (
	StateUnknown State = iota // the broker says so, or a number that has no state
	Preparing                 // the log is being aligned with the source's, and may be truncated
	Mirroring                 // records are being copied; read-only
	Pausing                   // copying is about to pause
	Paused                    // nothing is copied; read-only
	Stopping                  // copying has ended, and the last offset is being stored
	Stopped                   // nothing more will be copied; the partition can be written to
	Failed                    // an error stopped the copying
)

var stateNames = [...]string{"UNKNOWN", "PREPARING", "MIRRORING", "PAUSING", "PAUSED", "STOPPING", "STOPPED", "FAILED"}

// String returns the state's name, as KIP-1279 writes it.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int8(s))
	}
	return stateNames[s]
}

// ParseState returns the state of a name, as KIP-1279 writes it.
func ParseState(name string) (State, error) {
	if i := slices.Index(stateNames[:], name); i >= 0 {
		return State(i), nil
	}
	return StateUnknown, fmt.Errorf("mirror: no state is called %q; they are %v", name, stateNames)
}

// StateNumbers are the states by their numbers on the wire. Drafts of KIP-1279
// have numbered them differently, and have had more of them (a number that leads
// to [StateUnknown] is never safe to start on). With wrong numbers, what Safe says
// is wrong: they have to be the brokers'.
type StateNumbers map[int8]State

// DraftStateNumbers are the numbers of the draft that has the messages as this
// package has them.
func DraftStateNumbers() StateNumbers {
	return StateNumbers{0: Preparing, 1: Mirroring, 2: Pausing, 3: Paused, 4: Stopping, 5: Stopped, 6: Failed, 16: StateUnknown}
}

// Validate says what is wrong with the numbers: a state with two of them.
func (n StateNumbers) Validate() error {
	seen := make(map[State]int8, len(n))
	for _, number := range slices.Sorted(maps.Keys(n)) {
		state := n[number]
		if other, twice := seen[state]; twice && state != StateUnknown {
			return fmt.Errorf("the state %s has two numbers, %d and %d", state, other, number)
		}
		seen[state] = number
	}
	return nil
}

// number is the lowest number that a state has.
func (n StateNumbers) number(s State) (int8, bool) {
	for _, number := range slices.Sorted(maps.Keys(n)) {
		if n[number] == s {
			return number, true
		}
	}
	return 0, false
}

// Partition is what a mirror has of a partition.
type Partition struct {
	// LastMirroredOffset is the offset of the last mirrored record, −1 for none.
	LastMirroredOffset int64
	// State is where the partition is in being mirrored.
	State State
}

// States are what a mirror has of partitions, by topic and partition. The
// partitions of a topic are nil where only topics were asked for.
type States map[string]map[int32]Partition

// Lookup returns what the mirror has of a partition, and whether it has any.
func (s States) Lookup(topic string, partition int32) (Partition, bool) {
	p, ok := s[topic][partition]
	return p, ok
}

// Set sets a partition's state.
func (s States) Set(topic string, partition int32, p Partition) {
	if s[topic] == nil {
		s[topic] = make(map[int32]Partition)
	}
	s[topic][partition] = p
}
