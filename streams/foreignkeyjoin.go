package streams

import "github.com/odradek-go/odradek/serde"

// TableJoined says how two tables are joined by a foreign key.
type TableJoined[K, KOther, VOut any] struct {
	// Name is the operator's, and part of the names of its topics and of its
	// store of subscriptions; empty: generated.
	Name string

	// Partitioner chooses the partitions of the responses: that of the left
	// table's topic (KIP-775). Nil: they go where they were asked for.
	Partitioner StreamPartitioner[K, struct{}]

	// OtherPartitioner chooses the partitions of the subscriptions: that of the
	// right table's topic. Nil: the default one.
	OtherPartitioner StreamPartitioner[KOther, struct{}]

	// Materialized says how the new table is kept. Its Processor is not used.
	Materialized Materialized[K, VOut]
}

// TableForeignKeyJoin is the table of what f returns for each value of the first
// table and the value that the other one has for its foreign key, an inner join
// (KIP-213). foreignKey extracts the foreign key from a value; ok is false where it
// has none. Nil results are null. The tables' topics need not have equal numbers of
// partitions: subscriptions and responses go through topics of the join's own.
//
// As in Java, a result can stay outdated where a value of the first table changes
// twice, or changes while the other table's value is deleted, within the moment that
// a subscription takes. A left join has no such case.
func TableForeignKeyJoin[K, V, KOther, VOther, VOut any](t *KTable[K, V], other *KTable[KOther, VOther], foreignKey func(V) (key KOther, ok bool), f func(V, VOther) VOut, options ...TableJoined[K, KOther, VOut]) *KTable[K, VOut] {
	return joinForeignKey(t, other, "TableForeignKeyJoin", innerJoin, withoutKey[K](foreignKey), f, options)
}

// TableForeignKeyJoinWithKey is [TableForeignKeyJoin] with an extractor that sees
// the key.
func TableForeignKeyJoinWithKey[K, V, KOther, VOther, VOut any](t *KTable[K, V], other *KTable[KOther, VOther], foreignKey func(K, V) (key KOther, ok bool), f func(V, VOther) VOut, options ...TableJoined[K, KOther, VOut]) *KTable[K, VOut] {
	return joinForeignKey(t, other, "TableForeignKeyJoinWithKey", innerJoin, foreignKey, f, options)
}

// TableForeignKeyLeftJoin is like [TableForeignKeyJoin], and has the values too that
// have no foreign key, or one that is not in the other table: f gets the zero value
// then.
func TableForeignKeyLeftJoin[K, V, KOther, VOther, VOut any](t *KTable[K, V], other *KTable[KOther, VOther], foreignKey func(V) (key KOther, ok bool), f func(V, VOther) VOut, options ...TableJoined[K, KOther, VOut]) *KTable[K, VOut] {
	return joinForeignKey(t, other, "TableForeignKeyLeftJoin", leftJoin, withoutKey[K](foreignKey), f, options)
}

// TableForeignKeyLeftJoinWithKey is [TableForeignKeyLeftJoin] with an extractor that
// sees the key.
func TableForeignKeyLeftJoinWithKey[K, V, KOther, VOther, VOut any](t *KTable[K, V], other *KTable[KOther, VOther], foreignKey func(K, V) (key KOther, ok bool), f func(V, VOther) VOut, options ...TableJoined[K, KOther, VOut]) *KTable[K, VOut] {
	return joinForeignKey(t, other, "TableForeignKeyLeftJoinWithKey", leftJoin, foreignKey, f, options)
}

func withoutKey[K, V, KOther any](f func(V) (KOther, bool)) func(K, V) (KOther, bool) {
	if f == nil {
		return nil
	}
	return func(_ K, v V) (KOther, bool) { return f(v) }
}

// foreignKeyJoin is a planned foreign-key join. What it does has two sides, each in
// the subtopology of one of the tables:
//
//	left changes ──▶ subscribe ──▶ registration topic ──▶ receive ──▶ look up
//	                                                                     │
//	left values, result ◀── resolve ◀── response topic ◀─────────────────┤
//	                                                                     │
//	right changes ──────────────────────────────────▶ tell subscribers ──┘
type foreignKeyJoin[K, V, KOther, VOther, VOut any] struct {
	kind       joinKind
	foreignKey func(K, V) nullable[KOther]
	f          func(V, VOther) VOut

	keys        serde.Serde[K]
	values      serde.Serde[V]
	otherKeys   serde.Serde[KOther]
	otherValues serde.Serde[VOther]
	this        view[K, V]
	other       view[KOther, VOther]

	names         foreignKeyNames
	subscriptions StateStore
	TableJoined[K, KOther, VOut]
}

// foreignKeyNames are the names of the nodes and topics.
type foreignKeyNames struct {
	registrationTopic, subscribe, registrationSink, registrationSource, receive, lookUp string
	tell                                                                                string
	responseTopic, responseSink, responseSource, resolve, result                        string
}

func joinForeignKey[K, V, KOther, VOther, VOut any](t *KTable[K, V], other *KTable[KOther, VOther], operator string, kind joinKind, foreignKey func(K, V) (KOther, bool), f func(V, VOther) VOut, options []TableJoined[K, KOther, VOut]) *KTable[K, VOut] {
	b := t.b
	joined := only(b, operator, options)
	b.needs(operator, t.node, foreignKey, f)
	m := joined.Materialized
	if m.Processor != "" {
		b.errorf("%s: name the join %q with Name of TableJoined, not with Processor of Materialized", operator, m.Processor)
	}
	other.kind.sendOld(true)
	t.kind.sendOld(true)
	known := nullableOf[KOther]()
	j := &foreignKeyJoin[K, V, KOther, VOther, VOut]{
		kind: kind, f: f, TableJoined: joined,
		foreignKey: func(k K, v V) (key nullable[KOther]) {
			if found, ok := foreignKey(k, v); ok {
				key = known(found)
			}
			return key
		},
		keys: serdeOr(t.keys), values: serdeOr(t.values), otherKeys: serdeOr(other.keys), otherValues: serdeOr(other.values),
	}
	if j.keys == nil || j.values == nil || j.otherKeys == nil || j.otherValues == nil {
		b.errorf("%s: the tables need serdes of their keys and values: give them where the tables are made", operator)
	}
	sources, otherSources := j.name(b, t.sources, other.sources)
	b.copartitioned = append(b.copartitioned, otherSources, sources)
	j.other, j.this = other.kind.view(), t.kind.view()

	subscribing := b.add(j.names.lookUp, func(n *planNode, t *Topology) { j.writeSubscribing(t, n) }, t.node)
	telling := b.add(j.names.tell, func(n *planNode, t *Topology) { j.writeTelling(t, n) }, other.node)
	m.storeName(&b.plan, foreignKeyOutputPrefix)
	m.Key, m.Value = firstOf(m.Key, t.keys), serdeOr(m.Value)
	result := &storedTable[K, VOut]{Materialized: m, kept: joined.Materialized.Name != ""}
	n := b.add(j.names.result, func(n *planNode, t *Topology) {
		j.writeResponding(t, n.parentNames())
		result.write(t, j.names.result, []string{j.names.resolve}, nil)
	}, subscribing, telling)
	n.versioning = m.versioning()
	return &KTable[K, VOut]{b: b, node: n, sources: sources, keys: m.Key, values: m.Value, kind: result}
}

// name names what the join is made of, in Java's order. It returns the sources of
// both sides, which are copartitioned.
func (j *foreignKeyJoin[K, V, KOther, VOther, VOut]) name(b *Builder, sources, otherSources []string) (left, right []string) {
	names := &j.names
	topic := func(suffix, prefix string) string {
		topic := b.suffixed(j.Name, suffix, prefix) + "-topic"
		b.generated[topic] = j.Name == ""
		return topic
	}
	names.registrationTopic = topic("-subscription-registration", subscriptionRegistrationPrefix)
	names.subscribe = b.suffixed(j.Name, "-subscription-registration-processor", subscriptionRegistrationPrefix)
	names.registrationSink = b.suffixed(j.Name, "-subscription-registration-sink", tableSinkPrefix)
	names.registrationSource = b.suffixed(j.Name, "-subscription-registration-source", tableSourcePrefix)
	j.subscriptions = NewTimestampedKeyValueStore(b.suffixed(j.Name, "-subscription-store", subscriptionStorePrefix), j.combinedKeys(), j.subscriptionSerde())
	j.subscriptions.logsHeaders = true
	names.receive = b.suffixed(j.Name, "-subscription-receive", subscriptionProcessorPrefix)
	names.lookUp = b.suffixed(j.Name, "-subscription-join-foreign", subscriptionProcessorPrefix)
	names.tell = b.suffixed(j.Name, "-foreign-join-subscription", subscriptionProcessorPrefix)
	names.responseTopic = topic("-subscription-response", subscriptionResponsePrefix)
	names.responseSink = b.suffixed(j.Name, "-subscription-response-sink", tableSinkPrefix)
	names.responseSource = b.suffixed(j.Name, "-subscription-response-source", tableSourcePrefix)
	names.resolve = b.suffixed(j.Name, "-subscription-response-resolver", subscriptionResolverPrefix)
	names.result = b.suffixed(j.Name, "-result", foreignKeyOutputPrefix)
	return union(sources, []string{names.responseSource}), union(otherSources, []string{names.registrationSource})
}
