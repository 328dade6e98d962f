package streams

import (
	"github.com/odradek-go/odradek/serde"
)

// Grouped says how a stream or a table is grouped: how its records are written to
// the repartition topic, where grouping needs one.
type Grouped[K, V any] struct {
	// Name is the repartition topic's, between the application id and
	// "-repartition"; empty: the name of the store that is made of the groups.
	Name string

	// Key and Value are the serdes of the repartition topic; nil: the
	// stream's, or else [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]
}

// GroupedWith is a Grouped with serdes.
func GroupedWith[K, V any](key serde.Serde[K], value serde.Serde[V]) Grouped[K, V] {
	return Grouped[K, V]{Key: key, Value: value}
}

// As returns a copy with that name.
func (g Grouped[K, V]) As(name string) Grouped[K, V] { g.Name = name; return g }

// KGroupedStream is a stream whose records are grouped by key, ready to be
// aggregated into a table.
type KGroupedStream[K, V any] struct {
	from *KStream[K, V]
	name string // as given with Grouped, empty otherwise

	// repartitioned is the repartition that the group's aggregations share
	// where it has a name.
	repartitioned *planNode
}

// GroupBy groups the records by the key that f gives each of them. Because keys
// change, the groups are made behind a repartition topic.
func GroupBy[K, V, KOut any](s *KStream[K, V], f func(K, V) KOut, options ...Grouped[KOut, V]) *KGroupedStream[KOut, V] {
	g := only(s.b, "GroupBy", options)
	s.b.needs("GroupBy", s.node, f)
	return selectKey(s, f, g.Name).group(g)
}

// GroupByKey groups the records by their keys. Where the keys may have changed,
// the groups are made behind a repartition topic.
func (s *KStream[K, V]) GroupByKey(options ...Grouped[K, V]) *KGroupedStream[K, V] {
	return s.group(only(s.b, "GroupByKey", options))
}

func (s *KStream[K, V]) group(g Grouped[K, V]) *KGroupedStream[K, V] {
	from := *s
	from.keys, from.values = firstOf(g.Key, s.keys), firstOf(g.Value, s.values)
	return &KGroupedStream[K, V]{from: &from, name: g.Name}
}

// stream is the stream to aggregate into a store, repartitioned if need be.
func (g *KGroupedStream[K, V]) stream(store string) *KStream[K, V] {
	s := g.from
	if !s.rekeyed {
		return s
	}
	r, explicit := g.repartitioning(store)
	n := planRepartition(&s.b.plan, r, explicit)
	n.repartition.optimizable = true
	if g.repartitioned == nil || g.name == "" {
		g.repartitioned = n
	}
	s.b.insert(g.repartitioned, s.node)
	return s.behind(g.repartitioned, r)
}

// repartitioning says how the group is repartitioned for a store, and whether the
// topic's name was chosen by the application.
func (g *KGroupedStream[K, V]) repartitioning(store string) (r Repartitioned[K, V], explicit bool) {
	r = Repartitioned[K, V]{Name: g.name, Key: g.from.keys, Value: g.from.values}
	if g.name == "" {
		r.Name = store
		return r, !g.from.b.generated[store]
	}
	return r, true
}
