package iq

import "encoding/binary"

// murmur2 is the hash of a key by which Kafka's producers choose its partition.
func murmur2(key []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := uint32(seed) ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		k = (k ^ k>>r) * m
		h = h*m ^ k
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(key[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// DefaultPartition is the partition of an encoded key, among partitions, by Kafka's
// default partitioner.
func DefaultPartition(key []byte, partitions int) int32 {
	return int32(int(murmur2(key)&0x7fffffff) % partitions)
}
