package streams

import "github.com/odradek-go/odradek/serde"

// Consumed says how a topic is read.
type Consumed[K, V any] struct {
	// Name is the source's name; empty: generated.
	Name string

	// Key and Value are the topic's serdes; nil: [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]
}

// ConsumedWith is a Consumed with serdes.
func ConsumedWith[K, V any](key serde.Serde[K], value serde.Serde[V]) Consumed[K, V] {
	return Consumed[K, V]{Key: key, Value: value}
}

// As returns a copy with that name.
func (c Consumed[K, V]) As(name string) Consumed[K, V] { c.Name = name; return c }

// Produced says how a topic is written.
type Produced[K, V any] struct {
	// Name is the sink's name; empty: generated.
	Name string

	// Key and Value are the topic's serdes; nil: the stream's, or else
	// [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]
}

// ProducedWith is a Produced with serdes.
func ProducedWith[K, V any](key serde.Serde[K], value serde.Serde[V]) Produced[K, V] {
	return Produced[K, V]{Key: key, Value: value}
}

// As returns a copy with that name.
func (p Produced[K, V]) As(name string) Produced[K, V] { p.Name = name; return p }

// Grouped says how a stream is grouped: how its records are written to the
// repartition topic, where grouping needs one.
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

// Materialized says how a table's state store is made.
type Materialized[K, V any] struct {
	// Name is the store's, and part of its changelog topic's; empty: generated.
	Name string

	// Key and Value are the store's serdes; nil: the stream's, or else
	// [serde.For].
	Key   serde.Serde[K]
	Value serde.Serde[V]

	// LoggingDisabled leaves the store without a changelog: what it holds is
	// lost when its task moves.
	LoggingDisabled bool

	// ChangelogConfig are topic settings of the changelog, over the defaults.
	ChangelogConfig map[string]string
}

// MaterializedWith is a Materialized with a name and serdes.
func MaterializedWith[K, V any](name string, key serde.Serde[K], value serde.Serde[V]) Materialized[K, V] {
	return Materialized[K, V]{Name: name, Key: key, Value: value}
}

// Named names an operator; empty: generated.
type Named string
