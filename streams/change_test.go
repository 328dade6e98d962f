package streams

import (
	"strings"
	"testing"

	"github.com/odradek-go/odradek/serde"
)

func TestChangeSerde(t *testing.T) {
	s := changeSerde[string]{serde.String}
	value := func(v string) nullable[string] { return nullable[string]{v, true} }
	long := strings.Repeat("x", 200) // its length needs two bytes
	for _, c := range []struct {
		change[string]
		bytes string
	}{
		{change[string]{new: value("n")}, "n\x01"},
		{change[string]{new: value("")}, "\x01"},
		{change[string]{old: value("o")}, "o\x00"},
		{change[string]{new: value("k1"), old: value("k2")}, "\x04k1k2\x02"},
		{change[string]{new: value(""), old: value("")}, "\x00\x02"},
		{change[string]{new: value(long), old: value("o")}, "\x90\x03" + long + "o\x02"},
	} {
		got, err := s.Append([]byte("before"), c.change)
		if err != nil || string(got) != "before"+c.bytes {
			t.Errorf("%+v is %q (%v), want %q", c.change, got, err, c.bytes)
		}
		if back, err := s.Decode([]byte(c.bytes)); err != nil || back != c.change {
			t.Errorf("%q is %+v (%v), want %+v", c.bytes, back, err, c.change)
		}
	}
	if _, err := s.Append([]byte{}, change[string]{}); err == nil {
		t.Error("a change of nothing is written")
	}
	for encoded, want := range map[string]change[string]{
		"o\x01\x03":        {old: value("o")},
		"n\x00\x04":        {new: value("n")},
		"\x04k1k2\x01\x05": {new: value("k1"), old: value("k2")},
	} {
		if got, err := s.Decode([]byte(encoded)); err != nil || got != want {
			t.Errorf("%q is %+v (%v), want %+v", encoded, got, err, want)
		}
	}
	for _, malformed := range []string{"", "x\x06", "\x03", "\x02", "\x05\x02", "\x7fab\x02", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"} {
		if got, err := s.Decode([]byte(malformed)); err == nil {
			t.Errorf("%q is %+v, not an error", malformed, got)
		}
	}
}

func FuzzChangeSerde(f *testing.F) {
	s := changeSerde[[]byte]{serde.Bytes}
	f.Add([]byte("\x04k1k2\x02"))
	f.Add([]byte("n\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := s.Decode(data)
		if err != nil {
			return
		}
		encoded, err := s.Append([]byte{}, c)
		if err != nil {
			t.Fatalf("%q was read as %+v, which can't be written: %v", data, c, err)
		}
		again, err := s.Decode(encoded)
		if err != nil || string(again.new.v) != string(c.new.v) || string(again.old.v) != string(c.old.v) || again.new.ok != c.new.ok || again.old.ok != c.old.ok {
			t.Errorf("%+v is %+v when written and read (%v)", c, again, err)
		}
	})
}
