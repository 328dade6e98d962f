package streams

// KeyValue is a key and its value.
type KeyValue[K, V any] struct {
	Key   K
	Value V
}

// Map turns each record into the one whose key and value f returns. Nil is null.
func Map[K, V, KOut, VOut any](s *KStream[K, V], f func(K, V) (KOut, VOut), name ...Named) *KStream[KOut, VOut] {
	given := only(s.b, "Map", name)
	s.b.needs("Map", s.node, f)
	nulls := newNulls[KOut, VOut]()
	return keysAt[K, V, KOut, VOut](s, transform(s, s.b.name(string(given), mapPrefix), func(r Record[K, V]) (Record[KOut, VOut], bool) {
		k, v := f(r.Key, r.Value)
		return nulls.record(k, v, r.Timestamp, r.Headers), true
	}))
}

// MapValues gives each record the value that f returns for its value. Nil is null.
func MapValues[K, V, VOut any](s *KStream[K, V], f func(V) VOut, name ...Named) *KStream[K, VOut] {
	s.b.needs("MapValues", s.node, f)
	return MapValuesWithKey(s, func(_ K, v V) VOut { return f(v) }, name...)
}

// MapValuesWithKey is [MapValues] with a function that sees the key, which it must
// not change.
func MapValuesWithKey[K, V, VOut any](s *KStream[K, V], f func(K, V) VOut, name ...Named) *KStream[K, VOut] {
	given := only(s.b, "MapValues", name)
	s.b.needs("MapValuesWithKey", s.node, f)
	isNil := nilCheck[VOut]()
	return valuesAt[K, V, VOut](s, transform(s, s.b.name(string(given), mapValuesPrefix), func(r Record[K, V]) (Record[K, VOut], bool) {
		return withNullable(r, f(r.Key, r.Value), isNil), true
	}))
}

// SelectKey gives each record the key that f returns for it. Nil is null.
func SelectKey[K, V, KOut any](s *KStream[K, V], f func(K, V) KOut, name ...Named) *KStream[KOut, V] {
	s.b.needs("SelectKey", s.node, f)
	return selectKey(s, f, string(only(s.b, "SelectKey", name)))
}

func selectKey[K, V, KOut any](s *KStream[K, V], f func(K, V) KOut, given string) *KStream[KOut, V] {
	isNil := nilCheck[KOut]()
	out := keysAt[K, V, KOut, V](s, transform(s, s.b.name(given, keySelectPrefix), func(r Record[K, V]) (Record[KOut, V], bool) {
		key := f(r.Key, r.Value)
		return Record[KOut, V]{
			Key: key, KeyNull: isNil != nil && isNil(key),
			Value: r.Value, ValueNull: r.ValueNull,
			Timestamp: r.Timestamp, Headers: r.Headers,
		}, true
	}))
	out.values = s.values
	return out
}

// FlatMap turns each record into those that f returns for it, in their order. Nil
// keys and values are null.
func FlatMap[K, V, KOut, VOut any](s *KStream[K, V], f func(K, V) []KeyValue[KOut, VOut], name ...Named) *KStream[KOut, VOut] {
	given := only(s.b, "FlatMap", name)
	s.b.needs("FlatMap", s.node, f)
	n := operator[K, V, KOut, VOut](s, s.b.name(string(given), flatMapPrefix), func(*taskContext) (running, error) {
		return &flatMapNode[K, V, KOut, VOut]{f: f, nulls: newNulls[KOut, VOut]()}, nil
	})
	return keysAt[K, V, KOut, VOut](s, n)
}

type flatMapNode[K, V, KOut, VOut any] struct {
	emitter[KOut, VOut]
	f     func(K, V) []KeyValue[KOut, VOut]
	nulls nulls[KOut, VOut]
}

func (n *flatMapNode[K, V, KOut, VOut]) receive(r Record[K, V]) error {
	for _, kv := range n.f(r.Key, r.Value) {
		if err := n.forward(n.nulls.record(kv.Key, kv.Value, r.Timestamp, r.Headers)); err != nil {
			return err
		}
	}
	return nil
}

// FlatMapValues turns each record into one for each of the values that f returns
// for its value, in their order. Nil is null.
func FlatMapValues[K, V, VOut any](s *KStream[K, V], f func(V) []VOut, name ...Named) *KStream[K, VOut] {
	s.b.needs("FlatMapValues", s.node, f)
	return FlatMapValuesWithKey(s, func(_ K, v V) []VOut { return f(v) }, name...)
}

// FlatMapValuesWithKey is [FlatMapValues] with a function that sees the key, which
// it must not change.
func FlatMapValuesWithKey[K, V, VOut any](s *KStream[K, V], f func(K, V) []VOut, name ...Named) *KStream[K, VOut] {
	given := only(s.b, "FlatMapValues", name)
	s.b.needs("FlatMapValuesWithKey", s.node, f)
	n := operator[K, V, K, VOut](s, s.b.name(string(given), flatMapValuesPrefix), func(*taskContext) (running, error) {
		return &flatMapValuesNode[K, V, VOut]{f: f, isNil: nilCheck[VOut]()}, nil
	})
	return valuesAt[K, V, VOut](s, n)
}

type flatMapValuesNode[K, V, VOut any] struct {
	emitter[K, VOut]
	f     func(K, V) []VOut
	isNil func(VOut) bool
}

func (n *flatMapValuesNode[K, V, VOut]) receive(r Record[K, V]) error {
	for _, v := range n.f(r.Key, r.Value) {
		if err := n.forward(withNullable(r, v, n.isNil)); err != nil {
			return err
		}
	}
	return nil
}
