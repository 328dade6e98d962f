package streams

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/odradek-go/odradek/internal/javahash"
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
		fmt.Fprintf(&b, "%sSub-topology: %d", indent, sub.id)
		indent = "  "
		if sub.global() {
			b.WriteString(" for global store (will not generate tasks)")
		}
		b.WriteString("\n")
		nodes := described(sub)
		slices.SortFunc(nodes, bySize)
		for _, n := range nodes {
			n.describe(&b)
		}
		if !sub.global() {
			b.WriteString("\n")
		}
	}
	return b.String(), nil
}

// describedNode is a node with its neighbours in Java's order.
type describedNode struct {
	*node
	size                     int // how much is below it, counting what several paths lead to several times
	predecessors, successors sizedSet
}

// bySize is Java's order of nodes: first those with the most below them, then by
// name.
func bySize(a, b *describedNode) int {
	return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name))
}

// described links the nodes of a subtopology as Java does: one by one in the order
// of a HashMap, into sets sorted by sizes that are not final yet.
func described(sub *subtopology) []*describedNode {
	of := make(map[*node]*describedNode)
	var nodes []*describedNode
	for _, n := range javahash.Order(sub.nodes, func(n *node) int32 { return javahash.String(n.name) }) {
		of[n] = &describedNode{node: n, size: 1}
		nodes = append(nodes, of[n])
	}
	for _, n := range nodes {
		for _, parent := range n.parents {
			p := of[parent]
			n.predecessors.add(p)
			p.successors.add(n)
			p.grow(n.size)
		}
	}
	return nodes
}

func (n *describedNode) grow(by int) {
	n.size += by
	for _, p := range n.predecessors.nodes() {
		p.grow(by)
	}
}

func (n *describedNode) describe(b *strings.Builder) {
	switch n.kind {
	case sourceKind:
		if n.pattern != nil {
			fmt.Fprintf(b, "    Source: %s (topics: %s)\n", n.name, n.pattern)
		} else {
			fmt.Fprintf(b, "    Source: %s (topics: [%s])\n", n.name, strings.Join(javahash.Strings(n.topics), ", "))
		}
	case processorKind:
		fmt.Fprintf(b, "    Processor: %s (stores: [%s])\n", n.name, strings.Join(javahash.Strings(n.stores), ", "))
	case sinkKind:
		if n.topic != "" {
			fmt.Fprintf(b, "    Sink: %s (topic: %s)\n", n.name, n.topic)
		} else {
			fmt.Fprintf(b, "    Sink: %s (extractor class: <TopicNameExtractor>)\n", n.name)
		}
	}
	if n.kind != sinkKind {
		fmt.Fprintf(b, "      --> %s\n", describedNames(n.successors.nodes()))
	}
	if n.kind != sourceKind {
		fmt.Fprintf(b, "      <-- %s\n", describedNames(n.predecessors.nodes()))
	}
}

func describedNames(nodes []*describedNode) string {
	if len(nodes) == 0 {
		return "none"
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.name
	}
	return strings.Join(names, ", ")
}
