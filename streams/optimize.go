package streams

import "slices"

// TopologyConfig says how [Builder.Build] makes a topology. All members of a group
// must say the same.
type TopologyConfig struct {
	// Optimization are the improvements to make (topology.optimization); 0:
	// none, which is Kafka Streams' default.
	Optimization Optimization

	// EnsureExplicitInternalResourceNaming makes a store or an internal topic
	// with a generated name an error (ensure.explicit.internal.resource.naming,
	// KIP-1111): generated names change when operators are added before them.
	EnsureExplicitInternalResourceNaming bool

	// StoreType is where stores keep their data that don't say it themselves
	// (default.dsl.store, dsl.store.suppliers.class); the zero value: on disk.
	StoreType StoreType

	// StoreFormat is what the stores of the DSL keep with each value
	// (dsl.store.format, KIP-1271); the zero value: its timestamp.
	StoreFormat StoreFormat

	// ProcessProcessValuesFix lets MergeRepartitionTopics know that Process
	// changes keys and ProcessValues changes values (KAFKA-19668). Without it a
	// repartition topic may be moved to before them. It is off by default, as
	// in Java, because it changes the topologies of running applications.
	ProcessProcessValuesFix bool
}

// StoreFormat is what the stores of the DSL keep with each value.
type StoreFormat int8

// The store formats. As in Java, the values of tables have no headers in either. With
// HeadersFormat the windows of stream-stream joins and the subscriptions of foreign-key
// joins have those of their records in the store too, not in the changelog alone; in
// changelogs a tombstone has the headers of the record that it comes from, and what a
// suppression holds back has those of the values before.
const (
	TimestampedFormat StoreFormat = iota // the value and its timestamp
	HeadersFormat                        // the value, its timestamp and its headers
)

// Optimization is a set of improvements of a topology.
type Optimization uint8

// The improvements, with the names of their values in Java.
const (
	// ReuseKTableSourceTopics restores the store of [Table] from the table's
	// topic, which then needs no changelog (reuse.ktable.source.topics).
	ReuseKTableSourceTopics Optimization = 1 << iota

	// MergeRepartitionTopics makes one repartition topic of those that the
	// same change of keys leads to (merge.repartition.topics).
	MergeRepartitionTopics

	// SingleStoreSelfJoin lets a stream that is joined with itself have one
	// store (single.store.self.join).
	SingleStoreSelfJoin

	// NoOptimization is the default.
	NoOptimization Optimization = 0

	// OptimizeAll is all of them ("all").
	OptimizeAll = ReuseKTableSourceTopics | MergeRepartitionTopics | SingleStoreSelfJoin
)

func (p *plan) optimize(c TopologyConfig, t *Topology) {
	p.mergeSources(t)
	if c.Optimization&ReuseKTableSourceTopics != 0 {
		for _, n := range p.nodes {
			if n.table != nil {
				n.table.isChangelog = true
			}
		}
	}
	if c.Optimization&MergeRepartitionTopics != 0 {
		p.mergeRepartitions(c.ProcessProcessValuesFix)
	}
	if c.Optimization&SingleStoreSelfJoin != 0 {
		p.selfJoins()
	}
	p.dropNullKeys()
}

// mergeSources makes one of the sources that read the same topics.
func (p *plan) mergeSources(t *Topology) {
	first := make(map[string]*planNode)
	for _, n := range slices.Clone(p.nodes) {
		if n.source == nil {
			continue
		}
		for _, topic := range n.source.topics {
			main := first[topic]
			switch {
			case main == nil:
				first[topic] = n
			case main == n:
				t.errorf("source %q: topic %q is given twice", n.name, topic)
			case !slices.Equal(main.source.topics, n.source.topics):
				t.errorf("sources %q and %q read topic %q, but not the same topics: %q and %q", main.name, n.name, topic, main.source.topics, n.source.topics)
			case main.source.types != n.source.types:
				t.errorf("sources %q and %q read topic %q as different types: %v and %v", main.name, n.name, topic, main.source.types, n.source.types)
			case main.source.reset != n.source.reset:
				t.errorf("sources %q and %q read topic %q with different offset resets", main.name, n.name, topic)
			default:
				for _, child := range slices.Clone(n.children) {
					n.removeChild(child)
					main.addChild(child)
				}
				p.nodes = without(p.nodes, n)
			}
		}
	}
}

// dropNullKeys has records without a key dropped before a repartition topic where
// nothing behind it wants them (KIP-962).
func (p *plan) dropNullKeys() {
	wanted := make(map[*planNode]bool)
	var visit func(n *planNode) bool
	visit = func(n *planNode) bool {
		want, seen := wanted[n]
		if seen {
			return want
		}
		for _, child := range n.children {
			want = visit(child) || child.takesNullKeys || want
		}
		wanted[n] = want
		return want
	}
	for _, n := range p.nodes {
		if n.repartition != nil {
			n.repartition.dropNullKeys = !visit(n)
		}
	}
}
