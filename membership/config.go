package membership

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Defaults of [Config].
const (
	DefaultRebalanceTimeout = 5 * time.Minute
	DefaultRequestTimeout   = 30 * time.Second
	DefaultStartTimeout     = 30 * time.Second
)

// Config is what a member is. It is read once and not changed afterwards.
type Config struct {
	// Group is the group id, which is the application.id. Required.
	Group string
	// MemberID identifies this member for its whole life, also across a fence
	// and a rejoin. Empty: a random UUID is made, in Kafka's base64url form.
	MemberID string
	// InstanceID makes the member static (group.instance.id; Kafka 4.4).
	// Empty: dynamic. Kafka Streams appends the stream thread's number to the
	// configured id; the caller does that.
	InstanceID string
	// RackID is the member's rack (client.rack). Empty: none.
	RackID string
	// ProcessID is shared by the members of one application instance, a UUID
	// in Kafka Streams. It must outlive a restart (state directory), or tasks
	// move that needn't. Required.
	ProcessID string
	// Endpoint is published to the group for interactive queries
	// (application.server). Nil: none.
	Endpoint *Endpoint
	// ClientTags are used for rack-aware standby assignment. Nil and empty
	// mean none.
	ClientTags map[string]string
	// RebalanceTimeout is how long the member may take to give up tasks and,
	// at the same time, how long its tasks may make no progress
	// (max.poll.interval.ms). 0: [DefaultRebalanceTimeout]. Milliseconds count.
	RebalanceTimeout time.Duration
	// Topology is sent with every join. Required: at least one subtopology.
	Topology *kmsg.StreamsGroupHeartbeatRequestTopology
	// Description is pushed when the broker asks for it (Kafka 4.4,
	// request 93). Nil: never pushed.
	Description *kmsg.TopologyDescription

	// RequestTimeout bounds one request to the coordinator
	// (request.timeout.ms). 0: [DefaultRequestTimeout].
	RequestTimeout time.Duration
	// StartTimeout bounds how long brokers may be unreachable before the first
	// join is answered; then the member fails with an [UnreachableError].
	// Once it has joined, it retries for ever. 0: [DefaultStartTimeout],
	// negative: no bound.
	StartTimeout time.Duration
	// InstanceIDWait is for how long a static member that finds its instance
	// id taken (UNRELEASED_INSTANCE_ID) keeps trying to join. Java fails at
	// once, and so does 0. Where a crashed instance is replaced at once, as by
	// a Kubernetes StatefulSet, a little more than the group's session
	// time-out lets the replacement wait until the former self has expired.
	InstanceIDWait time.Duration

	// Logger takes what the [Loop] has to say. Nil: slog.Default().
	Logger *slog.Logger
	// Random makes member ids and the jitter of retries. Nil: crypto/rand.
	Random io.Reader
}

// complete validates c and fills in defaults.
func (c Config) complete() (Config, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Group == "" {
		bad("Group is empty")
	}
	if c.ProcessID == "" {
		bad("ProcessID is empty")
	}
	if c.Topology == nil || len(c.Topology.Subtopologies) == 0 {
		bad("Topology has no subtopology")
	}
	if c.Endpoint != nil && (c.Endpoint.Host == "" || c.Endpoint.Port == 0) {
		bad("Endpoint %q needs a host and a port", c.Endpoint)
	}
	if c.RebalanceTimeout == 0 {
		c.RebalanceTimeout = DefaultRebalanceTimeout
	}
	if ms := c.RebalanceTimeout.Milliseconds(); ms < 1 || ms > math.MaxInt32 {
		bad("RebalanceTimeout %v is not between 1 ms and %d ms", c.RebalanceTimeout, math.MaxInt32)
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = DefaultRequestTimeout
	} else if c.RequestTimeout < 0 {
		bad("RequestTimeout %v is negative", c.RequestTimeout)
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = DefaultStartTimeout
	}
	if c.InstanceIDWait < 0 {
		bad("InstanceIDWait %v is negative", c.InstanceIDWait)
	} else if c.InstanceIDWait > 0 && c.InstanceID == "" {
		bad("InstanceIDWait is set, but InstanceID is empty")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if len(errs) > 0 {
		return c, fmt.Errorf("membership: invalid Config: %w", errors.Join(errs...))
	}
	c.ClientTags = maps.Clone(c.ClientTags)
	if c.Endpoint != nil {
		e := *c.Endpoint
		c.Endpoint = &e
	}
	if c.MemberID == "" {
		id, err := newMemberID(c.Random)
		if err != nil {
			return c, fmt.Errorf("membership: making a member id: %w", err)
		}
		c.MemberID = id
	}
	return c, nil
}

// newMemberID makes what Java's Uuid.randomUuid().toString() makes: a version 4
// UUID in base64url without padding, not beginning with a dash (which command
// lines would take for an option).
func newMemberID(random io.Reader) (string, error) {
	for {
		var u [16]byte
		if _, err := io.ReadFull(random, u[:]); err != nil {
			return "", err
		}
		u[6] = u[6]&0x0f | 0x40
		u[8] = u[8]&0x3f | 0x80
		if id := base64.RawURLEncoding.EncodeToString(u[:]); !strings.HasPrefix(id, "-") {
			return id, nil
		}
	}
}

// tags returns the client tags for the wire, sorted, never nil.
func (c *Config) tags() []kmsg.StreamsGroupHeartbeatRequestClientTag {
	out := []kmsg.StreamsGroupHeartbeatRequestClientTag{}
	for _, k := range slices.Sorted(maps.Keys(c.ClientTags)) {
		t := kmsg.NewStreamsGroupHeartbeatRequestClientTag()
		t.Key, t.Value = k, c.ClientTags[k]
		out = append(out, t)
	}
	return out
}
