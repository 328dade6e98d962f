// Package taskmgr makes assigned tasks real: it creates them, restores their
// stores from changelogs, processes records, commits, hands over and closes.
//
// A [Thread] is one stream thread and thereby one member of the streams group
// (KIP-1071). It owns three goroutines: the membership loop, which heartbeats
// and hands over assignments; the updater, which restores stores on a client of
// its own; and the thread itself, which is the only one that processes records,
// commits, and creates and closes tasks. The first two hand the thread their
// news through its mailbox, and the thread alone changes tasks.
//
// What the tasks compute is not known here. A [Topology] says which topics a
// subtopology reads, which stores it has, and how to make the [Graph] that takes
// the records.
//
// With a transactional id, all that a thread does between two commits is one
// transaction (KIP-447): the records that it sends, the changes of its stores in their
// changelogs, and the offsets of its inputs. It begins with the first record, and
// whatever is to be committed of one task is committed of all. A commit without records
// is a plain one of offsets.
//
// What can't be committed is undone. Nothing is kept for that while records are
// processed: a persistent store is always found as it was at a checkpoint, and is
// checkpointed only after its transaction is committed. So to undo is to close the
// tasks and to open them again, with what the changelogs have beyond the checkpoints,
// at most about a write buffer of each store; a store in memory is restored whole. An
// undo log or a buffer in front of the stores would make that faster, which happens when
// brokers fail or tasks are lost, and slow down each read or write, of which there are
// millions in between. Java wipes its stores and restores them whole.
//
// Whether the thread then goes on with the same tasks depends on who has refused the
// commit. Where the group or the broker has fenced the member or its producer, all tasks
// are lost and the member rejoins, as in Java. Otherwise the tasks begin again from the
// committed offsets. An answer that is missing needs no guess: a new producer with the
// same id begins when the last transaction has ended in one way or the other, and
// offsets and changelogs say in which.
//
// The package imports membership and state. Begin with [Thread.Run].
package taskmgr
