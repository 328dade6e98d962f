package streams

// Filter keeps the records for which keep returns true.
func (s *KStream[K, V]) Filter(keep func(K, V) bool, name ...Named) *KStream[K, V] {
	given := only(s.b, "Filter", name)
	s.b.needs("Filter", s.node, keep)
	return s.at(transform(s, s.b.name(string(given), filterPrefix), func(r Record[K, V]) (Record[K, V], bool) {
		return r, keep(r.Key, r.Value)
	}))
}

// FilterNot drops the records for which drop returns true.
func (s *KStream[K, V]) FilterNot(drop func(K, V) bool, name ...Named) *KStream[K, V] {
	s.b.needs("FilterNot", s.node, drop)
	return s.Filter(func(k K, v V) bool { return !drop(k, v) }, name...)
}

// Peek calls f for each record and sends it on.
func (s *KStream[K, V]) Peek(f func(K, V), name ...Named) *KStream[K, V] {
	given := only(s.b, "Peek", name)
	s.b.needs("Peek", s.node, f)
	return s.at(transform(s, s.b.name(string(given), peekPrefix), func(r Record[K, V]) (Record[K, V], bool) {
		f(r.Key, r.Value)
		return r, true
	}))
}

// ForEach calls f for each record, and that is the end of it.
func (s *KStream[K, V]) ForEach(f func(K, V), name ...Named) {
	given := only(s.b, "ForEach", name)
	s.b.needs("ForEach", s.node, f)
	transform(s, s.b.name(string(given), forEachPrefix), func(r Record[K, V]) (Record[K, V], bool) {
		f(r.Key, r.Value)
		return r, false
	})
}
