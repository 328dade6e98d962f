// Package serde turns typed keys and values into the bytes that travel through
// Kafka and back, with the encodings of Java Kafka's standard serdes, so that a
// Go and a Java program can read each other's topics and changelogs.
//
// A [Serde] appends its encoding to a buffer that the caller owns: the record
// path serializes into large shared buffers and allocates nothing per record.
// [New] makes one from a pair of ordinary marshal functions, [For] finds the
// standard one of a Go type. [List], [TimeWindowed] and [SessionWindowed] build
// on the serde of what they hold, and [Pointer] lets a type be null. [JSON]
// needs nothing but a Go type; Protocol Buffers are in the package protoserde,
// Avro is in avroserde and schema registries in srserde, so that who doesn't use
// them doesn't link them.
//
// The package imports nothing of the project and nothing but the standard
// library. Begin with [Serde].
package serde
