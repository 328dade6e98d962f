package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The changelog of a [ChangeBuffer] has the key's encoding, and as value, as Java
// writes it since 2.5:
//
//	record context                 see RecordContext.append
//	length in 4 bytes, prior value
//	length in 4 bytes, old value   −2 and nothing more where it equals the prior one
//	length in 4 bytes, new value
//	time in 8 bytes
//
// A length of −1 stands for no value. The record has no timestamp of its own, and the
// version in a header; a tombstone has no headers. In a buffer with headers there is
// one more for the prior value, unless it is the old one, and one for the old value,
// which say where they came from.
const (
	bufferVersionHeader = "v"
	bufferVersion       = 3
	asPrior             = -2

	priorOriginHeader = "vh.prior"
	oldOriginHeader   = "vh.old"
)

var bufferHeaders = []Header{{Key: bufferVersionHeader, Value: []byte{bufferVersion}}}

func (c *bufferedChange) append(dst []byte) []byte {
	dst = appendNullable(c.from.append(dst), c.prior)
	if c.old != nil && c.oldIsPrior() {
		dst = appendLength(dst, asPrior)
	} else {
		dst = appendNullable(dst, c.old)
	}
	return binary.BigEndian.AppendUint64(appendNullable(dst, c.new), uint64(c.time))
}

func (c *bufferedChange) oldIsPrior() bool {
	return (c.old == nil) == (c.prior == nil) && bytes.Equal(c.old, c.prior)
}

// sameOrigin says whether the old value is the prior one, and came from the same.
func (c *bufferedChange) sameOrigin() bool {
	return c.oldIsPrior() && bytes.Equal(c.oldOrigin, c.priorOrigin)
}

// headers are those of the record.
func (c *bufferedChange) headers(origins bool) []Header {
	if !origins {
		return bufferHeaders
	}
	headers := append(make([]Header, 0, 3), bufferHeaders...)
	if c.prior != nil && !c.sameOrigin() {
		headers = append(headers, Header{Key: priorOriginHeader, Value: c.priorOrigin})
	}
	if c.old != nil {
		headers = append(headers, Header{Key: oldOriginHeader, Value: c.oldOrigin})
	}
	return headers
}

// setOrigins takes from the headers of a record where its values came from. Where
// they don't say it, it is the change itself, without headers.
func (c *bufferedChange) setOrigins(headers []Header) {
	find := func(value []byte, key string) []byte {
		if value == nil {
			return nil
		}
		for _, h := range headers {
			if h.Key == key {
				return bytes.Clone(h.Value)
			}
		}
		return nil
	}
	itself := appendOrigin(nil, RecordContext{Timestamp: c.from.Timestamp})
	if c.oldOrigin = find(c.old, oldOriginHeader); c.oldOrigin == nil && c.old != nil {
		c.oldOrigin = itself
	}
	switch c.priorOrigin = find(c.prior, priorOriginHeader); {
	case c.priorOrigin != nil || c.prior == nil:
	case c.oldIsPrior():
		c.priorOrigin = c.oldOrigin
	default:
		c.priorOrigin = itself
	}
}

// origin is where the value comes from that the next change has as its old one.
func (c *bufferedChange) origin() RecordContext {
	if c == nil || c.new == nil {
		return RecordContext{Timestamp: -1}
	}
	return c.from
}

// appendOrigin appends headers and timestamp of a value, as in stores with headers.
func appendOrigin(dst []byte, c RecordContext) []byte {
	return binary.BigEndian.AppendUint64(appendHeaders(dst, c.Headers), uint64(c.Timestamp))
}

// size is about how much memory it takes, as Java estimates it.
func (c *bufferedChange) size(origins bool) int64 {
	n := 8 + len(c.key) + len(c.prior) + len(c.priorOrigin) + len(c.new)
	if !c.sameOrigin() {
		n += len(c.old) + len(c.oldOrigin)
	}
	if origins && c.new != nil {
		n += len(appendOrigin(nil, c.from))
	}
	return int64(n) + c.from.size()
}

// decodeBufferedChange decodes a value, which it keeps.
func decodeBufferedChange(key string, value []byte) (*bufferedChange, error) {
	f := fields{b: value}
	c := &bufferedChange{key: key, from: f.context()}
	c.prior = f.nullable()
	if n := f.int32(); n == asPrior {
		c.old = c.prior
	} else {
		c.old = f.sized(n)
	}
	c.new = f.nullable()
	c.time = f.int64()
	if f.err != nil {
		return nil, fmt.Errorf("%d bytes are no change that was held back: %w", len(value), f.err)
	}
	return c, nil
}

func checkBufferVersion(headers []Header) error {
	var version []byte
	for _, h := range headers {
		if h.Key == bufferVersionHeader {
			version = h.Value
		}
	}
	if len(version) == 1 && version[0] == bufferVersion {
		return nil
	}
	return fmt.Errorf("the record has the version %v in its header %q, only %d is known: it is no suppression's, or one's of Kafka Streams before 2.5, which must be reset",
		version, bufferVersionHeader, bufferVersion)
}
