package main

import (
	"strings"

	"github.com/odradek-go/odradek/mirror"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// The application and its topics.
const (
	applicationID = "wordcount"
	input         = "lines"
	output        = "counts"
	repartition   = applicationID + "-words-repartition"
	changelog     = applicationID + "-counts-changelog"
)

// topics are the application's topics as a failover sees them.
var topics = mirror.Application{
	Inputs:       []string{input},
	Repartitions: []string{repartition},
	Changelogs:   []string{changelog},
	Outputs:      []string{output},
}

// topology counts words.
func topology() *streams.Topology {
	b := streams.NewBuilder()
	lines := streams.Stream(b, input, streams.ConsumedWith(serde.String, serde.String))
	words := streams.FlatMapValues(lines, strings.Fields)
	counts := streams.GroupBy(words,
		func(_, word string) string { return word },
		streams.GroupedWith(serde.String, serde.String).As("words"),
	).Count(streams.MaterializedWith("counts", serde.String, serde.Int64))
	counts.ToStream().To(output)
	return b.Build()
}
