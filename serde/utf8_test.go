package serde_test

import (
	"encoding/hex"
	"testing"
	"unicode/utf8"

	"github.com/odradek-go/odradek/serde"
)

type utf8Case struct{ Hex, Decoded string }

func TestMalformedStringsEqualJava(t *testing.T) {
	malformed := 0
	for _, r := range recorded[utf8Case](t, "utf8.json", "utf8") {
		data, err := hex.DecodeString(r.Hex)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(data) {
			malformed++
		}
		got, err := serde.String.Decode(data)
		if err != nil || hex.EncodeToString([]byte(got)) != r.Decoded {
			t.Errorf("%s is read as %x (%v), in Java as %s", r.Hex, got, err, r.Decoded)
		}
	}
	if malformed < 100 {
		t.Errorf("only %d malformed strings are recorded", malformed)
	}
}

func TestMalformedStringIsWrittenAsItIs(t *testing.T) {
	for _, s := range []string{"\xff", "a\xed\xa0\x80b"} {
		if b, err := serde.String.Append([]byte{}, s); err != nil || string(b) != s {
			t.Errorf("%q is written as %q, %v", s, b, err)
		}
	}
}

func FuzzString(f *testing.F) {
	for _, r := range recorded[utf8Case](f, "utf8.json", "utf8") {
		data, _ := hex.DecodeString(r.Hex)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := serde.String.Decode(data)
		if err != nil || !utf8.ValidString(s) {
			t.Fatalf("%x is read as %q, %v", data, s, err)
		}
		if utf8.Valid(data) && s != string(data) {
			t.Fatalf("the well-formed %q is read as %q", data, s)
		}
		// What is in order comes through, whatever precedes it.
		if again, _ := serde.String.Decode(append(data, "end"...)); again != s+"end" {
			t.Fatalf("%x is read as %q, with more after it as %q", data, s, again)
		}
	})
}

func BenchmarkStringDecode(b *testing.B) {
	data := []byte("a key as they are: customer-1234567890")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := serde.String.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
