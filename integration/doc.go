// Package integration holds the tests that need a whole cluster: the embedded
// broker of streamstest, and real Apache Kafka, which kafkatest starts.
//
// A scenario (scenario_test.go lists them) is one story about applications on a
// cluster. TestEmbedded and TestKafka run the same ones, so that the embedded
// broker never drifts from the real one. Tests that only make sense on real
// Kafka, such as a group with a Java member, have a file of their own.
//
// The package may import everything. Begin with scenario_test.go.
package integration
