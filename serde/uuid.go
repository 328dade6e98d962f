package serde

import (
	"encoding/hex"
	"fmt"
)

// UUID returns the serde of a UUID type, such as that of github.com/google/uuid:
// Serdes.UUID, the 36 characters of the text form in lower case. It reads upper
// case too, and refuses the abbreviated forms that Java's UUID.fromString takes
// and no serializer writes.
func UUID[U ~[16]byte]() Serde[U] { return uuidSerde[U]{} }

const uuidLen = 36 // of the text form

type uuidSerde[U ~[16]byte] struct{}

func (uuidSerde[U]) Append(dst []byte, v U) ([]byte, error) {
	id := [16]byte(v)
	dst = append(hex.AppendEncode(dst, id[:4]), '-')
	dst = append(hex.AppendEncode(dst, id[4:6]), '-')
	dst = append(hex.AppendEncode(dst, id[6:8]), '-')
	dst = append(hex.AppendEncode(dst, id[8:10]), '-')
	return hex.AppendEncode(dst, id[10:]), nil
}

func (uuidSerde[U]) Decode(data []byte) (U, error) {
	if err := checkSize("UUID in text form", uuidLen, data); err != nil {
		return U{}, err
	}
	var digits [32]byte
	var id [16]byte
	n := 0
	for i, c := range data {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return U{}, fmt.Errorf("serde: %q is not a UUID", data)
			}
		default:
			digits[n] = c
			n++
		}
	}
	if _, err := hex.Decode(id[:], digits[:]); err != nil {
		return U{}, fmt.Errorf("serde: %q is not a UUID", data)
	}
	return U(id), nil
}
