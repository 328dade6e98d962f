// Package streams is Kafka Streams for Go: describe a topology, run it, and the
// program is a full member of a streams group (KIP-1071), beside members in Go or
// Java.
//
// A topology comes from the DSL:
//
//	b := streams.NewBuilder()
//	lines := streams.Stream[string, string](b, "lines")
//	words := streams.FlatMapValues(lines, strings.Fields)
//	counts := streams.GroupBy(words, func(_, word string) string { return word }).Count()
//	counts.ToStream().To("counts")
//	app, err := streams.NewApp(b.Build(), streams.Config{ApplicationID: "wordcount", Brokers: brokers})
//	…
//	err = app.Run(ctx)
//
// or is put together from sources, processors and sinks: see [Topology] and
// [Processor]. A processor can stand in the DSL too: see [Process].
//
// Operators have Java's names. One that changes a type is a function, since Go's
// methods can't: MapValues(s, f); any other is a method: s.Filter(f). Where Java
// has one name for several receivers or arguments, the word Table says which is a
// table: [TableMapValues] maps the values of a table. [Join] joins a stream with a
// stream, [JoinTable] with a table, [JoinGlobalTable] with a global one; [TableJoin]
// joins a table with a table, [TableForeignKeyJoin] by another key than their own.
// [WindowedAggregate] aggregates windows of time, [SessionAggregate] sessions. A
// function that sees the key too is a variant WithKey. Names, serdes and stores are
// given with option structs, Java's Consumed, Produced, Grouped, Materialized, Joined,
// StreamJoined, TableJoined and Repartitioned; Named beside a Materialized is its
// Processor. Serdes may be left out where the stream or [serde.For] knows them.
//
// [Builder.Build] takes the topology.optimization of Java in a [TopologyConfig].
// [App.Run] returns when its context ends, with all that was
// processed committed and the group left, or with the error that stopped it.
//
// Names, internal topics and bytes are those of Java Kafka Streams 4.4.
//
// The package imports taskmgr, membership, state and serde. Begin with [Builder]
// and [App].
package streams
