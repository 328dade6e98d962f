package mirror

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Application is an application's topics, by their names in the clusters, which
// are the same in both.
type Application struct {
	// Inputs are the topics that it reads and that others write. A table's topic
	// that is its changelog too (topology.optimization) is only an input; topics of
	// global tables are left out, since they are always read whole.
	Inputs []string
	// Repartitions are its repartition topics.
	Repartitions []string
	// Changelogs are the changelog topics of its stores.
	Changelogs []string
	// Outputs are the topics that it writes to, without its internal ones. They
	// matter where one of them is an input too.
	Outputs []string

	// AllowRepeats allows a start at which state has what some input records did
	// to it already, and they are processed again: nothing is left out, but some
	// is counted twice, as after a crash of an application that processes at least
	// once. Without it, state and input must agree.
	AllowRepeats bool
}

// ApplicationOf returns the topics of a group that the broker has described
// (StreamsGroupDescribe). Outputs are known only if the description has the
// topology's description (KIP-1331); else they have to be added.
func ApplicationOf(group *kmsg.StreamsGroupDescribeResponseGroup) Application {
	var a Application
	if group.Topology != nil {
		for _, s := range group.Topology.Subtopologies {
			a.Inputs = append(a.Inputs, s.SourceTopics...)
			for _, t := range s.RepartitionSourceTopics {
				a.Repartitions = append(a.Repartitions, t.Topic)
			}
			for _, t := range s.StateChangelogTopics {
				a.Changelogs = append(a.Changelogs, t.Topic)
			}
		}
	}
	if group.TopologyDescription != nil {
		for _, s := range group.TopologyDescription.Subtopologies {
			for _, n := range s.Nodes {
				if n.SinkTopic != nil && !slices.Contains(a.Repartitions, *n.SinkTopic) {
					a.Outputs = append(a.Outputs, *n.SinkTopic)
				}
			}
		}
	}
	for _, topics := range []*[]string{&a.Inputs, &a.Repartitions, &a.Changelogs, &a.Outputs} {
		slices.Sort(*topics)
		*topics = slices.Compact(*topics)
	}
	return a
}

// Role is what a topic is to an application.
type Role int8

// The roles.
const (
	Input Role = iota
	Repartition
	Changelog
)

var roleNames = [...]string{"input", "repartition", "changelog"}

// String names the role.
func (r Role) String() string { return roleNames[r] }

// topics are the topics whose mirroring matters, by role, each once.
func (a *Application) topics() map[string]Role {
	topics := make(map[string]Role)
	for role, names := range [][]string{a.Inputs, a.Repartitions, a.Changelogs} {
		for _, name := range names {
			if _, named := topics[name]; !named {
				topics[name] = Role(role)
			}
		}
	}
	return topics
}

// stateful says whether there is something beside the inputs that has to agree
// with them.
func (a *Application) stateful() bool { return len(a.Repartitions)+len(a.Changelogs) > 0 }

// writes says whether the application writes to one of its inputs.
func (a *Application) writes(input string) bool { return slices.Contains(a.Outputs, input) }
