package streams

import (
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// KGroupedStream is a stream whose records are grouped by key, ready to be
// aggregated into a table.
type KGroupedStream[K, V any] struct {
	b       *Builder
	parent  string
	name    string // as given with Grouped, empty otherwise
	keys    serde.Serde[K]
	values  serde.Serde[V]
	rekeyed bool
}

// Count is the table of how many records there are of each key. Records with a
// null key or value are not counted. A count's time is that of its latest record.
func (g *KGroupedStream[K, V]) Count(options ...Materialized[K, int64]) *KTable[K, int64] {
	m := only(g.b, "Count", options)
	if m.Name == "" {
		m.Name = g.b.generate(aggregateStore)
	}
	if m.Key == nil {
		m.Key = g.keys
	}
	m.Key, m.Value = serdeOr(m.Key), serdeOr(m.Value)
	n := g.b.generate(aggregatePrefix)

	parent := g.parent
	if g.rekeyed {
		topic := g.name
		if topic == "" {
			topic = m.Name
		}
		parent = repartition(g.b, g.parent, topic, g.keys, g.values)
	}
	g.b.add(func(t *Topology) {
		addNode[K, V, K, change[int64]](t, n, []string{parent}, func(ctx *taskContext) (running, error) {
			counts := ctx.Store(m.Name).(*state.TimestampedKeyValue[K, int64])
			return &countNode[K, V]{counts: counts}, nil
		})
		store := NewTimestampedKeyValueStore(m.Name, m.Key, m.Value)
		store.LoggingDisabled, store.ChangelogConfig = m.LoggingDisabled, m.ChangelogConfig
		t.AddStateStore(store, n)
	})
	return &KTable[K, int64]{b: g.b, parent: n, keys: m.Key, values: m.Value}
}

type countNode[K, V any] struct {
	emitter[K, change[int64]]
	counts *state.TimestampedKeyValue[K, int64]
}

func (n *countNode[K, V]) receive(r Record[K, V]) error {
	if r.KeyNull || r.ValueNull {
		return nil
	}
	count, timestamp, _, err := n.counts.Get(r.Key)
	if err != nil {
		return err
	}
	count++
	timestamp = max(timestamp, r.Timestamp)
	if err := n.counts.Put(r.Key, count, timestamp); err != nil {
		return err
	}
	out := withValue(r, change[int64]{value: count, exists: true})
	out.Timestamp = timestamp
	return n.forward(out)
}
