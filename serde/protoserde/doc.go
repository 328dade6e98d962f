// Package protoserde has the serde of Protocol Buffers messages. It is a package
// of its own so that programs without them don't link the Protocol Buffers
// runtime.
//
// The bytes are those of the message alone: what Java's toByteArray returns and
// parseFrom takes, without the framing of a schema registry.
//
// The package imports nothing of the project but serde. Begin with [New].
package protoserde
