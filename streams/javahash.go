package streams

import (
	"slices"
	"unicode/utf16"
)

// Some orders in what Java sends and prints are those of a HashSet of strings. The
// coordinator compares topologies in that order, so it has to be the same here.

// stringHash is Java's String.hashCode.
func stringHash(s string) int32 {
	var h int32
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(unit)
	}
	return h
}

// hashOrder sorts elements as they come out of a Java HashSet or HashMap to which
// they were added one by one.
func hashOrder[T any](elements []T, hash func(T) int32) []T {
	size := 16
	for len(elements) > size/4*3 {
		size *= 2
	}
	bucket := func(e T) int {
		h := uint32(hash(e))
		return int(h^h>>16) & (size - 1)
	}
	elements = slices.Clone(elements)
	slices.SortStableFunc(elements, func(a, b T) int { return bucket(a) - bucket(b) })
	return elements
}

// hashSet is hashOrder for strings.
func hashSet(elements []string) []string { return hashOrder(elements, stringHash) }
