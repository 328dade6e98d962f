package streams

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// either is a value of one of the sides of a join of streams.
type either[V, VOther any] struct {
	isLeft bool
	left   V
	right  VOther
}

// unmatchedKey is the key of records that have found no other yet, in the order of
// time.
type unmatchedKey[K any] struct {
	timestamp int64
	left      bool // they are of the left side
	key       K
}

// unmatchedStore keeps the records of a left or outer join that have found no other
// yet. Records with one key, time and side share an entry.
type unmatchedStore[K, V, VOther any] = *state.KeyValue[unmatchedKey[K], []either[V, VOther]]

func newUnmatchedStore[K, V, VOther any](name string, keys serde.Serde[K], values serde.Serde[V], others serde.Serde[VOther]) StateStore {
	return NewKeyValueStore[unmatchedKey[K], []either[V, VOther]](name, unmatchedKeySerde[K]{keys}, serde.List(serde.Serde[either[V, VOther]](eitherSerde[V, VOther]{values, others})))
}

// unmatchedKeySerde writes keys as Java's TimestampedKeyAndJoinSideSerde does: the
// time in 8 bytes, 1 for the left side or 0, and the key.
type unmatchedKeySerde[K any] struct{ keys serde.Serde[K] }

const unmatchedKeyHead = 9

func (s unmatchedKeySerde[K]) Append(dst []byte, k unmatchedKey[K]) ([]byte, error) {
	dst = binary.BigEndian.AppendUint64(dst, uint64(k.timestamp))
	return appendPart(append(dst, sideByte(k.left)), s.keys, k.key)
}

func (s unmatchedKeySerde[K]) Decode(data []byte) (k unmatchedKey[K], err error) {
	if len(data) < unmatchedKeyHead {
		return k, io.ErrUnexpectedEOF
	}
	k.timestamp, k.left = int64(binary.BigEndian.Uint64(data)), data[unmatchedKeyHead-1] == 1
	k.key, err = s.keys.Decode(data[unmatchedKeyHead:])
	return k, err
}

// eitherSerde writes values as Java's LeftOrRightValueSerde does: 1 for the left side
// or 0, and the value.
type eitherSerde[V, VOther any] struct {
	left  serde.Serde[V]
	right serde.Serde[VOther]
}

func (s eitherSerde[V, VOther]) Append(dst []byte, v either[V, VOther]) ([]byte, error) {
	dst = append(dst, sideByte(v.isLeft))
	if v.isLeft {
		return appendPart(dst, s.left, v.left)
	}
	return appendPart(dst, s.right, v.right)
}

func (s eitherSerde[V, VOther]) Decode(data []byte) (v either[V, VOther], err error) {
	if len(data) == 0 {
		return v, fmt.Errorf("a value of a join doesn't say of which side it is")
	}
	if v.isLeft = data[0] == 1; v.isLeft {
		v.left, err = s.left.Decode(data[1:])
	} else {
		v.right, err = s.right.Decode(data[1:])
	}
	return v, err
}

func sideByte(left bool) byte {
	if left {
		return 1
	}
	return 0
}
