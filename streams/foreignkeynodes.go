package streams

import (
	"bytes"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

func (j *foreignKeyJoin[K, V, KOther, VOther, VOut]) combinedKeys() combinedKeySerde[KOther, K] {
	return combinedKeySerde[KOther, K]{j.otherKeys, j.keys}
}

func (j *foreignKeyJoin[K, V, KOther, VOther, VOut]) subscriptionSerde() serde.Serde[subscription[K]] {
	return subscriptionSerde[K]{j.keys}
}

// writeSubscribing writes what leads from the left table to the right one's values.
func (j *foreignKeyJoin[K, V, KOther, VOther, VOut]) writeSubscribing(t *Topology, n *planNode) {
	versioned := n.versionedFrom(n.parents[0].name)
	addNode[K, change[V], KOther, subscription[K]](t, j.names.subscribe, n.parentNames(), func(ctx *taskContext) (running, error) {
		return &subscribeNode[K, V, KOther]{
			kind: j.kind, foreignKey: j.foreignKey, otherKeys: j.otherKeys, hash: newValueHash(j.values), partition: ctx.Task.Partition,
			versioned: versioned,
		}, nil
	})
	t.internal[j.names.registrationTopic] = internalTopic{}
	AddSink(t, j.names.registrationSink, j.names.registrationTopic, Produced[KOther, subscription[K]]{
		Key: j.otherKeys, Value: j.subscriptionSerde(), Partitioner: onlyKey[KOther, subscription[K]](j.OtherPartitioner),
	}, j.names.subscribe)
	AddSource(t, j.names.registrationSource, ConsumedWith(j.otherKeys, j.subscriptionSerde()), j.names.registrationTopic)

	addNode[KOther, subscription[K], combinedKey[KOther, K], subscription[K]](t, j.names.receive, []string{j.names.registrationSource}, func(ctx *taskContext) (_ running, err error) {
		n := &receiveNode[K, KOther]{}
		n.subscriptions, err = j.openSubscriptions(ctx)
		return n, err
	})
	t.shareStateStore(j.subscriptions, j.names.receive)
	addNode[combinedKey[KOther, K], subscription[K], K, response[VOther]](t, j.names.lookUp, []string{j.names.receive}, func(ctx *taskContext) (_ running, err error) {
		n := &lookUpNode[K, KOther, VOther]{}
		n.get, err = j.other.open(ctx)
		return n, err
	})
	t.ConnectProcessorAndStateStores(j.names.lookUp, j.other.stores...)
}

// writeTelling writes what tells subscribers of changes of the right table.
func (j *foreignKeyJoin[K, V, KOther, VOther, VOut]) writeTelling(t *Topology, n *planNode) {
	versioned := n.versionedFrom(n.parents[0].name)
	addNode[KOther, change[VOther], K, response[VOther]](t, j.names.tell, n.parentNames(), func(ctx *taskContext) (_ running, err error) {
		n := &tellNode[K, KOther, VOther]{keys: j.combinedKeys(), versioned: versioned}
		n.subscriptions, err = j.openSubscriptions(ctx)
		return n, err
	})
	t.shareStateStore(j.subscriptions, j.names.tell)
}

// writeResponding writes what leads back to the left table's values.
func (j *foreignKeyJoin[K, V, KOther, VOther, VOut]) writeResponding(t *Topology, parents []string) {
	partitioner := onlyKey[K, response[VOther]](j.Partitioner)
	if partitioner == nil {
		partitioner = func(_ string, r Record[K, response[VOther]], _ int) int32 { return r.Value.partition }
	}
	responses := responseSerde[VOther]{j.otherValues}
	t.internal[j.names.responseTopic] = internalTopic{}
	AddSink(t, j.names.responseSink, j.names.responseTopic, Produced[K, response[VOther]]{Key: j.keys, Value: responses, Partitioner: partitioner}, parents...)
	AddSource(t, j.names.responseSource, Consumed[K, response[VOther]]{Key: j.keys, Value: responses}, j.names.responseTopic)
	addNode[K, response[VOther], K, VOut](t, j.names.resolve, []string{j.names.responseSource}, func(ctx *taskContext) (_ running, err error) {
		n := &resolveNode[K, V, VOther, VOut]{kind: j.kind, f: j.f, hash: newValueHash(j.values), known: nullableOf[VOut]()}
		n.get, err = j.this.open(ctx)
		return n, err
	})
	t.ConnectProcessorAndStateStores(j.names.resolve, j.this.stores...)
}

// onlyKey is a partitioner of keys as one of records.
func onlyKey[K, V any](p StreamPartitioner[K, struct{}]) StreamPartitioner[K, V] {
	if p == nil {
		return nil
	}
	return func(topic string, r Record[K, V], partitions int) int32 {
		key := withValue(r, struct{}{})
		key.ValueNull = true
		return p(topic, key, partitions)
	}
}

// subscriptionStore keeps the subscriptions of the right side. Its changelog has the
// records' headers.
type subscriptionStore[K, KOther any] = *state.TimestampedKeyValue[combinedKey[KOther, K], subscription[K]]

func (j *foreignKeyJoin[K, V, KOther, VOther, VOut]) openSubscriptions(ctx *taskContext) (subscriptionStore[K, KOther], error) {
	s, err := openTable[combinedKey[KOther, K], subscription[K]](ctx, j.subscriptions.Name)
	return s.kv, err
}

// valueHash computes the hash of a left value.
type valueHash[V any] struct {
	serde  serde.Serde[V]
	buffer []byte // reused
}

func newValueHash[V any](s serde.Serde[V]) valueHash[V] {
	return valueHash[V]{serde: s, buffer: make([]byte, 0, 64)}
}

func (h *valueHash[V]) of(v nullable[V]) (hash nullable[hash128], err error) {
	if !v.ok {
		return hash, nil
	}
	data, err := appendPart(h.buffer[:0], h.serde, v.v)
	if err != nil {
		return hash, err
	}
	h.buffer = data
	return nullable[hash128]{murmur3(data), true}, nil
}

// subscribeNode turns changes of the left table into subscriptions.
type subscribeNode[K, V, KOther any] struct {
	emitter[KOther, subscription[K]]
	kind       joinKind
	foreignKey func(K, V) nullable[KOther]
	otherKeys  serde.Serde[KOther]
	hash       valueHash[V]
	partition  int32
	versioned  bool // changes out of order don't matter

	before, after []byte // reused
}

func (n *subscribeNode[K, V, KOther]) receive(r Record[K, change[V]]) error {
	if n.versioned && r.Value.outOfOrder {
		return nil
	}
	var before, after nullable[KOther]
	if r.Value.old.ok {
		before = n.foreignKey(r.Key, r.Value.old.v)
	}
	if r.Value.new.ok {
		after = n.foreignKey(r.Key, r.Value.new.v)
	}
	if n.kind == leftJoin {
		return n.left(r, before, after)
	}
	return n.inner(r, before, after)
}

func (n *subscribeNode[K, V, KOther]) left(r Record[K, change[V]], before, after nullable[KOther]) error {
	if !r.Value.old.ok && !r.Value.new.ok {
		return nil
	}
	if before.ok {
		moved, err := n.differ(before, after)
		if err != nil {
			return err
		}
		if moved {
			if err := n.send(r, before, deleteNoPropagate); err != nil {
				return err
			}
		}
	}
	return n.send(r, after, propagateNull)
}

func (n *subscribeNode[K, V, KOther]) inner(r Record[K, change[V]], before, after nullable[KOther]) error {
	switch {
	case !after.ok && !before.ok:
		return nil
	case !after.ok:
		return n.send(r, before, deletePropagate)
	case !before.ok:
		return n.send(r, after, propagateAvailable)
	}
	moved, err := n.differ(before, after)
	if err != nil {
		return err
	}
	if !moved {
		return n.send(r, after, propagateAvailable)
	}
	if err := n.send(r, before, deleteNoPropagate); err != nil {
		return err
	}
	// What it was joined with before is void, whatever the new key finds.
	return n.send(r, after, propagateNull)
}

// differ compares foreign keys as the topic sees them.
func (n *subscribeNode[K, V, KOther]) differ(before, after nullable[KOther]) (_ bool, err error) {
	if before.ok != after.ok {
		return true, nil
	}
	if n.before, err = appendPart(append(n.before[:0], 0), n.otherKeys, before.v); err != nil {
		return false, err
	}
	if n.after, err = appendPart(append(n.after[:0], 0), n.otherKeys, after.v); err != nil {
		return false, err
	}
	return !bytes.Equal(n.before, n.after), nil
}

func (n *subscribeNode[K, V, KOther]) send(r Record[K, change[V]], to nullable[KOther], i instruction) error {
	hash, err := n.hash.of(r.Value.new)
	if err != nil {
		return err
	}
	return n.forward(Record[KOther, subscription[K]]{
		Key: to.v, KeyNull: !to.ok,
		Value:     subscription[K]{key: r.Key, hash: hash, instruction: i, version: subscriptionVersion, partition: n.partition},
		Timestamp: r.Timestamp, Headers: r.Headers,
	})
}

// receiveNode keeps subscriptions.
type receiveNode[K, KOther any] struct {
	emitter[combinedKey[KOther, K], subscription[K]]
	subscriptions subscriptionStore[K, KOther]
}

func (n *receiveNode[K, KOther]) receive(r Record[KOther, subscription[K]]) (err error) {
	s := r.Value
	key := combinedKey[KOther, K]{valueIf(r.Key, !r.KeyNull), s.key}
	switch {
	case r.KeyNull && s.instruction != propagateNull:
		return nil
	case r.KeyNull: // of a left join: the answer is that there is nothing
	case s.instruction.deletes():
		err = n.subscriptions.DeleteHeaders(key, r.Timestamp, StoreHeaders(r.Headers))
	default:
		err = n.subscriptions.PutHeaders(key, s, r.Timestamp, StoreHeaders(r.Headers))
	}
	if err != nil {
		return err
	}
	return n.forward(Record[combinedKey[KOther, K], subscription[K]]{Key: key, Value: s, Timestamp: r.Timestamp, Headers: r.Headers})
}

// lookUpNode answers subscriptions.
type lookUpNode[K, KOther, VOther any] struct {
	emitter[K, response[VOther]]
	get getter[KOther, VOther]
}

func (n *lookUpNode[K, KOther, VOther]) receive(r Record[combinedKey[KOther, K], subscription[K]]) (err error) {
	s := r.Value
	out := Record[K, response[VOther]]{Key: s.key, Timestamp: r.Timestamp, Headers: r.Headers, Value: response[VOther]{hash: s.hash, partition: s.partition}}
	if foreign := r.Key.foreign; foreign.ok {
		var timestamp int64
		var found nullable[VOther]
		if found.v, timestamp, found.ok, err = n.get(foreign.v); err != nil {
			return err
		}
		if found.ok {
			out.Timestamp = max(out.Timestamp, timestamp)
		}
		if !s.instruction.deletes() {
			out.Value.value = found
		}
	}
	if s.instruction == deleteNoPropagate || s.instruction == propagateAvailable && !out.Value.value.ok {
		return nil
	}
	return n.forward(out)
}

// tellNode tells the subscribers of a key what its value became.
type tellNode[K, KOther, VOther any] struct {
	emitter[K, response[VOther]]
	keys          combinedKeySerde[KOther, K]
	subscriptions subscriptionStore[K, KOther]
	versioned     bool   // changes out of order don't matter
	prefix        []byte // reused
}

func (n *tellNode[K, KOther, VOther]) receive(r Record[KOther, change[VOther]]) (err error) {
	if r.KeyNull || n.versioned && r.Value.outOfOrder {
		return nil
	}
	if n.prefix, err = n.keys.appendPrefix(n.prefix[:0], r.Key); err != nil {
		return err
	}
	it := n.subscriptions.Prefix(n.prefix, state.Forward)
	defer it.Close()
	for it.Next() {
		if err := n.forward(Record[K, response[VOther]]{
			Key: it.Key().primary, Timestamp: r.Timestamp, Headers: r.Headers,
			Value: response[VOther]{hash: it.Value().hash, value: r.Value.new, partition: it.Value().partition},
		}); err != nil {
			return err
		}
	}
	return it.Err()
}

// resolveNode joins left values with responses that are about them as they are now.
type resolveNode[K, V, VOther, VOut any] struct {
	emitter[K, VOut]
	get   getter[K, V]
	kind  joinKind
	f     func(V, VOther) VOut
	hash  valueHash[V]
	known func(VOut) nullable[VOut]
}

func (n *resolveNode[K, V, VOther, VOut]) receive(r Record[K, response[VOther]]) (err error) {
	var now nullable[V]
	if now.v, _, now.ok, err = n.get(r.Key); err != nil {
		return err
	}
	hash, err := n.hash.of(now)
	if err != nil || hash != r.Value.hash {
		return err
	}
	var out nullable[VOut]
	if n.kind.has(now.ok, r.Value.value.ok) {
		out = n.known(n.f(now.v, r.Value.value.v))
	}
	joined := withValue(r, out.v)
	joined.ValueNull = !out.ok
	return n.forward(joined)
}
