package streams

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// plan is what a Builder has been told, before it is written into a topology:
// operators are planned first, so that a plan can be looked at, and improved, as
// a whole.
type plan struct {
	index     int             // of the next generated name
	priority  int             // of the next node
	nodes     []*planNode     // in the order of the calls
	generated map[string]bool // the generated names
	errs      []error

	// copartitioned are groups of sources, by name, whose topics must have equal
	// numbers of partitions.
	copartitioned [][]string
}

// planNode is one operator on its way into a topology.
type planNode struct {
	name              string // of the last of its nodes, whose children its children are
	parents, children []*planNode
	priority          int // of those that can be written, the one with the lowest is next
	write             func(*planNode, *Topology)

	keyChanging   bool
	valueChanging bool
	process       bool // by a processor of the application, which may change both
	processValues bool // likewise, but not the key
	merges        bool // several streams into one
	takesNullKeys bool // and keeps them: a left join
	versioning    versioning

	grace *int64 // of windows: how long after its end one takes records, in milliseconds

	source      *sourcePlan      // of a source of a stream
	table       *tableSourcePlan // of a source of a table
	repartition *repartitionPlan
	streamJoin  *streamJoinPlan
}

// versioning says whether the changes of a table say if they come out of order
// (KIP-914).
type versioning int8

const (
	asParents versioning = iota // if those of all parents do
	unversioned
	versioned
)

// versioned says whether the changes of a node say if they come out of order.
func (n *planNode) versioned() bool {
	if n.versioning != asParents || len(n.parents) == 0 {
		return n.versioning == versioned
	}
	return !slices.ContainsFunc(n.parents, func(parent *planNode) bool { return !parent.versioned() })
}

// versionedFrom says whether the parent of that name is versioned.
func (n *planNode) versionedFrom(parent string) bool {
	return slices.ContainsFunc(n.parents, func(p *planNode) bool { return p.name == parent && p.versioned() })
}

// add plans an operator below parents. It is written after all of them.
func (p *plan) add(name string, write func(*planNode, *Topology), parents ...*planNode) *planNode {
	n := &planNode{name: name, write: write}
	p.insert(n, parents...)
	return n
}

// insert puts a node below parents and last in the order of writing. It may be in
// the plan already.
func (p *plan) insert(n *planNode, parents ...*planNode) {
	if !slices.Contains(p.nodes, n) {
		p.nodes = append(p.nodes, n)
	}
	for _, parent := range parents {
		if !slices.Contains(p.nodes, parent) {
			p.errorf("%q and %q belong to different Builders", n.name, parent.name)
			continue
		}
		parent.addChild(n)
	}
	n.priority = p.priority
	p.priority++
}

// copartition has the topics of sources copartitioned. It returns the sources.
func (p *plan) copartition(sources ...[]string) []string {
	group := union(sources...)
	p.copartitioned = append(p.copartitioned, group)
	return group
}

// needs notes if an operator that is called behind a node lacks one of its functions.
func (p *plan) needs(call string, behind *planNode, functions ...any) {
	for _, f := range functions {
		if reflect.ValueOf(f).IsNil() {
			p.errorf("%s behind %q: a function is nil, a %T", call, behind.name, f)
			return
		}
	}
}

func (p *plan) errorf(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

func (n *planNode) addChild(child *planNode) {
	if !slices.Contains(n.children, child) {
		n.children = append(n.children, child)
		child.parents = append(child.parents, n)
	}
}

func (n *planNode) removeChild(child *planNode) {
	n.children = without(n.children, child)
	child.parents = without(child.parents, n)
}

func (n *planNode) parentNames() []string { return nodeNames(n.parents) }

func nodeNames(nodes []*planNode) []string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.name
	}
	return names
}

func without[T comparable](s []T, v T) []T {
	return slices.DeleteFunc(s, func(e T) bool { return e == v })
}

// clone copies the plan and the links between its nodes.
func (p *plan) clone() *plan {
	c := *p
	c.nodes = make([]*planNode, len(p.nodes))
	copies := make(map[*planNode]*planNode, len(p.nodes))
	for i, n := range p.nodes {
		copied := *n
		copied.table, copied.repartition, copied.streamJoin = copyOf(n.table), copyOf(n.repartition), copyOf(n.streamJoin)
		c.nodes[i], copies[n] = &copied, &copied
	}
	for _, n := range c.nodes {
		n.parents, n.children = slices.Clone(n.parents), slices.Clone(n.children)
		for i, other := range n.parents {
			n.parents[i] = copies[other]
		}
		for i, other := range n.children {
			n.children[i] = copies[other]
		}
	}
	c.generated = maps.Clone(p.generated)
	c.copartitioned = make([][]string, len(p.copartitioned))
	for i, group := range p.copartitioned {
		c.copartitioned[i] = slices.Clone(group)
	}
	return &c
}

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// write writes the nodes, parents before children, and among those that can be
// written the first planned first. The order decides the subtopologies' ids and
// the order in which a node's children get a record.
func (p *plan) write(t *Topology) {
	written := make(map[*planNode]bool, len(p.nodes))
	ready := slices.DeleteFunc(slices.Clone(p.nodes), func(n *planNode) bool { return len(n.parents) > 0 })
	for len(ready) > 0 {
		n := slices.MinFunc(ready, func(a, b *planNode) int { return a.priority - b.priority })
		ready = without(ready, n)
		n.write(n, t)
		written[n] = true
		for _, child := range n.children {
			if !slices.ContainsFunc(child.parents, func(parent *planNode) bool { return !written[parent] }) {
				ready = append(ready, child)
			}
		}
	}
}

// union is the sorted union of sets.
func union(sets ...[]string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(sets...))))
}
