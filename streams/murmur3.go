package streams

import (
	"encoding/binary"
	"math/bits"
)

// hash128 is MurmurHash3_x64_128 with the seed of Java's Murmur3.hash128: what
// members of a foreign-key join, in Go or Java, know a value by.
type hash128 [2]uint64

const (
	murmurSeed = 104729
	murmurC1   = 0x87c37b91114253d5
	murmurC2   = 0x4cf5ad432745937f
)

func murmur3(data []byte) hash128 {
	h1, h2 := uint64(murmurSeed), uint64(murmurSeed)
	rest := data
	for ; len(rest) >= 16; rest = rest[16:] {
		h1 ^= murmurMix1(binary.LittleEndian.Uint64(rest))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= murmurMix2(binary.LittleEndian.Uint64(rest[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte // what is not there counts as zero
	copy(tail[:], rest)
	h1 ^= murmurMix1(binary.LittleEndian.Uint64(tail[:])) ^ uint64(len(data))
	h2 ^= murmurMix2(binary.LittleEndian.Uint64(tail[8:])) ^ uint64(len(data))
	h1 += h2
	h2 += h1
	h1, h2 = murmurFinish(h1), murmurFinish(h2)
	h1 += h2
	return hash128{h1, h2 + h1}
}

func murmurMix1(k uint64) uint64 { return bits.RotateLeft64(k*murmurC1, 31) * murmurC2 }
func murmurMix2(k uint64) uint64 { return bits.RotateLeft64(k*murmurC2, 33) * murmurC1 }

func murmurFinish(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
