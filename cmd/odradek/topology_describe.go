package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var topologyDescribe = &command{
	name:  "topology describe",
	args:  "GROUP",
	short: "show the nodes of a group's topology",
	long: `Shows the description of a group's topology that its members have given to the
broker (KIP-1331), in the format of Kafka Streams' Topology.describe(). It is there on
Kafka 4.4 or later with a topology description plugin
(group.streams.topology.description.plugin.class). Without it, the subtopologies are
shown with their topics alone, and that is said on standard error.`,
	new: func(*flag.FlagSet) func(context.Context, *env, string) error {
		return func(ctx context.Context, e *env, group string) error {
			ctx, client, done, err := e.connect(ctx)
			if err != nil {
				return err
			}
			defer done()
			g, err := describeGroup(ctx, client, group)
			if err != nil {
				return err
			}
			if g.TopologyDescription != nil {
				printTopology(e.stdout, g.TopologyDescription)
				return nil
			}
			if g.Topology == nil {
				return fmt.Errorf("group %q has no topology yet", group)
			}
			e.note("%s; these are the topology's topics:", whyNoDescription(g.TopologyDescriptionStatus))
			printTopics(e.stdout, g.Topology)
			return nil
		}
	},
}

func whyNoDescription(status int8) string {
	switch status {
	case 1:
		return "the broker has no description of the topology, because it has no plugin for it or no member has given one yet"
	case 2:
		return "the broker failed to read the description of the topology; its log says why"
	}
	return "the broker doesn't know of topology descriptions"
}

// Kinds of nodes.
const (
	sourceNode    = 1
	processorNode = 2
	sinkNode      = 3
)

func printTopology(w io.Writer, d *kmsg.StreamsGroupDescribeResponseGroupTopologyDescription) {
	fmt.Fprintln(w, "Topologies:")
	indent := "   " // the first one's, as in Java
	for _, s := range d.Subtopologies {
		fmt.Fprintf(w, "%sSub-topology: %s\n", indent, s.SubtopologyID)
		indent = "  "
		printNodes(w, s.Nodes)
		fmt.Fprintln(w)
	}
	for _, g := range d.GlobalStores {
		fmt.Fprintf(w, "%sGlobal store (will not generate tasks)\n", indent)
		indent = "  "
		printNodes(w, []kmsg.TopologyDescriptionNode{g.Source, g.Processor})
		fmt.Fprintln(w)
	}
}

// printNodes prints the nodes in Java's order: first those with the most below them,
// then by name.
func printNodes(w io.Writer, nodes []kmsg.TopologyDescriptionNode) {
	sizes := sizesOf(nodes)
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b kmsg.TopologyDescriptionNode) int {
		return cmp.Or(cmp.Compare(sizes[b.Name], sizes[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	predecessors := make(map[string][]string)
	for _, n := range nodes {
		for _, to := range n.Successors {
			predecessors[to] = append(predecessors[to], n.Name)
		}
	}
	for _, n := range nodes {
		switch n.NodeType {
		case sourceNode:
			fmt.Fprintf(w, "    Source: %s (topics: [%s])\n", n.Name, strings.Join(n.SourceTopics, ", "))
		case processorNode:
			fmt.Fprintf(w, "    Processor: %s (stores: [%s])\n", n.Name, strings.Join(n.Stores, ", "))
		case sinkNode:
			topic := "topic: " + text(n.SinkTopic)
			if n.SinkTopic == nil {
				topic = "extractor class: <TopicNameExtractor>"
			}
			fmt.Fprintf(w, "    Sink: %s (%s)\n", n.Name, topic)
		default:
			fmt.Fprintf(w, "    Node of type %d: %s\n", n.NodeType, n.Name)
		}
		if n.NodeType != sinkNode {
			fmt.Fprintf(w, "      --> %s\n", names(n.Successors))
		}
		if n.NodeType != sourceNode {
			fmt.Fprintf(w, "      <-- %s\n", names(predecessors[n.Name]))
		}
	}
}

// sizesOf says how many nodes each node has below it, itself included, and what
// several paths lead to several times.
func sizesOf(nodes []kmsg.TopologyDescriptionNode) map[string]int {
	const most = 1 << 30 // beyond which it doesn't matter
	successors := make(map[string][]string)
	for _, n := range nodes {
		successors[n.Name] = n.Successors
	}
	sizes := make(map[string]int)
	var size func(name string) int
	size = func(name string) int {
		if known, ok := sizes[name]; ok {
			return known
		}
		sizes[name] = 0 // ends a circle, which a topology doesn't have
		sum := 1
		for _, to := range successors[name] {
			sum = min(sum+size(to), most)
		}
		sizes[name] = sum
		return sum
	}
	for _, n := range nodes {
		size(n.Name)
	}
	return sizes
}

func names(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
