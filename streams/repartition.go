package streams

import (
	"regexp"
	"strings"

	"github.com/odradek-go/odradek/serde"
)

// Repartitioned says how a stream goes through a repartition topic (KIP-221).
type Repartitioned[K, V any] struct {
	// Name is the topic's, between the application id and "-repartition";
	// empty: generated.
	Name string

	// Key and Value are the topic's serdes; nil: the stream's, or else
	// [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]

	// NumberOfPartitions is how many partitions the topic has; 0: as many as
	// the widest topic that feeds it.
	NumberOfPartitions int32

	// Partitioner chooses the records' partitions; nil: the default one.
	Partitioner StreamPartitioner[K, V]
}

// Repartition sends the stream through a repartition topic.
func (s *KStream[K, V]) Repartition(options ...Repartitioned[K, V]) *KStream[K, V] {
	r := only(s.b, "Repartition", options)
	if r.NumberOfPartitions < 0 {
		s.b.errorf("Repartition: NumberOfPartitions is %d", r.NumberOfPartitions)
	}
	explicit := r.Name != ""
	if !explicit {
		r.Name = s.b.generate(repartitionPrefix)
	}
	r.Key, r.Value = firstOf(r.Key, s.keys), firstOf(r.Value, s.values)
	n := planRepartition(&s.b.plan, r, explicit)
	s.b.insert(n, s.node)
	return s.behind(n, r)
}

// behind is the stream behind a repartition topic.
func (s *KStream[K, V]) behind(n *planNode, r Repartitioned[K, V]) *KStream[K, V] {
	return &KStream[K, V]{b: s.b, node: n, sources: []string{n.name}, keys: r.Key, values: r.Value}
}

// forJoin is the stream repartitioned as a join needs it, where its keys may have
// changed. Joins that don't name the topic share one.
func (s *KStream[K, V]) forJoin(r Repartitioned[K, V]) *KStream[K, V] {
	if !s.rekeyed {
		return s
	}
	explicit := r.Name != ""
	if !explicit {
		r.Name = s.node.name
	}
	r.Key, r.Value = firstOf(r.Key, s.keys), firstOf(r.Value, s.values)
	n := planRepartition(&s.b.plan, r, explicit)
	n.repartition.optimizable = true
	if s.repartitioned == nil || r.Name != s.node.name {
		s.b.insert(n, s.node)
		s.repartitioned = n
	}
	return s.behind(s.repartitioned, r)
}

// repartitionPlan is a planned way through a repartition topic.
type repartitionPlan struct {
	topic        string // without the application id
	optimizable  bool   // it was not asked for, and may be merged with others
	dropNullKeys bool   // records without a key belong to no partition

	// again plans one more for the same topic and types.
	again func(*plan) *planNode
}

// generatedPrefix is what generated names of repartition topics begin with: then
// the nodes have generated names too.
var generatedPrefix = regexp.MustCompile(`^KSTREAM.*-[0-9]{10}$`)

// planRepartition plans the nodes of a repartition topic, which are not in the
// plan yet but have used up their names. explicit says that the topic's name was
// chosen by the application.
func planRepartition[K, V any](p *plan, r Repartitioned[K, V], explicit bool) *planNode {
	topic := r.Name
	if !strings.HasSuffix(topic, repartitionSuffix) {
		topic += repartitionSuffix
	}
	if !explicit {
		p.generated[topic] = true
	}
	sink, filter, source := p.generate(sinkPrefix), p.generate(filterPrefix), p.generate(sourcePrefix)
	if !generatedPrefix.MatchString(r.Name) {
		sink, filter, source = topic+"-sink", topic+"-filter", topic+"-source"
	}
	return &planNode{
		name: source,
		repartition: &repartitionPlan{topic: topic, again: func(p *plan) *planNode {
			r := r
			r.Name = topic
			return planRepartition(p, r, explicit)
		}},
		write: func(n *planNode, t *Topology) {
			t.internal[topic] = internalTopic{partitions: r.NumberOfPartitions}
			addNode[K, V, K, V](t, filter, n.parentNames(), func(*taskContext) (running, error) {
				if n.repartition.dropNullKeys {
					return &transformNode[K, V, K, V]{f: func(r Record[K, V]) (Record[K, V], bool) { return r, !r.KeyNull }}, nil
				}
				return &transformNode[K, V, K, V]{f: func(r Record[K, V]) (Record[K, V], bool) { return r, true }}, nil
			})
			AddSink(t, sink, topic, Produced[K, V]{Key: r.Key, Value: r.Value, Partitioner: r.Partitioner}, filter)
			AddSource(t, source, ConsumedWith(r.Key, r.Value), topic)
		},
	}
}

// firstOf is the first serde that there is.
func firstOf[T any](serdes ...serde.Serde[T]) serde.Serde[T] {
	for _, s := range serdes {
		if s != nil {
			return s
		}
	}
	return serdeOr[T](nil)
}
