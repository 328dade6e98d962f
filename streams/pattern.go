package streams

import (
	"reflect"
	"regexp"

	"github.com/odradek-go/odradek/taskmgr"
)

// StreamMatching is the stream of the records of all topics whose whole names match a
// pattern, those that are created later included, but for Kafka's own. There is no
// order between records of different topics. A topic must not match two sources.
//
// Brokers up to Kafka 4.4 take no patterns: [App.Run] then ends with
// [membership.ErrPatternsUnsupported].
func StreamMatching[K, V any](b *Builder, pattern *regexp.Regexp, options ...Consumed[K, V]) *KStream[K, V] {
	c := only(b, "StreamMatching", options)
	name := b.name(c.Name, sourcePrefix)
	c.Key, c.Value = serdeOr(c.Key), serdeOr(c.Value)
	n := b.add(name, func(_ *planNode, t *Topology) { AddPatternSource(t, name, c, pattern) })
	n.source = &sourcePlan{topics: []string{patternName(pattern)}, types: reflect.TypeFor[Record[K, V]](), reset: c.OffsetReset}
	return &KStream[K, V]{b: b, node: n, sources: []string{name}, keys: c.Key, values: c.Value}
}

// AddPatternSource adds a source that reads all topics whose whole names match a
// pattern: see [StreamMatching]. The serdes may be left out where [serde.For] knows
// one.
func AddPatternSource[K, V any](t *Topology, name string, c Consumed[K, V], pattern *regexp.Regexp) {
	if pattern == nil {
		t.errorf("source %q: no pattern of topics to read", name)
		return
	}
	n := newSource(t, name, c)
	n.pattern = pattern
	matches := wholeNames(pattern)
	for _, other := range t.nodes {
		for _, topic := range other.topics {
			if matches(topic) {
				t.errorf("source %q: topic %q, which its pattern %q matches, is read by source %q already", name, topic, pattern, other.name)
			}
		}
		if other.pattern != nil && other.pattern.String() == pattern.String() {
			t.errorf("source %q: topics that match %q are read by source %q already", name, pattern, other.name)
		}
	}
	t.add(n)
}

// patternName stands for the topics that match a pattern where topics are compared.
// No topic has such a name.
func patternName(pattern *regexp.Regexp) string { return patternPrefix + pattern.String() }

const patternPrefix = "topics matching "

// wholeNames returns what tells the topics whose whole names match a pattern.
func wholeNames(pattern *regexp.Regexp) func(topic string) bool {
	return regexp.MustCompile("^(?:" + pattern.String() + ")$").MatchString
}

// matchingSource is a running source of topics that match a pattern.
type matchingSource struct {
	matches func(topic string) bool
	source  taskmgr.Source
}
