// Package membership is one member of a Kafka streams group (KIP-1071): it
// joins, heartbeats, takes assignments and acknowledges them, reports task
// offsets, survives coordinators that move, and leaves.
//
// [Member] is a pure state machine: it is told what has happened and what time
// it is, and says what to send and to do, in which order ([Ready]). It has no
// goroutine, clock or socket, so that every interleaving can be tested, and the
// traffic of real Java members can be replayed against it.
//
// [Loop] drives a Member over the wire with a kgo client. It is what the
// package above uses: [NewLoop], [Loop.Run], [Callbacks], [Loop.Leave].
//
// The package may import kgo, kmsg and kerr, and no other package of this
// module. It knows tasks by name only ([TaskID]): what a task is, and how it is
// revoked or restored, is the business of the package above.
//
// Where to begin: state.go has the states and their transitions, member.go what
// a member remembers, ready.go when it says what, request.go what a request
// carries, answer.go what an answer leads to, exit.go how a member gets out of
// the group and back, inquiry.go how a lost answer is made up for, offsets.go
// when offsets are told, errors.go what each error code leads to. PROTOCOL.md,
// beside this file, lists every field, status and error code with what is done
// about it, and where and why Java is not followed.
package membership
