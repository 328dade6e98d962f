package streams

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/odradek-go/odradek/serde"
)

// subscription is what the left side of a foreign-key join tells the right side:
// that the entry with a key is to be joined with a foreign key's, or no longer.
type subscription[K any] struct {
	key         K
	hash        nullable[hash128] // of the left value; null where there is none
	instruction instruction
	version     byte
	partition   int32 // of the left side, where the response goes; from version 1 on
}

// instruction is what the right side is to do with a subscription.
type instruction byte

// The instructions, with Java's numbers.
const (
	deleteNoPropagate  instruction = iota // end it, and say nothing
	deletePropagate                       // end it, and say so
	propagateNull                         // keep it, and say what it finds, even if it is nothing
	propagateAvailable                    // keep it, and say what it finds, if there is something
)

// deletes says whether the subscription ends.
func (i instruction) deletes() bool { return i == deleteNoPropagate || i == deletePropagate }

const subscriptionVersion = 1

// response is what the right side answers. It has the hash of the left value that
// it is an answer to: what is outdated when it arrives is dropped.
type response[V any] struct {
	hash      nullable[hash128]
	value     nullable[V] // of the foreign key
	partition int32       // to send it to, or AnyPartition; not written
}

// A version's highest bit says that there is no hash.
const hashIsNull = 0x80

func withHash(version byte, hash nullable[hash128]) byte {
	if !hash.ok {
		version |= hashIsNull
	}
	return version
}

func appendHash(dst []byte, hash nullable[hash128]) []byte {
	if !hash.ok {
		return dst
	}
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, hash.v[0]), hash.v[1])
}

// splitHash takes the hash off data whose first byte has been read.
func splitHash(first byte, data []byte) (hash nullable[hash128], rest []byte, err error) {
	if first&hashIsNull != 0 {
		return hash, data, nil
	}
	if len(data) < 16 {
		return hash, nil, io.ErrUnexpectedEOF
	}
	h := hash128{binary.BigEndian.Uint64(data), binary.BigEndian.Uint64(data[8:])}
	return nullable[hash128]{h, true}, data[16:], nil
}

// subscriptionSerde writes subscriptions as Java's SubscriptionWrapperSerde does:
//
//	version, instruction, hash in 16 bytes unless it is null, key, partition in 4
//
// Version 0 has no partition.
type subscriptionSerde[K any] struct{ keys serde.Serde[K] }

func (s subscriptionSerde[K]) Append(dst []byte, v subscription[K]) ([]byte, error) {
	dst = appendHash(append(dst, withHash(v.version, v.hash), byte(v.instruction)), v.hash)
	dst, err := appendPart(dst, s.keys, v.key)
	if err == nil && v.version > 0 {
		dst = binary.BigEndian.AppendUint32(dst, uint32(v.partition))
	}
	return dst, err
}

func (s subscriptionSerde[K]) Decode(data []byte) (v subscription[K], err error) {
	if len(data) < 2 {
		return v, fmt.Errorf("a subscription has %d bytes", len(data))
	}
	v.version, v.instruction, v.partition = data[0]&^hashIsNull, instruction(data[1]), AnyPartition
	if v.version > subscriptionVersion || v.instruction > propagateAvailable {
		return v, fmt.Errorf("a subscription has version %d and instruction %d, which are not known", v.version, v.instruction)
	}
	var key []byte
	if v.hash, key, err = splitHash(data[0], data[2:]); err != nil {
		return v, fmt.Errorf("a subscription's hash: %w", err)
	}
	if v.version > 0 {
		n := len(key) - 4
		if n < 0 {
			return v, fmt.Errorf("a subscription's partition: %w", io.ErrUnexpectedEOF)
		}
		v.partition = int32(binary.BigEndian.Uint32(key[n:]))
		key = key[:n:n]
	}
	v.key, err = s.keys.Decode(key)
	return v, err
}

// responseSerde writes responses as Java's SubscriptionResponseWrapperSerde does:
//
//	version 0, hash in 16 bytes unless it is null, value
//
// A value without any bytes is read as null, as in Java.
type responseSerde[V any] struct{ values serde.Serde[V] }

func (s responseSerde[V]) Append(dst []byte, v response[V]) ([]byte, error) {
	dst = appendHash(append(dst, withHash(0, v.hash)), v.hash)
	if !v.value.ok {
		return dst, nil
	}
	return appendPart(dst, s.values, v.value.v)
}

func (s responseSerde[V]) Decode(data []byte) (v response[V], err error) {
	if len(data) == 0 || data[0]&^hashIsNull != 0 {
		return v, fmt.Errorf("a response does not begin with the version 0")
	}
	v.partition = AnyPartition
	if v.hash, data, err = splitHash(data[0], data[1:]); err != nil || len(data) == 0 {
		return v, err
	}
	v.value.v, err = s.values.Decode(data)
	v.value.ok = err == nil
	return v, err
}

// combinedKey is the key of a subscription in the store of the right side.
type combinedKey[KOther, K any] struct {
	foreign nullable[KOther] // null is not stored
	primary K
}

// combinedKeySerde writes combined keys as Java's CombinedKeySchema does: the length
// of the foreign key in 4 bytes, the foreign key and the primary key.
type combinedKeySerde[KOther, K any] struct {
	foreign serde.Serde[KOther]
	primary serde.Serde[K]
}

func (s combinedKeySerde[KOther, K]) Append(dst []byte, k combinedKey[KOther, K]) ([]byte, error) {
	dst, err := s.appendPrefix(dst, k.foreign.v)
	if err != nil {
		return nil, err
	}
	return appendPart(dst, s.primary, k.primary)
}

// appendPrefix appends what all keys with the foreign key begin with.
func (s combinedKeySerde[KOther, K]) appendPrefix(dst []byte, foreign KOther) ([]byte, error) {
	begin := len(dst) + 4
	dst, err := appendPart(append(dst, 0, 0, 0, 0), s.foreign, foreign)
	if err == nil {
		binary.BigEndian.PutUint32(dst[begin-4:], uint32(len(dst)-begin))
	}
	return dst, err
}

func (s combinedKeySerde[KOther, K]) Decode(data []byte) (k combinedKey[KOther, K], err error) {
	if len(data) < 4 {
		return k, io.ErrUnexpectedEOF
	}
	n, keys := binary.BigEndian.Uint32(data), data[4:]
	if uint64(n) > uint64(len(keys)) {
		return k, fmt.Errorf("a combined key has a foreign key of %d bytes in %d", n, len(keys))
	}
	if k.foreign.v, err = s.foreign.Decode(keys[:n:n]); err != nil {
		return k, err
	}
	k.foreign.ok = true
	k.primary, err = s.primary.Decode(keys[n:])
	return k, err
}

// appendPart appends what must not be null.
func appendPart[T any](dst []byte, s serde.Serde[T], v T) ([]byte, error) {
	dst, err := s.Append(dst, v)
	if err == nil && dst == nil {
		err = fmt.Errorf("the serde writes a %T as null, which can't be joined", v)
	}
	return dst, err
}
