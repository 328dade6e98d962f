package serde_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
)

func TestUUIDText(t *testing.T) {
	s := serde.UUID[id]()
	want := id{0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0}
	text := "123e4567-e89b-12d3-a456-426614174000"
	for _, form := range []string{text, strings.ToUpper(text)} {
		if v, err := s.Decode([]byte(form)); err != nil || v != want {
			t.Errorf("%s is read as %x, %v", form, v, err)
		}
	}
	for _, wrong := range []string{
		"123e4567ee89b-12d3-a456-426614174000",
		"123e4567-e89b-12d3-a456-42661417400g",
		"-23e4567-e89b-12d3-a456-426614174000",
		"123e4567-e89b-12d3-a456+426614174000",
	} {
		if v, err := s.Decode([]byte(wrong)); err == nil {
			t.Errorf("%s is read as %x", wrong, v)
		}
	}
	for _, wrong := range []string{"", "1-1-1-1-1", text + "0", string(want[:])} {
		var size *serde.SizeError
		if _, err := s.Decode([]byte(wrong)); !errors.As(err, &size) || size.Want != 36 || size.Got != len(wrong) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestUUIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		roundTrip(t, serde.UUID[id](), id(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")))
	})
}
