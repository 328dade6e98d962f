package streams

import (
	"encoding/binary"
	"fmt"

	"github.com/odradek-go/odradek/serde"
)

// changeSerde writes changes to a repartition topic as Java does:
//
//	new value, 1                                        only the new one
//	old value, 0                                        only the old one
//	length of the new value as a zigzag varint, new value, old value, 2
//
// It also reads the encodings 3 to 5, which end with a byte that says whether the
// change is the latest of its key, and then the number of the encoding.
type changeSerde[V any] struct{ of serde.Serde[V] }

const (
	onlyOld byte = iota
	onlyNew
	both
	onlyOldLatest
	onlyNewLatest
	bothLatest
)

func (s changeSerde[V]) Append(dst []byte, c change[V]) ([]byte, error) {
	switch {
	case c.new.ok && c.old.ok:
		// Behind room for the length, which is known afterwards.
		start := len(dst)
		buf, err := s.of.Append(append(dst, make([]byte, binary.MaxVarintLen32)...), c.new.v)
		if err != nil || buf == nil {
			return nil, s.null(err)
		}
		size := len(buf) - start - binary.MaxVarintLen32
		head := binary.AppendVarint(buf[:start], int64(size))
		value := buf[start+binary.MaxVarintLen32:]
		buf = append(head, value...)
		if buf, err = s.of.Append(buf, c.old.v); err != nil || buf == nil {
			return nil, s.null(err)
		}
		return append(buf, both), nil
	case c.new.ok:
		return s.single(dst, c.new.v, onlyNew)
	case c.old.ok:
		return s.single(dst, c.old.v, onlyOld)
	}
	return nil, fmt.Errorf("a change has neither an old nor a new value")
}

func (s changeSerde[V]) single(dst []byte, v V, encoding byte) ([]byte, error) {
	buf, err := s.of.Append(dst, v)
	if err != nil || buf == nil {
		return nil, s.null(err)
	}
	return append(buf, encoding), nil
}

func (changeSerde[V]) null(err error) error {
	if err == nil {
		err = fmt.Errorf("the serde writes a value as null that is not nil")
	}
	return err
}

func (s changeSerde[V]) Decode(data []byte) (c change[V], err error) {
	if len(data) == 0 {
		return c, fmt.Errorf("a change is empty")
	}
	encoding := data[len(data)-1]
	values := data[:len(data)-1]
	if encoding >= onlyOldLatest {
		if len(values) == 0 {
			return c, fmt.Errorf("a change ends after its encoding %d", encoding)
		}
		values = values[:len(values)-1]
	}
	switch encoding {
	case onlyNew, onlyNewLatest:
		c.new, err = s.decode(values)
	case onlyOld, onlyOldLatest:
		c.old, err = s.decode(values)
	case both, bothLatest:
		size, n := binary.Varint(values)
		if n <= 0 || size < 0 || size > int64(len(values)-n) {
			return c, fmt.Errorf("a change has a new value of %d bytes in %d", size, len(values))
		}
		if c.new, err = s.decode(values[n : n+int(size)]); err == nil {
			c.old, err = s.decode(values[n+int(size):])
		}
	default:
		return c, fmt.Errorf("a change has the unknown encoding %d", encoding)
	}
	return c, err
}

func (s changeSerde[V]) decode(data []byte) (v nullable[V], err error) {
	v.v, err = s.of.Decode(data)
	return nullable[V]{v.v, err == nil}, err
}
