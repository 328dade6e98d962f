package serde_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
)

// recorded returns a section of a file that was recorded from Java Kafka Streams
// 4.4.0 or, for utf8.json, from its JDK 17.
func recorded[T any](t testing.TB, file, section string) []T {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var sections map[string][]T
	if err := json.Unmarshal(data, &sections); err != nil {
		t.Fatal(err)
	}
	if len(sections[section]) == 0 {
		t.Fatalf("%s has nothing in its section %s", file, section)
	}
	return sections[section]
}

func TestStandardEqualsJava(t *testing.T) {
	checked := make(map[string]int)
	for _, r := range recorded[struct {
		Serde, Value string
		B64          []byte // nil for null
	}](t, "standard.json", "standard") {
		check, ok := standard[r.Serde]
		if !ok {
			t.Errorf("%s is not checked", r.Serde)
			continue
		}
		check(t, r.Value, r.B64)
		checked[r.Serde]++
	}
	for name := range standard {
		if checked[name] == 0 {
			t.Errorf("nothing recorded for %s", name)
		}
	}
}

// id stands for the UUID type of some library.
type id [16]byte

func parseID(s string) (id, error) { return serde.UUID[id]().Decode([]byte(s)) }

var standard = map[string]func(t *testing.T, value string, want []byte){
	"String":     java(serde.String, func(s string) (string, error) { return s, nil }),
	"ByteArray":  java(serde.Bytes, hex.DecodeString),
	"Bytes":      java(serde.Bytes, hex.DecodeString),
	"ByteBuffer": java(serde.Bytes, hex.DecodeString),
	"UUID":       java(serde.UUID[id](), parseID),
	"Void":       java(serde.Void, func(string) (struct{}, error) { return struct{}{}, nil }),
	"Long":       java(serde.Int64, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }),
	"Integer": java(serde.Int32, func(s string) (int32, error) {
		v, err := strconv.ParseInt(s, 10, 32)
		return int32(v), err
	}),
	"Short": java(serde.Int16, func(s string) (int16, error) {
		v, err := strconv.ParseInt(s, 10, 16)
		return int16(v), err
	}),
	"Double": java(serde.Float64, func(s string) (float64, error) {
		if s == "NaN" {
			return math.Float64frombits(0x7ff8000000000000), nil // Java's NaN
		}
		return strconv.ParseFloat(s, 64)
	}),
	"Float": java(serde.Float32, func(s string) (float32, error) {
		if s == "NaN" {
			return math.Float32frombits(0x7fc00000), nil
		}
		v, err := strconv.ParseFloat(s, 32)
		return float32(v), err
	}),
	"Boolean": java(serde.Bool, strconv.ParseBool),
}

func java[T any](s serde.Serde[T], parse func(string) (T, error)) func(*testing.T, string, []byte) {
	return func(t *testing.T, value string, want []byte) {
		v, err := parse(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Append([]byte("x"), v)
		if want == nil {
			if got != nil || err != nil {
				t.Errorf("%T of %q is %x (%v), in Java null", s, value, got, err)
			}
			return
		}
		if err != nil || string(got) != "x"+string(want) {
			t.Errorf("%T of %q is %x (%v), in Java %x", s, value, got, err, want)
		}
		back, err := s.Decode(want)
		if err != nil {
			t.Errorf("%T does not decode Java's %x: %v", s, want, err)
		}
		if again, _ := s.Append([]byte{}, back); string(again) != string(want) {
			t.Errorf("%T decodes %x to what encodes as %x", s, want, again)
		}
	}
}

func TestWrongSize(t *testing.T) {
	decoders := map[string]func([]byte) error{
		"int64":   func(b []byte) error { _, err := serde.Int64.Decode(b); return err },
		"int32":   func(b []byte) error { _, err := serde.Int32.Decode(b); return err },
		"int16":   func(b []byte) error { _, err := serde.Int16.Decode(b); return err },
		"float64": func(b []byte) error { _, err := serde.Float64.Decode(b); return err },
		"float32": func(b []byte) error { _, err := serde.Float32.Decode(b); return err },
		"bool":    func(b []byte) error { _, err := serde.Bool.Decode(b); return err },
	}
	for typ, decode := range decoders {
		for _, data := range [][]byte{{}, {1, 2, 3}, make([]byte, 9)} {
			var size *serde.SizeError
			if err := decode(data); !errors.As(err, &size) || size.Type != typ || size.Got != len(data) {
				t.Errorf("%s of %d bytes: %v", typ, len(data), err)
			}
		}
	}
	if _, err := serde.Bool.Decode([]byte{2}); err == nil {
		t.Error("the byte 2 is a bool")
	}
	if _, err := serde.Void.Decode([]byte{}); err == nil {
		t.Error("data that is not null is void")
	}
}

func TestNullIsNotEmpty(t *testing.T) {
	if b, err := serde.Bytes.Append([]byte{}, nil); b != nil || err != nil {
		t.Errorf("nil bytes are %v, %v, not null", b, err)
	}
	if b, err := serde.Bytes.Append([]byte{}, []byte{}); b == nil || err != nil {
		t.Errorf("empty bytes are null, %v", err)
	}
	if b, err := serde.Pointer(serde.String).Append([]byte{}, nil); b != nil || err != nil {
		t.Errorf("a nil pointer is %v, %v, not null", b, err)
	}
	empty := ""
	if b, err := serde.Pointer(serde.String).Append([]byte{}, &empty); b == nil || err != nil {
		t.Errorf("a pointer to the empty string is null, %v", err)
	}
	if v, err := serde.Pointer(serde.Int16).Decode([]byte{1, 2}); err != nil || *v != 0x102 {
		t.Errorf("decoded %v, %v", v, err)
	}
	if v, err := serde.Pointer(serde.Int16).Decode([]byte{1}); err == nil || v != nil {
		t.Errorf("decoded %v, %v", v, err)
	}
	if b, err := serde.String.Append([]byte{}, ""); b == nil || err != nil {
		t.Errorf("the empty string is null, %v", err)
	}
}

func TestNew(t *testing.T) {
	fail := errors.New("no")
	s := serde.New(func(v string) ([]byte, error) {
		switch v {
		case "null":
			return nil, nil
		case "fail":
			return nil, fail
		}
		return []byte(v), nil
	}, func(b []byte) (string, error) { return string(b), nil })
	if b, err := s.Append([]byte("a"), "b"); string(b) != "ab" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	if b, err := s.Append([]byte("a"), "null"); b != nil || err != nil {
		t.Errorf("got %q, %v for null", b, err)
	}
	if _, err := s.Append([]byte("a"), "fail"); !errors.Is(err, fail) {
		t.Errorf("got %v", err)
	}
}

func TestFor(t *testing.T) {
	if s, ok := serde.For[string](); !ok || s != serde.String {
		t.Error("no serde for string")
	}
	if s, ok := serde.For[int64](); !ok || s != serde.Int64 {
		t.Error("no serde for int64")
	}
	if s, ok := serde.For[struct{}](); ok || s != nil {
		t.Error("a serde for struct{}")
	}
	type word string
	if _, ok := serde.For[word](); ok {
		t.Error("a serde for a type whose underlying type is string")
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roundTrip(t, serde.String, rapid.String().Draw(t, "string"))
		roundTrip(t, serde.Int64, rapid.Int64().Draw(t, "int64"))
		roundTrip(t, serde.Int32, rapid.Int32().Draw(t, "int32"))
		roundTrip(t, serde.Int16, rapid.Int16().Draw(t, "int16"))
		roundTrip(t, serde.Float64, rapid.Float64().Draw(t, "float64"))
		roundTrip(t, serde.Float32, rapid.Float32().Draw(t, "float32"))
		roundTrip(t, serde.Bool, rapid.Bool().Draw(t, "bool"))
	})
}

func roundTrip[T comparable](t *rapid.T, s serde.Serde[T], v T) {
	b, err := s.Append([]byte{}, v)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := s.Decode(b); err != nil || back != v {
		t.Fatalf("%T: %v became %v, %v", s, v, back, err)
	}
}
