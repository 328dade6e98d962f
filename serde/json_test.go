package serde_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/odradek-go/odradek/serde"
)

type order struct {
	ID    string   `json:"id"`
	Items []string `json:"items,omitempty"`
}

func TestJSON(t *testing.T) {
	s := serde.JSON[order]()
	b, err := s.Append([]byte("before "), order{"<1>", []string{"a&b", "é"}})
	if want := `before {"id":"<1>","items":["a&b","é"]}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v, not %s", b, err, want)
	}
	v, err := s.Decode([]byte(" {\"id\":\"x\",\"new\":1}\n"))
	if err != nil || v.ID != "x" {
		t.Errorf("decoded %v, %v", v, err)
	}
}

func TestJSONNull(t *testing.T) {
	isNull := func(what string, b []byte, err error) {
		if b != nil || err != nil {
			t.Errorf("%s is %s, %v, not null", what, b, err)
		}
	}
	b, err := serde.JSON[*order]().Append([]byte{}, nil)
	isNull("a nil pointer", b, err)
	b, err = serde.JSON[[]int]().Append([]byte("before"), nil)
	isNull("a nil slice", b, err)
	b, err = serde.JSON[any]().Append([]byte{}, nil)
	isNull("a nil interface", b, err)
	b, err = serde.JSON[json.RawMessage]().Append([]byte{}, json.RawMessage("null"))
	isNull("null in JSON", b, err)

	if b, err = serde.JSON[[]int]().Append([]byte{}, []int{}); err != nil || string(b) != "[]" {
		t.Errorf("an empty slice is %s, %v", b, err)
	}
	if b, err = serde.JSON[string]().Append([]byte{}, "null"); err != nil || string(b) != `"null"` {
		t.Errorf("a string is %s, %v", b, err)
	}
	if v, err := serde.JSON[*order]().Decode([]byte("null")); v != nil || err != nil {
		t.Errorf("null is read as %v, %v", v, err)
	}
	if v, err := serde.JSON[int]().Decode([]byte("null")); v != 0 || err != nil {
		t.Errorf("null is read as %v, %v", v, err)
	}
}

func TestJSONErrors(t *testing.T) {
	for _, data := range []string{"", "{", `{"id":1}`, `{"id":"a"}{}`, `{"id":"a"} x`, "[]", "\x00"} {
		v, err := serde.JSON[order]().Decode([]byte(data))
		if err == nil || v.ID != "" || !strings.Contains(err.Error(), "serde_test.order") {
			t.Errorf("%q is read as %v, %v", data, v, err)
		}
	}
	var typ *json.UnmarshalTypeError
	if _, err := serde.JSON[order]().Decode([]byte("7")); !errors.As(err, &typ) {
		t.Errorf("a number is no order: %v", err)
	}
	var unsupported *json.UnsupportedValueError
	if b, err := serde.JSON[float64]().Append([]byte{}, math.NaN()); b != nil || !errors.As(err, &unsupported) {
		t.Errorf("NaN is %s, %v", b, err)
	}
	// An encoder that failed works for the next value.
	if b, err := serde.JSON[float64]().Append([]byte{}, 1.5); err != nil || string(b) != "1.5" {
		t.Errorf("1.5 is %s, %v", b, err)
	}
}

func TestJSONInSeveralGoroutines(t *testing.T) {
	s := serde.JSON[int]()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				b, err := s.Append([]byte{}, i)
				if v, derr := s.Decode(b); err != nil || derr != nil || v != i {
					t.Errorf("%d became %d, %v, %v", i, v, err, derr)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkJSONAppend(b *testing.B) {
	s, v := serde.JSON[*order](), &order{"1", []string{"a", "b"}}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Append(buf, v); err != nil {
			b.Fatal(err)
		}
	}
}
