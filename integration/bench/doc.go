// Bench compares this library with Java Kafka Streams and with a plain franz-go
// loop that does the same I/O, side by side in one run on one real broker.
//
//	go run ./integration/bench
//
// starts Apache Kafka, loads a topic, and has each contestant drain it in turn,
// several times. It prints records per second from the first output to the last,
// seconds of CPU per million records and peak memory, each as a median, and the
// ratios to Java. It needs Java, Maven and Linux, and takes minutes; see -help.
//
// Begin with main.go; contestants.go has what is compared.
package main
