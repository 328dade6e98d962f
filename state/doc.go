// Package state holds the state stores of tasks: what a processor remembers
// between records, and what a changelog topic lets another member rebuild.
//
// A store has two layers. An engine keeps ordered bytes ([KeyValue]; [NewMemory]
// is the one in memory). A typed store such as [TimestampedKeyValue] sits on it,
// converts keys and values with serdes, and writes every change to the store's
// changelog in Java Kafka Streams' encoding. Tasks see any of them as a [Store]:
// open, restore, flush, close.
//
// A store belongs to one task and is used by one goroutine at a time.
//
// The package imports serde alone and knows no Kafka client. Begin with
// [Store] and [TimestampedKeyValue].
package state
