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
// The package imports membership and state. Begin with [Thread.Run].
package taskmgr
