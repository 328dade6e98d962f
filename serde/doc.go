// Package serde turns typed keys and values into the bytes that travel through
// Kafka and back, with the encodings of Java Kafka's standard serdes, so that a
// Go and a Java program can read each other's topics and changelogs.
//
// A [Serde] appends its encoding to a buffer that the caller owns: the record
// path serializes into large shared buffers and allocates nothing per record.
// [New] makes one from a pair of ordinary marshal functions, [For] finds the
// standard one of a Go type.
//
// The package imports nothing of the project. Begin with [Serde].
package serde
