// Package streamstest helps to test programs that use Odradek, without a Kafka cluster.
//
// Driver runs a topology in a test without any broker, record by record: it is the quickest way to test what a topology
// computes, as Java's TopologyTestDriver. Begin with NewDriver.
//
// Broker is an embedded Kafka: the in-memory broker of franz-go (kfake) with a streams-group coordinator (KIP-1071,
// KIP-1331) that behaves as that of Apache Kafka 4.4. It creates internal topics, assigns active, standby and warm-up
// tasks, reports every status, fences, times out sessions, publishes endpoints, keeps topology descriptions, and checks
// who may commit offsets for whom. It keeps the states of mirrors (WithMirrorStates), so that a failover can be run in
// one process. It works in simulated time too (testing/synctest, see WithNetwork). Begin with
// NewBroker.
//
// # What Broker does not do
//
// The coordinator answers requests before kfake looks at them. Therefore:
//
//   - kfake's authentication and ACLs do not apply to StreamsGroupHeartbeat, StreamsGroupDescribe,
//     StreamsGroupTopologyDescriptionUpdate and the requests of mirrors;
//   - kfake's own faults do not reach these requests: use Broker.Fault. They do reach all others, such as OffsetCommit;
//   - a control function of kfake's Cluster.ControlKey runs before the coordinator, one of Cluster.Control after it;
//   - streams groups are not among what kfake's DataDir keeps;
//   - StreamsGroupDescribe has no client ids of members that are connected with TLS, or over a kfake.ListenFn.
//
// Time-outs take effect when a request, or Broker.Group, touches the group.
//
// It differs from Kafka 4.4 on purpose in three things. It hands out warm-up tasks if it is told to (WithWarmups); Kafka
// 4.4 only has the settings for it. It takes patterns of source topics if it is told to (WithSourceTopicRegex). And while source topics are missing, a member with an endpoint is told so, when
// Kafka 4.4 answers it UNKNOWN_SERVER_ERROR.
//
// The package may import kfake, kgo, kmsg and what is public in Odradek.
package streamstest
