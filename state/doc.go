// Package state holds the state stores of tasks: what a processor remembers
// between records, and what a changelog topic lets another member rebuild.
//
// The kinds of stores are [KeyValue], [TimestampedKeyValue], [Versioned],
// [Window], [Session], [ChangeBuffer] and [RecordBuffer]. Each writes its changes to its
// changelog in Java Kafka Streams' encoding and is restored from it. Tasks see any of
// them as a [Store]: open, restore, flush, checkpoint, close.
//
// Below a store is an [Engine], which keeps ordered bytes: [Memory], or
// [Persistent], in files, which after a crash is found at a checkpoint of the
// changelog and never in between. How keys are laid out in an engine is our own;
// a store's files can't be read by Java. Between store and engine there may be a
// part of the thread's [Cache], which holds back the latest changes.
//
//	typed store ── cache ─┬─ engine
//	                      └─ changelog
//
// A store belongs to one task and is used by one goroutine at a time, without
// locks. Others read it through a [View], while the task's goroutine yields its
// [Gate]; a [Registry] has what can be read so.
//
// The package imports serde and internal packages alone and knows no Kafka client. Begin with [Store],
// [TimestampedKeyValue] and, for what they share, backing.go.
package state
