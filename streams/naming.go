package streams

import (
	"errors"
	"fmt"
	"regexp"
)

// The prefixes of generated names, Java's.
const (
	sourcePrefix        = "KSTREAM-SOURCE-"
	sinkPrefix          = "KSTREAM-SINK-"
	filterPrefix        = "KSTREAM-FILTER-"
	mapPrefix           = "KSTREAM-MAP-"
	mapValuesPrefix     = "KSTREAM-MAPVALUES-"
	flatMapPrefix       = "KSTREAM-FLATMAP-"
	flatMapValuesPrefix = "KSTREAM-FLATMAPVALUES-"
	keySelectPrefix     = "KSTREAM-KEY-SELECT-"
	peekPrefix          = "KSTREAM-PEEK-"
	forEachPrefix       = "KSTREAM-FOREACH-"
	printPrefix         = "KSTREAM-PRINTER-"
	mergePrefix         = "KSTREAM-MERGE-"
	branchPrefix        = "KSTREAM-BRANCH-"
	processorPrefix     = "KSTREAM-PROCESSOR-"
	processValuesPrefix = "KSTREAM-PROCESSVALUES-"
	repartitionPrefix   = "KSTREAM-REPARTITION-"
	toTablePrefix       = "KSTREAM-TOTABLE-"
	joinPrefix          = "KSTREAM-JOIN-"
	leftJoinPrefix      = "KSTREAM-LEFTJOIN-"
	aggregatePrefix     = "KSTREAM-AGGREGATE-"
	reducePrefix        = "KSTREAM-REDUCE-"

	windowedPrefix          = "KSTREAM-WINDOWED-"
	streamJoinThisPrefix    = "KSTREAM-JOINTHIS-"
	streamJoinOtherPrefix   = "KSTREAM-JOINOTHER-"
	streamOuterThisPrefix   = "KSTREAM-OUTERTHIS-"
	streamOuterOtherPrefix  = "KSTREAM-OUTEROTHER-"
	streamOuterSharedPrefix = "KSTREAM-OUTERSHARED-"

	cogroupAggregatePrefix = "COGROUPKSTREAM-AGGREGATE-"
	cogroupMergePrefix     = "COGROUPKSTREAM-MERGE-"

	tableSourcePrefix          = "KTABLE-SOURCE-"
	tableFilterPrefix          = "KTABLE-FILTER-"
	tableMapValuesPrefix       = "KTABLE-MAPVALUES-"
	tableTransformValuesPrefix = "KTABLE-TRANSFORMVALUES-"
	toStreamPrefix             = "KTABLE-TOSTREAM-"
	tableSelectPrefix          = "KTABLE-SELECT-"
	tableAggregatePrefix       = "KTABLE-AGGREGATE-"
	tableReducePrefix          = "KTABLE-REDUCE-"
	joinThisPrefix             = "KTABLE-JOINTHIS-"
	joinOtherPrefix            = "KTABLE-JOINOTHER-"
	tableMergePrefix           = "KTABLE-MERGE-"
	suppressPrefix             = "KTABLE-SUPPRESS-"
	tableSinkPrefix            = "KTABLE-SINK-"

	subscriptionRegistrationPrefix = "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-"
	subscriptionStorePrefix        = "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-"
	subscriptionProcessorPrefix    = "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-"
	subscriptionResponsePrefix     = "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-"
	subscriptionResolverPrefix     = "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"
	foreignKeyOutputPrefix         = "KTABLE-FK-JOIN-OUTPUT-"

	storeInfix        = "STATE-STORE-"
	joinStoreSuffix   = "-store"
	repartitionSuffix = "-repartition"
)

// generate returns the next generated name of that prefix.
func (p *plan) generate(prefix string) string {
	name := fmt.Sprintf("%s%010d", prefix, p.index)
	p.index++
	p.generated[name] = true
	return name
}

// generateStore returns the next generated name of a state store.
func (p *plan) generateStore(prefix string) string { return p.generate(prefix + storeInfix) }

// name returns the name that was given, or a generated one. A given name uses up
// a number too, as in Java: naming one operator must not rename the others.
func (p *plan) name(given, prefix string) string {
	if generated := p.generate(prefix); given == "" {
		return generated
	}
	return given
}

// suffixed is like name for an operator of several nodes, which are told apart by
// suffixes of the name that was given.
func (p *plan) suffixed(given, suffix, prefix string) string {
	if given != "" {
		given += suffix
	}
	return p.name(given, prefix)
}

// ensureExplicitNames reports the stores and internal topics whose names are
// among the generated ones (KIP-1111).
func (t *Topology) ensureExplicitNames(generated map[string]bool) {
	for _, s := range t.stores {
		if !generated[s.Name] {
			continue
		}
		if !s.LoggingDisabled && s.sourceTopic == "" {
			t.errorf("state store %q and its changelog topic have a generated name: name the store with Materialized, StreamJoined, TableJoined or Suppressed", s.Name)
		} else {
			t.errorf("state store %q has a generated name: name it with Materialized, StreamJoined, TableJoined or Suppressed", s.Name)
		}
	}
	for _, topic := range t.internalTopics() {
		if generated[topic] {
			t.errorf("repartition topic %q has a generated name: name it with Grouped, Joined, Repartitioned, StreamJoined or TableJoined", topic)
		}
	}
}

// maxTopicName is the length of the longest name that a topic can have.
const maxTopicName = 249

var legalTopicName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// checkTopicName says why a topic can't have that name.
func checkTopicName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case name == "." || name == "..":
		return errors.New(`no topic can be named "." or ".."`)
	case len(name) > maxTopicName:
		return fmt.Errorf("the name has %d characters, and a topic's can have %d", len(name), maxTopicName)
	case !legalTopicName.MatchString(name):
		return errors.New(`the name of a topic can have ASCII letters and digits, ".", "_" and "-" only`)
	}
	return nil
}
