package main

import (
	"strings"
	"unicode"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// topology is the application. In Java:
//
//	stream(input).flatMapValues(words).groupBy((k, w) -> w, Grouped.as("words"))
//	    .count(Materialized.as("counts")).toStream().to(output)
//
// with String keys and values and Long counts. Node, store and topic names are
// the same, so that a Java instance can join the group.
func topology(o options) *streams.Topology {
	counted := streams.MaterializedWith("counts", serde.String, serde.Int64)
	if o.stateDir == "" {
		counted.StoreType = streams.InMemory
	}
	b := streams.NewBuilder()
	lines := streams.Stream(b, o.inputTopic, streams.ConsumedWith(serde.String, serde.String))
	words := streams.FlatMapValues(lines, words)
	counts := streams.GroupBy(words,
		func(_, word string) string { return word },
		streams.GroupedWith(serde.String, serde.String).As("words"),
	).Count(counted)
	counts.ToStream().To(o.outputTopic)
	return b.Build()
}

// repartitionTopic is the topic between the two subtopologies.
func repartitionTopic(applicationID string) string { return applicationID + "-words-repartition" }

// words returns the words of a line: its maximal runs of letters and digits, in
// lower case.
func words(line string) []string {
	words := strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, word := range words {
		words[i] = strings.ToLower(word)
	}
	return words
}
