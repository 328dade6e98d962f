package javahash

import (
	"slices"
	"unicode/utf16"
)

// String is Java's String.hashCode.
func String(s string) int32 {
	var h int32
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(unit)
	}
	return h
}

// Bytes is Java's Arrays.hashCode of a byte array.
func Bytes[B ~string | ~[]byte](b B) int32 {
	h := int32(1)
	for i := range len(b) {
		h = 31*h + int32(int8(b[i]))
	}
	return h
}

// Order returns elements in the order in which a HashSet or HashMap gives them out
// to which they were added one by one.
func Order[T any](elements []T, hash func(T) int32) []T {
	elements = slices.Clone(elements)
	Sort(new(Table), elements, hash)
	return elements
}

// Strings is [Order] for strings.
func Strings(elements []string) []string { return Order(elements, String) }

// Table is the number of buckets of a HashSet or HashMap, which grows with what is
// in it and never shrinks; 0 is a new one.
type Table int

// Sort sorts all elements of a table, in the order in which they were added, to that
// in which the table gives them out.
func Sort[T any](t *Table, elements []T, hash func(T) int32) {
	*t = max(*t, 16)
	for len(elements) > int(*t)/4*3 {
		*t *= 2
	}
	bucket := func(e T) int {
		h := uint32(hash(e))
		return int(h^h>>16) & int(*t-1)
	}
	slices.SortStableFunc(elements, func(a, b T) int { return bucket(a) - bucket(b) })
}
