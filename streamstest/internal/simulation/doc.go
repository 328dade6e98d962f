// Package simulation runs whole streams groups (KIP-1071) in logical time: real membership.Members against the real
// coordinator.Coordinator, with a network that loses, delays and repeats, processes that stop, crash and come back, and
// a coordinator that moves. There is no goroutine, clock or socket in it; all that happens is an event in a queue, and
// every choice is made by one seed, so that a failing schedule can be replayed exactly.
//
// Begin with Run in simulation.go. From there:
//
//   - schedule.go: what a seed means: the group, its settings, which faults there are and how often
//   - event.go: the queue of events
//   - slot.go, host.go, reconcile.go, offsets.go: instances, their members, and the processing side of an application
//   - network.go: requests, answers and what becomes of them
//   - broker.go: the cluster's side, with its coordinator, topics and injected errors
//   - operator.go: what is done to members and coordinator while the faults last
//   - check.go, pace.go, settle.go: what must hold all the time, how often a member may talk, and what must be true in the end
//   - transcript.go, text.go: the last events of a failing schedule
//
// Terms are Kafka's: member, task, warm-up, heartbeat interval, session time-out. A slot is a place for one instance of
// the application, which outlives its restarts, as a state directory does. A host is one stream thread of an instance.
//
// It is used by tests only, and imports membership, the coordinator and kmsg's wire types.
package simulation
