package streams

import (
	"cmp"
	"maps"
	"strings"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// Join is the stream of what f returns for each two records of the streams, one of
// each, that have the same key and are not further apart in time than windows says:
// an inner join. A result has the later one's time. Nil results are null. Records
// with a null key or value are dropped. The streams' topics must have equal numbers
// of partitions.
func Join[K, V, VOther, VOut any](s *KStream[K, V], other *KStream[K, VOther], f func(V, VOther) VOut, windows JoinWindows, options ...StreamJoined[K, V, VOther]) *KStream[K, VOut] {
	return joinStreams(s, other, "Join", innerJoin, ignoringKey[K](f), windows, options)
}

// JoinWithKey is [Join] with a function that sees the key.
func JoinWithKey[K, V, VOther, VOut any](s *KStream[K, V], other *KStream[K, VOther], f func(K, V, VOther) VOut, windows JoinWindows, options ...StreamJoined[K, V, VOther]) *KStream[K, VOut] {
	return joinStreams(s, other, "JoinWithKey", innerJoin, f, windows, options)
}

// LeftJoin is like [Join], and has the records of the first stream too that find no
// other, when their windows have closed, and those with a null key at once: f gets
// the zero value then. Closed windows are looked for when stream time moves on, and
// at most once a second.
func LeftJoin[K, V, VOther, VOut any](s *KStream[K, V], other *KStream[K, VOther], f func(V, VOther) VOut, windows JoinWindows, options ...StreamJoined[K, V, VOther]) *KStream[K, VOut] {
	return joinStreams(s, other, "LeftJoin", leftJoin, ignoringKey[K](f), windows, options)
}

// LeftJoinWithKey is [LeftJoin] with a function that sees the key.
func LeftJoinWithKey[K, V, VOther, VOut any](s *KStream[K, V], other *KStream[K, VOther], f func(K, V, VOther) VOut, windows JoinWindows, options ...StreamJoined[K, V, VOther]) *KStream[K, VOut] {
	return joinStreams(s, other, "LeftJoinWithKey", leftJoin, f, windows, options)
}

// OuterJoin is like [LeftJoin], and has the records of either stream that find no
// other.
func OuterJoin[K, V, VOther, VOut any](s *KStream[K, V], other *KStream[K, VOther], f func(V, VOther) VOut, windows JoinWindows, options ...StreamJoined[K, V, VOther]) *KStream[K, VOut] {
	return joinStreams(s, other, "OuterJoin", outerJoin, ignoringKey[K](f), windows, options)
}

// OuterJoinWithKey is [OuterJoin] with a function that sees the key.
func OuterJoinWithKey[K, V, VOther, VOut any](s *KStream[K, V], other *KStream[K, VOther], f func(K, V, VOther) VOut, windows JoinWindows, options ...StreamJoined[K, V, VOther]) *KStream[K, VOut] {
	return joinStreams(s, other, "OuterJoinWithKey", outerJoin, f, windows, options)
}

func ignoringKey[K, V, VOther, VOut any](f func(V, VOther) VOut) func(K, V, VOther) VOut {
	if f == nil {
		return nil
	}
	return func(_ K, v V, other VOther) VOut { return f(v, other) }
}

func joinStreams[K, V, VOther, VOut any](s *KStream[K, V], other *KStream[K, VOther], operator string, kind joinKind, f func(K, V, VOther) VOut, windows JoinWindows, options []StreamJoined[K, V, VOther]) *KStream[K, VOut] {
	b := s.b
	o := only(b, operator, options)
	b.needs(operator, s.node, f)
	o.Key, o.Value, o.OtherValue = firstOf(o.Key, s.keys, other.keys), firstOf(o.Value, s.values), firstOf(o.OtherValue, other.values)
	if o.Key == nil || o.Value == nil || o.OtherValue == nil {
		b.errorf("%s: no serdes for keys and values of its streams: give them with StreamJoined", operator)
	}
	if err := windows.check(); err != nil {
		b.errorf("%s: %w", operator, err)
	}
	var leftTopic, rightTopic string
	if o.Name != "" {
		leftTopic, rightTopic = o.Name+"-left", o.Name+"-right"
	}
	s = s.forJoin(Repartitioned[K, V]{Name: leftTopic, Key: o.Key, Value: o.Value})
	other = other.forJoin(Repartitioned[K, VOther]{Name: rightTopic, Key: o.Key, Value: o.OtherValue})
	sources := b.copartition(s.sources, other.sources)

	j := &streamJoin[K, V, VOther, VOut]{StreamJoined: o, kind: kind, f: f, windows: windows}
	j.name(&b.plan)
	b.add(j.thisWindowed, func(n *planNode, t *Topology) {
		addWindowed[K, V](t, j.thisWindowed, n.parentNames(), j.thisStore)
	}, s.node)
	b.add(j.otherWindowed, func(n *planNode, t *Topology) {
		addWindowed[K, VOther](t, j.otherWindowed, n.parentNames(), j.otherStore)
	}, other.node)
	n := b.add(j.merge, func(n *planNode, t *Topology) {
		if n.streamJoin.self {
			j.writeSelfJoin(t)
		} else {
			j.write(t)
		}
	}, s.node, other.node)
	n.streamJoin = &streamJoinPlan{otherWindowed: j.otherWindowed}
	n.takesNullKeys = kind != innerJoin
	return &KStream[K, VOut]{b: b, node: n, sources: sources, keys: o.Key}
}

// streamJoin is a planned join of streams. Each side keeps its records in a store, for
// those of the other side to find:
//
//	this  ──▶ keep ──▶ join with the other's ──┐
//	                                           ├──▶ merge
//	other ──▶ keep ──▶ join with this one's  ──┘
type streamJoin[K, V, VOther, VOut any] struct {
	StreamJoined[K, V, VOther]
	kind    joinKind
	f       func(K, V, VOther) VOut
	windows JoinWindows

	thisWindowed, otherWindowed, thisJoin, otherJoin, merge string
	thisStore, otherStore, unmatched                        StateStore
}

// name names the join's processors and stores, in Java's order.
func (j *streamJoin[K, V, VOther, VOut]) name(p *plan) {
	j.thisWindowed = p.suffixed(j.Name, "-this-windowed", windowedPrefix)
	j.otherWindowed = p.suffixed(j.Name, "-other-windowed", windowedPrefix)
	thisPrefix, thisSuffix := streamJoinThisPrefix, "-this-join"
	otherPrefix, otherSuffix := streamJoinOtherPrefix, "-other-join"
	unmatchedSuffix := "-left-shared-join"
	if j.kind == outerJoin {
		thisPrefix, thisSuffix, unmatchedSuffix = streamOuterThisPrefix, "-outer-this-join", "-outer-shared-join"
	}
	if j.kind != innerJoin {
		otherPrefix, otherSuffix = streamOuterOtherPrefix, "-outer-other-join"
	}
	this, other := p.generate(thisPrefix), p.generate(otherPrefix)
	unmatched := streamOuterSharedPrefix + strings.TrimPrefix(this, thisPrefix)
	j.thisJoin, j.otherJoin = this, other
	if j.Name != "" {
		j.thisJoin, j.otherJoin = j.Name+thisSuffix, j.Name+otherSuffix
	}
	j.merge = p.suffixed(j.Name, "-merge", mergePrefix)

	storeName := func(base, suffix, generated string) string {
		if base != "" {
			return base + suffix + joinStoreSuffix
		}
		p.generated[generated+joinStoreSuffix] = true
		return generated + joinStoreSuffix
	}
	j.thisStore = joinWindowStore(j, j.ThisStoreName, storeName(j.StoreName, thisSuffix, this), j.Value)
	j.otherStore = joinWindowStore(j, j.OtherStoreName, storeName(j.StoreName, otherSuffix, other), j.OtherValue)
	j.unmatched = newUnmatchedStore(storeName(cmp.Or(j.ThisStoreName, j.StoreName), unmatchedSuffix, unmatched), j.Key, j.Value, j.OtherValue)
	j.unmatched.Type, j.unmatched.LoggingDisabled, j.unmatched.ChangelogConfig = j.StoreType, j.LoggingDisabled, j.ChangelogConfig
}

// joinWindowStore describes the store of one side. own is the whole name that was given.
func joinWindowStore[K, V, VOther, VOut, VStore any](j *streamJoin[K, V, VOther, VOut], own, name string, values serde.Serde[VStore]) StateStore {
	s := NewWindowStore(cmp.Or(own, name), j.Key, values, state.WindowOptions{
		Size: j.windows.size(), Retention: j.windows.retention(), RetainDuplicates: true,
	})
	s.Type, s.logsHeaders = j.StoreType, true
	if own != "" {
		s.ChangelogConfig = map[string]string{"cleanup.policy": "compact,delete"} // Java's, of a store with such a name
		return s
	}
	s.LoggingDisabled, s.ChangelogConfig = j.LoggingDisabled, maps.Clone(j.ChangelogConfig)
	delete(s.ChangelogConfig, "cleanup.policy") // it isn't asked
	return s
}

// write writes the nodes of both sides and the one that they lead to.
func (j *streamJoin[K, V, VOther, VOut]) write(t *Topology) {
	w := j.windows
	before, after := w.Before.Milliseconds(), w.After.Milliseconds()
	addNode[K, V, K, VOut](t, j.thisJoin, []string{j.thisWindowed}, func(ctx *taskContext) (running, error) {
		n := &streamJoinNode[K, V, VOther, V, VOther, VOut]{
			before: before, after: after, alone: j.kind != innerJoin, left: true, join: j.f,
			one: func(v V) either[V, VOther] { return either[V, VOther]{isLeft: true, left: v} },
		}
		return n, openJoinSide(ctx, n, j, j.otherStore.Name)
	})
	addNode[K, VOther, K, VOut](t, j.otherJoin, []string{j.otherWindowed}, func(ctx *taskContext) (running, error) {
		n := &streamJoinNode[K, VOther, V, V, VOther, VOut]{
			before: after, after: before, alone: j.kind == outerJoin,
			join: func(k K, other VOther, v V) VOut { return j.f(k, v, other) },
			one:  func(v VOther) either[V, VOther] { return either[V, VOther]{right: v} },
		}
		return n, openJoinSide(ctx, n, j, j.thisStore.Name)
	})
	addNode[K, VOut, K, VOut](t, j.merge, []string{j.thisJoin, j.otherJoin}, func(*taskContext) (running, error) {
		return &transformNode[K, VOut, K, VOut]{f: func(r Record[K, VOut]) (Record[K, VOut], bool) { return r, true }}, nil
	})
	t.shareStateStore(j.otherStore, j.thisJoin)
	t.shareStateStore(j.thisStore, j.otherJoin)
	if j.kind != innerJoin {
		t.shareStateStore(j.unmatched, j.thisJoin)
		t.shareStateStore(j.unmatched, j.otherJoin)
	}
}
