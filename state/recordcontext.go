package state

import (
	"encoding/binary"
	"errors"
)

// RecordContext is where a record comes from. Stores that hold records back, to
// send them on later, keep it with them.
type RecordContext struct {
	// Topic, Partition and Offset are those of the record of a source topic
	// that was being processed.
	Topic     string
	Partition int32
	Offset    int64

	// Timestamp, in milliseconds, and Headers are the record's own, which
	// processors may have changed.
	Timestamp int64
	Headers   []Header
}

// append appends the encoding of Java's ProcessorRecordContext: timestamp, offset,
// topic, partition, number of headers, and of each the key and the value. Strings
// and values have their length in 4 bytes before them, −1 for null.
func (c *RecordContext) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Timestamp))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Offset))
	dst = appendSized(dst, c.Topic)
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Partition))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.Headers)))
	for _, h := range c.Headers {
		dst = appendNullable(appendSized(dst, h.Key), h.Value)
	}
	return dst
}

// size is about how much memory it takes, as Java estimates it.
func (c *RecordContext) size() int64 {
	n := 8 + 8 + units(c.Topic) + 4
	for _, h := range c.Headers {
		n += units(h.Key) + int64(len(h.Value))
	}
	return n
}

// units is the length of a string in Java.
func units(s string) (n int64) {
	for _, r := range s {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// null is the length of what is null.
const null = -1

func appendSized[B ~string | ~[]byte](dst []byte, b B) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), b...)
}

func appendNullable(dst, b []byte) []byte {
	if b == nil {
		return appendLength(dst, null)
	}
	return appendSized(dst, b)
}

func appendLength(dst []byte, n int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(n)) }

// fields reads an encoding field by field.
type fields struct {
	b   []byte
	err error
}

var errShort = errors.New("it ends too early")

func (f *fields) take(n int) []byte {
	if f.err == nil && n > len(f.b) {
		f.err = errShort
	}
	if f.err != nil {
		return make([]byte, min(n, 8))
	}
	b := f.b[:n:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) int32() int32 { return int32(binary.BigEndian.Uint32(f.take(4))) }
func (f *fields) int64() int64 { return int64(binary.BigEndian.Uint64(f.take(8))) }

// nullable is what appendNullable wrote.
func (f *fields) nullable() []byte { return f.sized(f.int32()) }

// sized is what has a length that was read before.
func (f *fields) sized(n int32) []byte {
	if n < null && f.err == nil {
		f.err = errors.New("it has a negative length")
	}
	if n == null || f.err != nil {
		return nil
	}
	return f.take(int(n))
}

// context is what RecordContext.append wrote.
func (f *fields) context() (c RecordContext) {
	c.Timestamp, c.Offset = f.int64(), f.int64()
	c.Topic = string(f.nullable())
	c.Partition = f.int32()
	n := f.int32()
	if n != null && (n < 0 || int(n) > len(f.b)/8) && f.err == nil {
		f.err = errShort
	}
	for range n {
		if f.err != nil {
			break
		}
		c.Headers = append(c.Headers, Header{Key: string(f.nullable()), Value: f.nullable()})
	}
	return c
}
