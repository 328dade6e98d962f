package state

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// A store with headers (KIP-1271) keeps the headers of each value before its
// timestamp and its encoding, as Java Kafka Streams does: their length, their number,
// and for each the key and the value with their lengths before them, all as zigzag
// varints, −1 for null and nothing but the length where there are none.

// headersNote is remembered with the checkpoints of stores with headers. Data without
// it is laid out in another way.
var headersNote = []byte{1}

var errHeaders = errors.New("its headers can't be read")

// appendHeaders appends the headers of a value.
func appendHeaders(dst []byte, headers []Header) []byte {
	if len(headers) == 0 {
		return append(dst, 0)
	}
	n := varintSize(len(headers))
	for _, h := range headers {
		n += varintSize(len(h.Key)) + len(h.Key) + varintSize(len(h.Value)) + len(h.Value)
	}
	dst = binary.AppendVarint(dst, int64(n))
	dst = binary.AppendVarint(dst, int64(len(headers)))
	for _, h := range headers {
		dst = append(binary.AppendVarint(dst, int64(len(h.Key))), h.Key...)
		if h.Value == nil {
			dst = binary.AppendVarint(dst, null)
			continue
		}
		dst = append(binary.AppendVarint(dst, int64(len(h.Value))), h.Value...)
	}
	return dst
}

// varintSize is how many bytes a length takes; that of null, −1, takes one as 0 does.
func varintSize(length int) (n int) {
	for u := uint64(length) << 1; ; u >>= 7 {
		if n++; u < 0x80 {
			return n
		}
	}
}

// cutHeaders divides what a store has into the headers, without their length, and the
// rest.
func cutHeaders(raw []byte) (headers, rest []byte, err error) {
	length, n := binary.Varint(raw)
	if n <= 0 || length < 0 || length > int64(len(raw)-n) {
		return nil, nil, errHeaders
	}
	end := n + int(length)
	return raw[n:end], raw[end:], nil
}

// readHeaders reads the headers of what a store has, nil where there are none.
func readHeaders(raw []byte) ([]Header, error) {
	b, _, err := cutHeaders(raw)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	failed := false
	length := func() int64 {
		v, n := binary.Varint(b)
		if n <= 0 || v > int64(len(b)-n) {
			failed = true
			return 0
		}
		b = b[n:]
		return v
	}
	bytesOf := func() (v []byte) {
		n := length()
		if n < 0 {
			return nil
		}
		v, b = append([]byte{}, b[:n]...), b[n:]
		return v
	}
	headers := make([]Header, 0, max(length(), 0))
	for range cap(headers) {
		headers = append(headers, Header{Key: string(bytesOf()), Value: bytesOf()})
	}
	if failed {
		return nil, errHeaders
	}
	return headers, nil
}

// enableHeaders makes a store keep the headers of its values.
func (b *backing) enableHeaders(of *bool) { b.headers, *of = true, true }

// EnableHeaders makes the store keep the headers of each value (KIP-1271). It must be
// called before the store is opened. Data on disk that has no headers yet is thrown
// away and restored from the changelog, and so is data with headers in a store
// without.
func (s *TimestampedKeyValue[K, V]) EnableHeaders() { s.enableHeaders(&s.codec.headers) }

// EnableHeaders makes the store keep the headers of each value: see
// [TimestampedKeyValue.EnableHeaders].
func (s *Window[K, V]) EnableHeaders() { s.enableHeaders(&s.codec.headers) }

// EnableHeaders makes the store keep the headers of each value: see
// [TimestampedKeyValue.EnableHeaders].
func (s *Session[K, V]) EnableHeaders() { s.enableHeaders(&s.codec.headers) }

// note is what must be remembered with a checkpoint.
func (b *backing) note() (note []byte) {
	if b.windows != nil {
		note = b.windows.note()
	}
	if b.headers {
		note = append(note, headersNote...)
	}
	return note
}

// recall begins where a note was taken, or anew where there is none. It is false
// for a note that doesn't fit: the data is laid out in another way.
func (b *backing) recall(note []byte) bool {
	fits := true
	if b.headers {
		note, fits = bytes.CutSuffix(note, headersNote)
	} else if b.windows == nil {
		fits = !bytes.Equal(note, headersNote)
	}
	if b.windows != nil {
		fits = b.windows.recall(note) && fits
	}
	return fits
}
