package serde

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// List returns the serde of a list: Serdes.ListSerde (KIP-466). A nil slice is
// null, an empty one is not. Lists of [Int16], [Int32], [Int64], [Float32],
// [Float64] and [UUID], and of pointers to these, are written without the
// length of each element, all others with it, as in Java.
//
// An element is null where inner writes it as null: List(Pointer(Int64)) is a
// list with nulls. Reading a null into a type that can't be null is an error.
// Bytes after the last element are ignored, as in Java.
func List[T any](inner Serde[T]) Serde[[]T] { return listSerde[T]{inner, fixedSize(inner)} }

// The first byte of a list: ordinals of Java's Serdes.ListSerde.SerializationStrategy.
const (
	constantSize byte = iota // elements have no lengths, indexes of nulls come first
	variableSize             // the length of each element precedes it, -1 is null
)

// fixedSize returns the size in bytes of every element that s writes, where
// Java's ListSerializer.FIXED_LENGTH_SERIALIZERS has its type, and otherwise 0.
// A bool isn't among them.
func fixedSize[T any](s Serde[T]) int {
	if f, ok := s.(interface{ fixedSize() int }); ok {
		return f.fixedSize()
	}
	return 0
}

func (int16Serde) fixedSize() int   { return 2 }
func (int32Serde) fixedSize() int   { return 4 }
func (int64Serde) fixedSize() int   { return 8 }
func (float32Serde) fixedSize() int { return 4 }
func (float64Serde) fixedSize() int { return 8 }
func (uuidSerde[U]) fixedSize() int { return uuidLen }
func (p pointer[T]) fixedSize() int { return fixedSize(p.of) }

type listSerde[T any] struct {
	inner Serde[T]
	size  int // of an element, 0 where it varies
}

func (l listSerde[T]) Append(dst []byte, v []T) ([]byte, error) {
	switch {
	case v == nil:
		return nil, nil
	case l.size > 0:
		return l.appendConstant(dst, v)
	default:
		return l.appendVariable(dst, v)
	}
}

func (l listSerde[T]) appendConstant(dst []byte, v []T) ([]byte, error) {
	dst = append(dst, constantSize, 0, 0, 0, 0) // no nulls
	indexes := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	var nulls []byte
	for i, e := range v {
		extended, err := l.inner.Append(dst, e)
		switch {
		case err != nil:
			return nil, elementError(i, err)
		case extended == nil:
			nulls = binary.BigEndian.AppendUint32(nulls, uint32(i))
		default:
			dst = extended
		}
	}
	if len(nulls) > 0 {
		binary.BigEndian.PutUint32(dst[indexes-4:], uint32(len(nulls)/4))
		dst = slices.Insert(dst, indexes, nulls...)
	}
	return dst, nil
}

func (l listSerde[T]) appendVariable(dst []byte, v []T) ([]byte, error) {
	dst = append(dst, variableSize)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	for i, e := range v {
		dst = append(dst, 0xff, 0xff, 0xff, 0xff) // null
		begin := len(dst)
		extended, err := l.inner.Append(dst, e)
		if err != nil {
			return nil, elementError(i, err)
		}
		if extended != nil {
			dst = extended
			binary.BigEndian.PutUint32(dst[begin-4:], uint32(len(dst)-begin))
		}
	}
	return dst, nil
}

func (l listSerde[T]) Decode(data []byte) ([]T, error) {
	if len(data) == 0 {
		return nil, errTruncated
	}
	switch strategy, rest := data[0], data[1:]; {
	case strategy == variableSize:
		return l.decodeVariable(rest)
	case strategy != constantSize:
		return nil, fmt.Errorf("serde: a list does not begin with %#x: does the topic hold another type?", strategy)
	case l.size == 0:
		return nil, errors.New("serde: a list of elements of one size is read as elements of varying size: does the topic hold lists of another type?")
	default:
		return l.decodeConstant(rest)
	}
}

func (l listSerde[T]) decodeConstant(data []byte) ([]T, error) {
	indexes, data, err := readCount(data)
	if err != nil {
		return nil, err
	}
	if indexes > len(data)/4 {
		return nil, errTruncated
	}
	var nulls map[uint32]bool // in any order, even beyond the list's end, as Java reads them
	if indexes > 0 {
		nulls = make(map[uint32]bool, indexes)
		for ; indexes > 0; indexes-- {
			nulls[binary.BigEndian.Uint32(data)] = true
			data = data[4:]
		}
	}
	n, data, err := readCount(data)
	if err != nil {
		return nil, err
	}
	if n-len(nulls) > len(data)/l.size { // never room for more than there is data
		return nil, errTruncated
	}
	list := make([]T, n)
	for i := range list {
		if len(nulls) > 0 && nulls[uint32(i)] {
			if err := l.checkNull(i); err != nil {
				return nil, err
			}
			continue
		}
		if len(data) < l.size {
			return nil, errTruncated
		}
		if list[i], err = l.inner.Decode(data[:l.size:l.size]); err != nil {
			return nil, elementError(i, err)
		}
		data = data[l.size:]
	}
	return list, nil
}

func (l listSerde[T]) decodeVariable(data []byte) ([]T, error) {
	n, data, err := readCount(data)
	if err != nil {
		return nil, err
	}
	if n > len(data)/4 { // each element has a length
		return nil, errTruncated
	}
	list := make([]T, n)
	for i := range list {
		if len(data) < 4 {
			return nil, errTruncated
		}
		size := int(int32(binary.BigEndian.Uint32(data)))
		data = data[4:]
		switch {
		case size == -1:
			if err := l.checkNull(i); err != nil {
				return nil, err
			}
			continue
		case size < 0:
			return nil, fmt.Errorf("serde: list element %d has the size %d", i, size)
		case size > len(data):
			return nil, errTruncated
		}
		if list[i], err = l.inner.Decode(data[:size:size]); err != nil {
			return nil, elementError(i, err)
		}
		data = data[size:]
	}
	return list, nil
}

// checkNull returns an error unless null is the zero value of T: T has a nil, or
// the serde of the elements writes the zero value as null.
func (l listSerde[T]) checkNull(i int) error {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return nil
	}
	var zero T
	if b, err := l.inner.Append([]byte{}, zero); err == nil && b == nil {
		return nil
	}
	return elementError(i, fmt.Errorf("%s can't be null: read the list with List(Pointer(…))", reflect.TypeFor[T]()))
}

var errTruncated = errors.New("serde: a list ends before its last element: is it damaged, or does the topic hold another type?")

func elementError(i int, err error) error { return fmt.Errorf("serde: list element %d: %w", i, err) }

// readCount takes a number of elements from the front of data.
func readCount(data []byte) (n int, rest []byte, err error) {
	if len(data) < 4 {
		return 0, nil, errTruncated
	}
	if n = int(int32(binary.BigEndian.Uint32(data))); n < 0 {
		return 0, nil, fmt.Errorf("serde: a list can't have %d elements: does the topic hold another type?", n)
	}
	return n, data[4:], nil
}
