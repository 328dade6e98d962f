package streams

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/taskmgr"
)

// Nothing is what a processor sends on that has no children.
type Nothing = struct{}

// AddGlobalStore adds a store that each instance of the application has whole: a source
// reads all partitions of a topic, which must exist, and a processor puts what it finds
// into the store. Every processor can read the store, without being connected to it. It
// has no changelog, and is filled before anything else runs.
func AddGlobalStore[K, V any](t *Topology, s StateStore, source string, c Consumed[K, V], topic, processor string, newProcessor func() Processor[K, V, Nothing, Nothing]) {
	AddSource(t, source, c, topic)
	AddProcessor(t, processor, newProcessor, source)
	t.AddStateStore(s, processor)
	t.makeGlobal(s.Name, source, processor)
}

// AddReadOnlyStateStore adds a store whose topic, which must exist, serves as its
// changelog (KIP-813): a source reads the topic, and a processor puts what it finds into
// the store, which must be what the records themselves say. Nothing else writes to the
// store, since nothing is written to the topic.
func AddReadOnlyStateStore[K, V any](t *Topology, s StateStore, source string, c Consumed[K, V], topic, processor string, newProcessor func() Processor[K, V, Nothing, Nothing]) {
	AddSource(t, source, c, topic)
	AddProcessor(t, processor, newProcessor, source)
	s.LoggingDisabled, s.sourceTopic = false, topic
	t.AddStateStore(s, processor)
}

// GlobalStore is [AddGlobalStore] for the DSL: its nodes have the names that Java's
// StreamsBuilder.addGlobalStore gives them.
func GlobalStore[K, V any](b *Builder, s StateStore, topic string, newProcessor func() Processor[K, V, Nothing, Nothing], options ...Consumed[K, V]) {
	c := only(b, "GlobalStore", options)
	source, name := b.suffixed(c.Name, "-source", sourcePrefix), b.name(c.Name, tableSourcePrefix)
	b.add(name, func(_ *planNode, t *Topology) { AddGlobalStore(t, s, source, c, topic, name, newProcessor) })
}

// makeGlobal makes a store global that a source and a processor below it fill.
func (t *Topology) makeGlobal(name, source, processor string) {
	for _, s := range t.stores {
		if s.Name == name {
			s.global, s.LoggingDisabled = true, true
		}
	}
	for _, node := range []string{source, processor} {
		if n := t.byName[node]; n != nil {
			n.global = true
		}
	}
}

// globalStores are the names of the global stores.
func (t *Topology) globalStores() (names []string) {
	for _, s := range t.stores {
		if s.global {
			names = append(names, s.Name)
		}
	}
	return names
}

// global says whether it is a source and a processor that fill a global store. There
// are no tasks of it.
func (s *subtopology) global() bool { return s.nodes[0].global }

// globalNodes are the nodes that fill global stores.
func globalNodes(subs []*subtopology) (nodes []*node) {
	for _, sub := range subs {
		if sub.global() {
			nodes = append(nodes, sub.nodes...)
		}
	}
	return nodes
}

// addGlobal adds what fills a global store.
func (c *Compiled) addGlobal(sub *subtopology, topicName func(string) string) {
	if c.Global == nil {
		c.Global = &taskmgr.GlobalTopology{ID: strconv.Itoa(sub.id)}
	}
	source, processor := sub.nodes[0], sub.nodes[1]
	c.Global.Topics = append(c.Global.Topics, source.topics...)
	for _, s := range sub.stores {
		c.Global.Stores = append(c.Global.Stores, taskmgr.GlobalStoreSpec{
			Name: s.Name, Persistent: s.Type != InMemory, Engine: s.engine(), New: s.make,
		})
	}
	c.Description.GlobalStores = append(c.Description.GlobalStores, kmsg.TopologyDescriptionGlobalStore{
		Source: source.wireDescription(topicName), Processor: processor.wireDescription(topicName),
	})
}
