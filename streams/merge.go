package streams

// Merge is one stream of the records of both. There is no order between records
// of the one and of the other.
func (s *KStream[K, V]) Merge(other *KStream[K, V], name ...Named) *KStream[K, V] {
	given := only(s.b, "Merge", name)
	n := transform(s, s.b.name(string(given), mergePrefix), func(r Record[K, V]) (Record[K, V], bool) { return r, true })
	n.merges = true
	s.b.insert(n, other.node)
	out := s.at(n)
	out.keys, out.values = firstOf(s.keys, other.keys), firstOf(s.values, other.values)
	out.sources = union(s.sources, other.sources)
	out.rekeyed = s.rekeyed || other.rekeyed
	return out
}
