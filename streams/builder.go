package streams

import (
	"fmt"
)

// Builder makes a topology from the DSL: streams and tables, and what becomes of
// them. Nodes, stores and internal topics get the names that Java's
// StreamsBuilder gives the same calls in the same order, so that a Go and a Java
// program can be members of one group.
type Builder struct {
	index int         // of the next generated name
	plan  []*planNode // in the order of the calls
	errs  []error
}

// planNode is one operator on its way into a topology: operators are planned
// first and written by Build, so that a plan can be looked at as a whole.
type planNode struct {
	write func(*Topology)
}

// NewBuilder returns an empty builder.
func NewBuilder() *Builder { return &Builder{} }

// Build returns the topology of all calls up to now. What is wrong with them is
// reported by [NewApp].
func (b *Builder) Build() *Topology {
	t := NewTopology()
	t.errs = append(t.errs, b.errs...)
	for _, n := range b.plan {
		n.write(t)
	}
	return t
}

func (b *Builder) add(write func(*Topology)) { b.plan = append(b.plan, &planNode{write}) }

func (b *Builder) errorf(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// The prefixes of generated names, Java's.
const (
	sourcePrefix        = "KSTREAM-SOURCE-"
	sinkPrefix          = "KSTREAM-SINK-"
	filterPrefix        = "KSTREAM-FILTER-"
	flatMapValuesPrefix = "KSTREAM-FLATMAPVALUES-"
	keySelectPrefix     = "KSTREAM-KEY-SELECT-"
	aggregatePrefix     = "KSTREAM-AGGREGATE-"
	aggregateStore      = "KSTREAM-AGGREGATE-STATE-STORE-"
	toStreamPrefix      = "KTABLE-TOSTREAM-"

	repartitionSuffix = "-repartition"
)

// generate returns the next generated name of that prefix.
func (b *Builder) generate(prefix string) string {
	name := fmt.Sprintf("%s%010d", prefix, b.index)
	b.index++
	return name
}

// name returns the name that was given, or a generated one. A given name uses up
// a number too, as in Java: naming one operator must not rename the others.
func (b *Builder) name(given, prefix string) string {
	if generated := b.generate(prefix); given == "" {
		return generated
	}
	return given
}

// only returns the one element of an optional argument, or its zero value.
func only[T any](b *Builder, operator string, options []T) (option T) {
	switch len(options) {
	case 0:
	case 1:
		option = options[0]
	default:
		b.errorf("%s: %d options where one is taken", operator, len(options))
	}
	return option
}
