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
// version in a header; a tombstone has no headers.
const (
	bufferVersionHeader = "v"
	bufferVersion       = 3
	asPrior             = -2
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

// size is about how much memory it takes, as Java estimates it.
func (c *bufferedChange) size() int64 {
	n := 8 + len(c.key) + len(c.prior) + len(c.new)
	if !c.oldIsPrior() {
		n += len(c.old)
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
