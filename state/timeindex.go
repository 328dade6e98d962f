package state

import "encoding/binary"

// What emits windows when they close asks again and again which entries are of some
// short time, whatever their keys. Where entries are also looked for by key, an index
// by time answers that. It has an empty entry for each of the store, with a key that
// begins with the times:
//
//	entry   segment, key, times
//	index   segment, times, key
//
// The index of each segment lies right behind the segment's entries, so that both
// are dropped together. It doesn't know what is in a cache: a store has the one or
// the other.

// appendIndex appends the key in the index of an entry with that key.
func (s *segments) appendIndex(dst, entry []byte) []byte {
	n := len(entry) - s.suffixSize
	dst = binary.BigEndian.AppendUint64(dst, binary.BigEndian.Uint64(entry)+1)
	return append(append(dst, entry[n:]...), entry[segmentSize:n]...)
}

// appendIndexed appends the key of the entry that has that key in the index.
func (s *segments) appendIndexed(dst, index []byte) []byte {
	n := segmentSize + s.suffixSize
	dst = binary.BigEndian.AppendUint64(dst, binary.BigEndian.Uint64(index)-1)
	return append(append(dst, index[n:]...), index[segmentSize:n]...)
}

// indexBounds appends those between which the index of a segment has what is of the
// times of a span.
func (s *segments) indexBounds(lo, hi []byte, segment int64, sp *span) ([]byte, []byte) {
	lo = binary.BigEndian.AppendUint64(lo, s.prefix(segment)+1)
	hi = append(hi, lo...)
	lo = binary.BigEndian.AppendUint64(lo, uint64(sp.earliest))
	return lo, binary.BigEndian.AppendUint64(hi, uint64(sp.latest)+1)
}

// putIndex keeps the index in step with a change of an entry.
func (b *backing) putIndex(entry, value []byte) error {
	b.windows.index = b.windows.appendIndex(b.windows.index[:0], entry)
	if value != nil {
		value = []byte{}
	}
	return b.engine.Put(b.windows.index, value)
}
