// Package coordinator is the streams-group coordinator of Apache Kafka 4.4 (KIP-1071, KIP-1331) as a pure state
// machine: it takes the time, a decoded request and facts about the cluster, and returns the response. No clock,
// goroutine or socket is in it, so every interleaving can be tested in simulated time and requests recorded from Java
// Kafka Streams can be replayed against it.
//
// Begin with Coordinator in coordinator.go and the pipeline of one heartbeat in heartbeat.go. From there:
//
//   - validate.go: what makes a request invalid
//   - topology.go, topics.go: the group's topology and the topics that it needs
//   - assignor.go, refine.go: who should run which task (target assignment), and warm-up tasks
//   - reconcile.go: how a member gets from what it runs to its target
//   - group.go: epochs, state, time-outs
//   - endpoints.go, describe.go, description.go, offsets.go, config.go: one concern each
//
// Terms are Kafka's: group epoch, assignment epoch, member epoch, target assignment, subtopology, task, warm-up.
//
// It imports only the wire types (kmsg) and error codes (kerr) of franz-go.
package coordinator
