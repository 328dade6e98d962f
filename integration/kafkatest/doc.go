// Package kafkatest starts real Apache Kafka for tests: brokers, Kafka's own
// command line tools, and Java programs such as Java Kafka Streams peers.
//
// Kafka comes as Maven packages, resolved once per machine and version into a
// cache folder, so Java 17 or newer and Maven on PATH are all that is needed;
// there is no distribution to download and no container engine to run.
//
// Begin with [Shared] for a broker that all tests of a test binary use, and
// hand the binary's TestMain to [Main], which ends it:
//
//	func TestMain(m *testing.M) { kafkatest.Main(m) }
//
//	func TestJoin(t *testing.T) {
//		broker := kafkatest.Shared(t)
//		client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...))
//		…
//	}
//
// [New] starts a cluster of its own for a test that stops, kills or configures
// brokers; [Start] does the same outside of tests. [Kafka.Tool] runs one of
// Kafka's tools, and [Kafka.Java] compiles and starts a Java program.
// A [Child] is the test program itself once more, as an application to kill.
//
// Two environment variables matter. [EnvRequire] says whether tests may skip
// for want of Kafka, and [EnvCache] moves the cache folder.
//
// On Linux no child outlives the test process, however that ends. Elsewhere a
// test process that is killed leaves its broker behind.
//
// The package may import Kafka client libraries, and nothing of this module.
package kafkatest
