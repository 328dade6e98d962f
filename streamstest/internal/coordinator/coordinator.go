package coordinator

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Coordinator holds the streams groups of a cluster. It is not safe for concurrent use.
//
// Time-outs take effect when a call touches the group: every method that takes the time first does to the group what
// has fallen due since.
type Coordinator struct {
	config    Config
	overrides map[string]map[string]string // group configs, by group
	groups    map[string]*group
	log       *slog.Logger
}

// New returns a coordinator without groups. The config must be valid.
func New(config Config, log *slog.Logger) *Coordinator {
	return &Coordinator{
		config:    config,
		overrides: make(map[string]map[string]string),
		groups:    make(map[string]*group),
		log:       log,
	}
}

// Client is what a broker knows about the sender of a request.
type Client struct {
	ID   string
	Host string
}

// OtherGroup says what other kind of group, if any, uses a group id.
type OtherGroup int

// Kinds of other groups.
const (
	NoOtherGroup    OtherGroup = iota
	EmptyClassic               // a classic group without members; a streams group may take over its id and offsets
	OtherGroupInUse            // any other
)

// Cluster is what a heartbeat needs to know about the cluster.
type Cluster struct {
	Topics     Topics
	TopicNames []string                      // of all topics there are, sorted; needed where there are patterns
	OtherGroup func(group string) OtherGroup // asked only if there is no streams group of that id
}

// Exists reports whether there is a streams group of that id.
func (c *Coordinator) Exists(group string) bool { return c.groups[group] != nil }

// Groups returns the ids of all streams groups, sorted.
func (c *Coordinator) Groups() []string { return slices.Sorted(maps.Keys(c.groups)) }

// State returns the state of a group, StateDead if there is none.
func (c *Coordinator) State(now time.Time, group string) string {
	g := c.at(now, group)
	if g == nil {
		return StateDead
	}
	return g.state()
}

// Reads reports whether the group has members that read the topic.
func (c *Coordinator) Reads(now time.Time, group, topic string) bool {
	g := c.at(now, group)
	if g == nil || len(g.members) == 0 || g.topology == nil {
		return false
	}
	_, reads := g.resolved.reader[topic]
	return reads
}

// Delete deletes an empty group. Committed offsets are not the coordinator's.
func (c *Coordinator) Delete(now time.Time, group string) *Error {
	g := c.at(now, group)
	switch {
	case g == nil:
		return errorf(kerr.GroupIDNotFound, "Group %s not found.", group)
	case len(g.members) > 0:
		return errorf(kerr.NonEmptyGroup, "The group is not empty.")
	}
	delete(c.groups, group)
	return nil
}

// Moved tells the coordinator that another broker has become the coordinator of the group. What a real one keeps in
// memory only is lost, and members get a full session to be heard of again.
func (c *Coordinator) Moved(now time.Time, group string) {
	g := c.at(now, group)
	if g == nil {
		return
	}
	g.forgetSoftState()
	g.delayedUntil = time.Time{}
	g.nothingBefore = time.Time{}
	config := c.configOf(group)
	for _, m := range g.members {
		moved := *m
		moved.sessionDeadline = now.Add(config.SessionTimeout)
		if moved.state == unrevokedTasks {
			moved.rebalanceDeadline = now.Add(moved.rebalanceTimeout)
		}
		g.members[m.id] = &moved
	}
}

// at returns the group as it is now, or nil.
func (c *Coordinator) at(now time.Time, group string) *group {
	g := c.groups[group]
	if g != nil {
		c.advance(g, now)
	}
	return g
}

// RequiredTopics are the topics that Heartbeat will ask about, sorted, and besides them those that match patterns, if
// there are any.
func (c *Coordinator) RequiredTopics(req *kmsg.StreamsGroupHeartbeatRequest) (topics []string, patterns bool) {
	var t *topology
	switch g := c.groups[req.Group]; {
	case g != nil:
		t = g.topology
	case req.Topology != nil:
		t = newTopology(req.Topology)
	default:
		return nil, false
	}
	return t.required, t.hasPatterns()
}
