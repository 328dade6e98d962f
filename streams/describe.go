package streams

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Describe returns the topology as text, in the format of Java's
// Topology.describe(). Topics are named without the application id.
func (t *Topology) Describe() (string, error) {
	if err := t.check(); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("Topologies:\n")
	indent := "   " // the first one's, as in Java
	for _, sub := range t.subtopologies() {
		fmt.Fprintf(&b, "%sSub-topology: %d\n", indent, sub.id)
		indent = "  "
		for _, n := range bySize(sub.nodes) {
			n.describe(&b)
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

func (n *node) describe(b *strings.Builder) {
	switch n.kind {
	case sourceKind:
		fmt.Fprintf(b, "    Source: %s (topics: [%s])\n", n.name, strings.Join(n.topics, ", "))
	case processorKind:
		fmt.Fprintf(b, "    Processor: %s (stores: [%s])\n", n.name, strings.Join(n.stores, ", "))
	case sinkKind:
		fmt.Fprintf(b, "    Sink: %s (topic: %s)\n", n.name, n.topic)
	}
	if n.kind != sinkKind {
		fmt.Fprintf(b, "      --> %s\n", names(n.children))
	}
	if n.kind != sourceKind {
		fmt.Fprintf(b, "      <-- %s\n", names(n.parents))
	}
}

func names(nodes []*node) string {
	if len(nodes) == 0 {
		return "none"
	}
	var s []string
	for _, n := range bySize(nodes) {
		s = append(s, n.name)
	}
	return strings.Join(s, ", ")
}

// bySize sorts nodes as Java prints them: first those with the most below them,
// then by name.
func bySize(nodes []*node) []*node {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b *node) int {
		return cmp.Or(-cmp.Compare(a.size(), b.size()), cmp.Compare(a.name, b.name))
	})
	return nodes
}

func (n *node) size() int {
	size := 1
	for _, child := range n.children {
		size += child.size()
	}
	return size
}
