package serde

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The standard serdes. Each writes the bytes of the Java serde that its comment
// names. See also [UUID] and [List].
//
// String reads malformed UTF-8 as Java does, with U+FFFD for each malformed
// part. It writes a Go string that is malformed byte by byte as it is.
var (
	String  Serde[string]  = stringSerde{}  // Serdes.String, UTF-8
	Bytes   Serde[[]byte]  = bytesSerde{}   // Serdes.ByteArray, Serdes.Bytes, Serdes.ByteBuffer; nil is null
	Int64   Serde[int64]   = int64Serde{}   // Serdes.Long, 8 bytes big-endian
	Int32   Serde[int32]   = int32Serde{}   // Serdes.Integer, 4 bytes big-endian
	Int16   Serde[int16]   = int16Serde{}   // Serdes.Short, 2 bytes big-endian
	Float64 Serde[float64] = float64Serde{} // Serdes.Double, IEEE 754 bits big-endian
	Float32 Serde[float32] = float32Serde{} // Serdes.Float, IEEE 754 bits big-endian
	Bool    Serde[bool]    = boolSerde{}    // Serdes.Boolean, one byte 0 or 1

	// Void is Serdes.Void: always null, and an error where there is data.
	Void Serde[struct{}] = voidSerde{}
)

// SizeError reports data whose length is not that of the fixed-size type it was
// read as.
type SizeError struct {
	Type string // the Go type that was asked for
	Want int    // its size in bytes
	Got  int    // the length of the data in bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("serde: %d bytes are not a %s, which has %d: does the topic hold another type?", e.Got, e.Type, e.Want)
}

func checkSize(typ string, want int, data []byte) error {
	if len(data) != want {
		return &SizeError{Type: typ, Want: want, Got: len(data)}
	}
	return nil
}

type bytesSerde struct{}

func (bytesSerde) Append(dst []byte, v []byte) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return append(dst, v...), nil
}

func (bytesSerde) Decode(data []byte) ([]byte, error) { return append([]byte{}, data...), nil }

type int64Serde struct{}

func (int64Serde) Append(dst []byte, v int64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
}

func (int64Serde) Decode(data []byte) (int64, error) {
	if err := checkSize("int64", 8, data); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(data)), nil
}

type int32Serde struct{}

func (int32Serde) Append(dst []byte, v int32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
}

func (int32Serde) Decode(data []byte) (int32, error) {
	if err := checkSize("int32", 4, data); err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(data)), nil
}

type int16Serde struct{}

func (int16Serde) Append(dst []byte, v int16) ([]byte, error) {
	return binary.BigEndian.AppendUint16(dst, uint16(v)), nil
}

func (int16Serde) Decode(data []byte) (int16, error) {
	if err := checkSize("int16", 2, data); err != nil {
		return 0, err
	}
	return int16(binary.BigEndian.Uint16(data)), nil
}

type float64Serde struct{}

func (float64Serde) Append(dst []byte, v float64) ([]byte, error) {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v)), nil
}

func (float64Serde) Decode(data []byte) (float64, error) {
	if err := checkSize("float64", 8, data); err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.BigEndian.Uint64(data)), nil
}

type float32Serde struct{}

func (float32Serde) Append(dst []byte, v float32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(v)), nil
}

func (float32Serde) Decode(data []byte) (float32, error) {
	if err := checkSize("float32", 4, data); err != nil {
		return 0, err
	}
	return math.Float32frombits(binary.BigEndian.Uint32(data)), nil
}

type boolSerde struct{}

func (boolSerde) Append(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (boolSerde) Decode(data []byte) (bool, error) {
	if err := checkSize("bool", 1, data); err != nil {
		return false, err
	}
	if data[0] > 1 {
		return false, fmt.Errorf("serde: the byte %#x is neither false (0) nor true (1)", data[0])
	}
	return data[0] == 1, nil
}

type voidSerde struct{}

func (voidSerde) Append([]byte, struct{}) ([]byte, error) { return nil, nil }

func (voidSerde) Decode(data []byte) (struct{}, error) {
	return struct{}{}, fmt.Errorf("serde: %d bytes where Void has only null: does the topic hold another type?", len(data))
}
