// Queries shows that interactive queries get the right answer, whatever happens to
// those who have it.
//
//	go run ./integration/queries
//
// starts Apache Kafka, and processes of an application with a table, a count by key and
// a count by key and window, on disk, with a standby of each task. Writers that know what
// must come of it write without a pause, and others ask without a pause: one process by
// an [iq.Client], any of them by another one, and one as curl does; for a value, for
// ranges and for windows; accepting the active instance's answer alone, copies that are
// so many records or so long behind, or asking for what they have seen written.
// Meanwhile processes are stopped, killed, paused beyond their session and woken, added
// and taken away.
//
// Each answer must be one that the query accepts, or an error that says what was in the
// way, in time: never another key's value, never one of the future, never one that is
// staler than accepted; and of a range every key once, in its order. With exactly once,
// which is the default, what is in the changelogs says how stale an answer may be, and
// counts are exact. With -at-least-once both go back and forth when a process is killed,
// and only what a query has asked for by position is a bound.
//
// It prints the faults that were made and what came of the queries; see -help. Begin
// with check in check.go.
package main
