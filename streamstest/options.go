package streamstest

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/odradek-go/odradek/mirror"
	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// Option configures a Broker.
type Option func(*config)

type config struct {
	nodes   int
	kfake   []kfake.Opt
	network *kfake.VirtualNetwork
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	log     *slog.Logger

	groups    coordinator.Config
	version   int16 // highest version of the streams-group requests; below 0: none
	noStreams bool
	mirrors   *mirrorKeys
}

func defaults() config {
	return config{
		nodes:   1,
		dial:    new(net.Dialer).DialContext,
		log:     slog.New(slog.DiscardHandler),
		version: 1,
		mirrors: new(mirrorKeys),
		groups: coordinator.Config{
			SessionTimeout:        10 * time.Second,
			HeartbeatInterval:     100 * time.Millisecond,
			TaskOffsetInterval:    500 * time.Millisecond,
			AcceptableRecoveryLag: 10_000,
			MaxSize:               1 << 30,
		},
	}
}

// WithKafkaDefaults gives the coordinator the settings that a Kafka 4.4 broker has by default: heartbeats every 5 s,
// sessions of 45 s, a rebalance delay of 3 s for the first member, 1 s between assignments, task offsets every minute.
// Options after it change them again.
func WithKafkaDefaults() Option {
	return func(c *config) {
		c.groups.SessionTimeout = 45 * time.Second
		c.groups.HeartbeatInterval = 5 * time.Second
		c.groups.InitialRebalanceDelay = 3 * time.Second
		c.groups.AssignmentInterval = time.Second
		c.groups.TaskOffsetInterval = time.Minute
	}
}

// WithKfake passes options to the kfake cluster: topics, versions, TLS, data directory, and so on. A cluster that
// requires SASL needs users of its own (kfake.Superuser, kfake.User); kfake's default one is not there.
func WithKfake(opts ...kfake.Opt) Option {
	return func(c *config) { c.kfake = append(c.kfake, opts...) }
}

// WithNodes sets the number of nodes, 1 by default.
func WithNodes(n int) Option { return func(c *config) { c.nodes = n } }

// WithNetwork makes the broker listen on a network in memory. Clients reach it with kgo.Dialer(network.DialContext).
// In testing/synctest, where there can be no real sockets, make the broker and its clients inside the bubble.
func WithNetwork(network *kfake.VirtualNetwork) Option {
	return func(c *config) { c.network, c.dial = network, network.DialContext }
}

// WithDialer says how to reach the nodes if kfake.ListenFn makes them listen on something else than TCP. WithNetwork
// brings its own.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *config) { c.dial = dial }
}

// WithLogger logs what the coordinator decides, at level info, and what kfake says, at level debug. By default nothing
// is logged.
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// WithHeartbeatInterval sets how often members send heartbeats, every 100 ms by default. Java members give up on a
// missing source topic after two intervals.
func WithHeartbeatInterval(d time.Duration) Option {
	return func(c *config) { c.groups.HeartbeatInterval = d }
}

// WithSessionTimeout sets after how long without a heartbeat a member is removed, 10 s by default.
func WithSessionTimeout(d time.Duration) Option {
	return func(c *config) { c.groups.SessionTimeout = d }
}

// WithInitialRebalanceDelay sets how long the first member of an empty group waits for others before tasks are
// assigned. By default it does not wait, because tests would.
func WithInitialRebalanceDelay(d time.Duration) Option {
	return func(c *config) { c.groups.InitialRebalanceDelay = d }
}

// WithAssignmentInterval sets the least time between two assignments of a group. By default there is none.
func WithAssignmentInterval(d time.Duration) Option {
	return func(c *config) { c.groups.AssignmentInterval = d }
}

// WithTaskOffsetInterval sets how often members report their tasks' changelog offsets, every 500 ms by default.
func WithTaskOffsetInterval(d time.Duration) Option {
	return func(c *config) { c.groups.TaskOffsetInterval = d }
}

// WithStandbyReplicas sets how many standby tasks each stateful task has, 0 to 2; 0 by default.
func WithStandbyReplicas(n int) Option { return func(c *config) { c.groups.NumStandbyReplicas = n } }

// WithWarmups lets a stateful task move only when its new owner is warm: the owner first gets a warm-up task, up to n
// in a group at a time, 20 at most. The task moves when the warm-up task's lag is at most acceptableRecoveryLag
// records. By default n is 0, and tasks move at once, as they do with Kafka 4.4 whatever its settings say.
func WithWarmups(n int, acceptableRecoveryLag int64) Option {
	return func(c *config) {
		c.groups.NumWarmupReplicas, c.groups.AcceptableRecoveryLag = n, acceptableRecoveryLag
	}
}

// WithRackAwareTags names client tags that every member must have. A member without them is told so.
func WithRackAwareTags(tags ...string) Option {
	return func(c *config) { c.groups.RackAwareTags = tags }
}

// WithMaxGroupSize limits the members of a group. By default there is no limit that a test would meet.
func WithMaxGroupSize(n int) Option { return func(c *config) { c.groups.MaxSize = n } }

// WithTopologyDescriptions makes the broker ask members for a description of their topology, as a broker with a
// topology description plugin does (KIP-1331). By default it does not ask, and refuses descriptions.
func WithTopologyDescriptions() Option {
	return func(c *config) { c.groups.TopologyDescriptions = true }
}

// WithSourceTopicRegex makes the broker take patterns of source topics, as later ones than Kafka 4.4 may do: Kafka 4.4
// refuses them, and so does the broker by default. A pattern has to match the whole of a topic's name.
func WithSourceTopicRegex() Option {
	return func(c *config) { c.groups.SourceTopicRegex = true }
}

// WithStreamsGroupVersion limits the version of the streams-group requests: 1, the default, is Kafka 4.4; 0 is Kafka
// 4.2 and 4.3, which know nothing of task offsets and descriptions.
func WithStreamsGroupVersion(highest int16) Option { return func(c *config) { c.version = highest } }

// WithMirrorStates makes the cluster keep the states of mirrors, and answer ReadMirrorStates and WriteMirrorStates under
// these API keys (KIP-1279, for which no keys are assigned yet). It mirrors nothing by itself. Control functions of kfake
// see the requests as DescribeCluster, and may answer with package mirror's responses. It doesn't go with TLS,
// kfake.ListenFn and WithoutStreamsGroups.
func WithMirrorStates(keys mirror.Keys) Option {
	return func(c *config) { c.mirrors = &mirrorKeys{Keys: keys, on: true} }
}

// WithoutStreamsGroups makes the broker one from before streams groups: plain kfake.
func WithoutStreamsGroups() Option { return func(c *config) { c.noStreams = true } }
