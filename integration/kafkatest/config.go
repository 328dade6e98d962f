package kafkatest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DefaultVersion is the Apache Kafka version that is started where none is
// asked for. It is the one that Java Kafka Streams is compared at.
const DefaultVersion = "4.4.0"

// Config says what cluster to start. The zero value is one node of
// [DefaultVersion].
//
// Unless BrokerConfig says otherwise, brokers are set for quick tests: streams
// groups heartbeat every 500 ms, report task offsets every second, time out
// after 10 s without a heartbeat (groups may ask for less, down to 1 s), and
// rebalance without an initial delay; internal topics have three partitions,
// and as many replicas as there are nodes, three at most. All else is Kafka's
// default, among it the group protocols that are on.
type Config struct {
	// Version of Apache Kafka, "" for DefaultVersion. 4.0 has no streams
	// groups; 4.1 has them as early access.
	Version string

	// Nodes that are each broker and controller, 0 for one.
	Nodes int

	// Dir is where the nodes' data and logs are, and stay after Close. Empty: in a
	// temporary folder, which Close removes.
	Dir string

	// BrokerConfig is added to every node's server.properties, and wins over
	// what this package sets. It must not change listeners or folders.
	BrokerConfig map[string]string

	// ExtraClasspath has folders and jars that nodes, tools and Java programs
	// find after Kafka's own, such as a broker plugin's.
	ExtraClasspath []string

	// Patches is a Java source file, or a folder of them, whose classes nodes
	// find before Kafka's own of the same names. Empty: none.
	Patches string

	// JVMOptions for nodes. Nil is a choice that starts quickly and stays
	// small, at the cost of throughput; give others, such as "-Xmx1g", to
	// measure.
	JVMOptions []string
}

// MissedSoon is a BrokerConfig with which the controller soon does without a broker that
// is killed: one that comes back waits for that.
var MissedSoon = map[string]string{"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}

// quickJVM skips the optimising compiler and concurrent collectors: short-lived
// JVMs start in less than half the time.
var quickJVM = []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

var versionPattern = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

func (c Config) withDefaults() (Config, error) {
	if c.Version == "" {
		c.Version = DefaultVersion
	}
	if !versionPattern.MatchString(c.Version) {
		return c, fmt.Errorf("kafkatest: version %q: want one like %q", c.Version, DefaultVersion)
	}
	if c.Nodes == 0 {
		c.Nodes = 1
	}
	if c.Nodes < 0 {
		return c, fmt.Errorf("kafkatest: %d nodes: want at least one", c.Nodes)
	}
	if c.JVMOptions == nil {
		c.JVMOptions = quickJVM
	}
	return c, nil
}

// properties returns the server.properties of node n.
func (c Config) properties(n *node, nodes []*node) string {
	voters := make([]string, len(nodes))
	for i, peer := range nodes {
		voters[i] = fmt.Sprintf("%d@%s", peer.id, peer.controller)
	}
	replicas := strconv.Itoa(min(len(nodes), 3))
	settings := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        strconv.Itoa(n.id),
		"controller.quorum.voters":       strings.Join(voters, ","),
		"listeners":                      "PLAINTEXT://" + n.addr + ",CONTROLLER://" + n.controller,
		"advertised.listeners":           "PLAINTEXT://" + n.addr,
		"controller.listener.names":      "CONTROLLER",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                       n.dataDir(),

		"default.replication.factor":                       replicas,
		"offsets.topic.replication.factor":                 replicas,
		"offsets.topic.num.partitions":                     "3",
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    "1",
		"transaction.state.log.num.partitions":             "3",
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            "1",
		"share.coordinator.state.topic.num.partitions":     "3",

		"group.initial.rebalance.delay.ms":          "0",
		"group.streams.initial.rebalance.delay.ms":  "0",
		"group.streams.heartbeat.interval.ms":       "500",
		"group.streams.min.heartbeat.interval.ms":   "100",
		"group.streams.session.timeout.ms":          "10000",
		"group.streams.min.session.timeout.ms":      "1000",
		"group.streams.task.offset.interval.ms":     "1000",
		"group.streams.min.task.offset.interval.ms": "100",

		// Records of tests are of any time, and must not be let go of.
		"log.retention.ms": "-1",

		// The cleaner would hold 128 MB from the start.
		"log.cleaner.dedupe.buffer.size": "2097152",
	}
	maps.Copy(settings, c.BrokerConfig)

	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&out, "%s=%s\n", key, escape.Replace(settings[key]))
	}
	return out.String()
}
