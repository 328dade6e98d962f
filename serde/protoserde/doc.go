// Package protoserde has the serde of Protocol Buffers messages. It is a package
// of its own so that programs without them don't link the Protocol Buffers
// runtime.
//
// The bytes are those of the message alone: what Java's toByteArray returns and
// parseFrom takes. With a schema registry an id stands before them, and which message of
// its file it is: [NewFormat] is what srserde.New takes.
//
// The package imports nothing of the project but serde. Begin with [New].
package protoserde
