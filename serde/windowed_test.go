package serde_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
)

type windowedString = serde.Windowed[string]

func TestWindowedEqualsJava(t *testing.T) {
	for _, r := range recorded[struct {
		Type, Key  string
		Start, End int64
		B64        []byte
	}](t, "windowed.json", "windowed_keys") {
		s := serde.SessionWindowed(serde.String)
		if r.Type == "TimeWindowedSerializer" {
			s = serde.TimeWindowed(serde.String, time.Duration(r.End-r.Start)*time.Millisecond)
		}
		v := windowedString{r.Key, r.Start, r.End}
		got, err := s.Append([]byte("x"), v)
		if err != nil || string(got) != "x"+string(r.B64) {
			t.Errorf("%s of %v is %x (%v), in Java %x", r.Type, v, got, err, r.B64)
		}
		if back, err := s.Decode(r.B64); err != nil || back != v {
			t.Errorf("%s: %v is read as %v, %v", r.Type, v, back, err)
		}
		if base := s.(serde.BaseKeyer).BaseKey(r.B64); string(base) != r.Key {
			t.Errorf("%s: the base key of %v is %q", r.Type, v, base)
		}
	}
}

// TestWindowedReadsAsJava has outcomes of Java Kafka Streams 4.4.0, but for empty
// data: Java reads null from it.
func TestWindowedReadsAsJava(t *testing.T) {
	ten := serde.TimeWindowed(serde.String, 10*time.Millisecond)
	session := serde.SessionWindowed(serde.String)
	for _, c := range []struct {
		data string
		read serde.Serde[windowedString]
		want string // of Windowed.toString, empty where it is refused
	}{
		{"61 0000000000000005", ten, "[a@5/15]"},
		{"7ffffffffffffffe", ten, "[@9223372036854775806/9223372036854775807]"},
		{"0000000000000000", serde.TimeWindowed(serde.String, math.MaxInt64), "[@0/9223372036854775807]"},
		{"0000000000000007", serde.TimeWindowed(serde.String, math.MaxInt64), "[@7/9223372036854775807]"},
		{"0000000000000005", serde.TimeWindowed(serde.String, 0), ""},
		{"0000000000000005", serde.TimeWindowed(serde.String, -time.Second), ""},
		{"0000000000000005", serde.TimeWindowed(serde.String, time.Microsecond), ""},
		{"7fffffffffffffff", ten, ""},
		{"fffffffffffffffe", ten, ""},
		{"00000000000000", ten, ""},
		{"", ten, ""},
		{"61 0000000000000005 0000000000000005", session, "[a@5/5]"},
		{"61 0000000000000004 0000000000000005", session, ""},
		{"61 0000000000000004 ffffffffffffffff", session, ""},
		{"0000000000000004 00000000000000", session, ""},
		{"", session, ""},
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(c.data, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.read.Decode(data)
		switch {
		case c.want == "" && (err == nil || v != windowedString{}):
			t.Errorf("%s is read as %v, %v", c.data, v, err)
		case c.want != "" && (err != nil || v.String() != c.want):
			t.Errorf("%s is read as %v, %v, not %s", c.data, v, err, c.want)
		}
	}
}

func TestWindowedRefusesToWrite(t *testing.T) {
	for _, c := range []struct {
		serde      serde.Serde[serde.Windowed[[]byte]]
		key        []byte
		start, end int64
	}{
		{serde.TimeWindowed(serde.Bytes, time.Second), nil, 0, 1000},
		{serde.TimeWindowed(serde.Bytes, time.Second), []byte("k"), -1, 999},
		{serde.TimeWindowed(serde.Bytes, time.Second), []byte("k"), 5, 5},
		{serde.SessionWindowed(serde.Bytes), nil, 0, 1000},
		{serde.SessionWindowed(serde.Bytes), []byte("k"), -1, 5},
		{serde.SessionWindowed(serde.Bytes), []byte("k"), 5, 4},
	} {
		v := serde.Windowed[[]byte]{Key: c.key, Start: c.start, End: c.end}
		if b, err := c.serde.Append([]byte{}, v); b != nil || err == nil {
			t.Errorf("%T writes %v as %x, %v", c.serde, v, b, err)
		}
	}
}

func TestWindowedKeyErrors(t *testing.T) {
	for _, s := range []serde.Serde[serde.Windowed[int32]]{
		serde.TimeWindowed(serde.Int32, time.Second),
		serde.SessionWindowed(serde.Int32),
	} {
		if v, err := s.Decode(make([]byte, 19)); err == nil || (v != serde.Windowed[int32]{}) {
			t.Errorf("%T reads a key of the wrong size as %v, %v", s, v, err)
		}
		if base := s.(serde.BaseKeyer).BaseKey([]byte{1, 2}); len(base) != 0 {
			t.Errorf("%T finds the base key %x in two bytes", s, base)
		}
	}
}

func TestWindowedString(t *testing.T) {
	if s := fmt.Sprint(windowedString{"k", 3, 10}); s != "[k@3/10]" {
		t.Errorf("a windowed key is printed as %s, in Java as [k@3/10]", s)
	}
}

func TestWindowedRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Draw(t, "key")
		start := rapid.Int64Range(0, math.MaxInt64-1).Draw(t, "start")
		size := rapid.Int64Range(1, 1e9).Draw(t, "size")
		end := start + min(size, math.MaxInt64-start)
		v := windowedString{key, start, end}
		roundTrip(t, serde.SessionWindowed(serde.String), v)
		roundTrip(t, serde.TimeWindowed(serde.String, time.Duration(size)*time.Millisecond), v)
	})
}
