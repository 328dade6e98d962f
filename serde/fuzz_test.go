package serde_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/odradek-go/odradek/serde"
)

// decoders check what each serde reads from any data: it must not panic, and what
// it accepts must be written and read again with the same bytes.
var decoders = map[string]func(*testing.T, []byte){
	"String":          stable(serde.String),
	"Bytes":           stable(serde.Bytes),
	"Int64":           stable(serde.Int64),
	"Int32":           stable(serde.Int32),
	"Int16":           stable(serde.Int16),
	"Float64":         stable(serde.Float64),
	"Float32":         stable(serde.Float32),
	"Bool":            stable(serde.Bool),
	"Void":            stable(serde.Void),
	"UUID":            stable(serde.UUID[id]()),
	"JSON":            stable(serde.JSON[any]()),
	"JSON of struct":  stable(serde.JSON[*order]()),
	"TimeWindowed":    stable(serde.TimeWindowed(serde.String, time.Second)),
	"Unlimited":       stable(serde.TimeWindowed(serde.Bytes, math.MaxInt64)),
	"SessionWindowed": stable(serde.SessionWindowed(serde.String)),
	"Strings":         stableList(serde.String),
	"Int64s":          stableList(serde.Int64),
	"Int16s or nil":   stableList(serde.Pointer(serde.Int16)),
	"UUIDs or nil":    stableList(serde.Pointer(serde.UUID[id]())),
	"Lists":           stableList(serde.List(serde.Pointer(serde.Int32))),
}

func stable[T any](s serde.Serde[T]) func(*testing.T, []byte) {
	return func(t *testing.T, data []byte) { again(t, s, data) }
}

// stableList also checks that a list is never longer than its data.
func stableList[T any](inner serde.Serde[T]) func(*testing.T, []byte) {
	s := serde.List(inner)
	return func(t *testing.T, data []byte) {
		if list, ok := again(t, s, data); ok && cap(list) > len(data) {
			t.Fatalf("%d bytes became a list of %d elements", len(data), cap(list))
		}
	}
}

func again[T any](t *testing.T, s serde.Serde[T], data []byte) (v T, ok bool) {
	before := bytes.Clone(data)
	v, err := s.Decode(data)
	if !bytes.Equal(data, before) {
		t.Fatalf("%T changed its data from %x to %x", s, before, data)
	}
	if err != nil {
		return v, false
	}
	b, err := s.Append([]byte{}, v)
	if err != nil {
		t.Fatalf("%T reads %x, but does not write it: %v", s, data, err)
	}
	if b == nil {
		return v, true // JSON's null
	}
	back, err := s.Decode(b)
	if err != nil {
		t.Fatalf("%T writes %x, but does not read it: %v", s, b, err)
	}
	if b2, err := s.Append([]byte{}, back); err != nil || !bytes.Equal(b, b2) {
		t.Fatalf("%T writes %x and then %x, %v", s, b, b2, err)
	}
	return v, true
}

func FuzzDecode(f *testing.F) {
	for _, file := range []struct{ name, section string }{
		{"standard.json", "standard"}, {"list.json", "list"}, {"windowed.json", "windowed_keys"},
	} {
		for _, r := range recorded[struct{ B64 []byte }](f, file.name, file.section) {
			f.Add(r.B64)
		}
	}
	f.Add([]byte(`{"id":"1","items":["a",null]}`))
	f.Add([]byte{1, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, check := range decoders {
			check(t, data)
		}
	})
}
