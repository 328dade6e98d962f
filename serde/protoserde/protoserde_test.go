package protoserde_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/serde/protoserde"
)

var values serde.Serde[*structpb.Value] = protoserde.New[structpb.Value]()

func TestBytes(t *testing.T) {
	s := protoserde.New[wrapperspb.StringValue]()
	b, err := s.Append([]byte("before "), wrapperspb.String("abc"))
	if want := "before \x0a\x03abc"; err != nil || string(b) != want {
		t.Errorf("got %q, %v, not %q", b, err, want)
	}
	v, err := s.Decode([]byte("\x0a\x03abc"))
	if err != nil || v.GetValue() != "abc" {
		t.Errorf("decoded %v, %v", v, err)
	}
}

func TestNullIsNotEmpty(t *testing.T) {
	if b, err := values.Append([]byte{}, nil); b != nil || err != nil {
		t.Errorf("a nil message is %v, %v, not null", b, err)
	}
	if b, err := values.Append([]byte{}, &structpb.Value{}); b == nil || len(b) > 0 || err != nil {
		t.Errorf("an empty message is %v, %v", b, err)
	}
	if v, err := values.Decode([]byte{}); v == nil || err != nil || v.Kind != nil {
		t.Errorf("no bytes are %v, %v, not an empty message", v, err)
	}
}

// TestMapOrder would fail now and then for keys whose bytes depend on Go's
// random order of maps.
func TestMapOrder(t *testing.T) {
	fields := make(map[string]any)
	for i := range 50 {
		fields[fmt.Sprint("field", i)] = i
	}
	message, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	s := protoserde.New[structpb.Struct]()
	first, err := s.Append([]byte{}, message)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if again, err := s.Append([]byte{}, message); err != nil || !bytes.Equal(first, again) {
			t.Fatalf("one message, two encodings: %x, %x, %v", first, again, err)
		}
	}
}

func TestErrors(t *testing.T) {
	if v, err := values.Decode([]byte{0xff}); v != nil || err == nil || !strings.Contains(err.Error(), "google.protobuf.Value") {
		t.Errorf("decoded %v, %v", v, err)
	}
	invalid := structpb.NewStringValue("\xff")
	if b, err := values.Append([]byte{}, invalid); b != nil || err == nil || !strings.Contains(err.Error(), "google.protobuf.Value") {
		t.Errorf("encoded malformed UTF-8 as %x, %v", b, err)
	}
}

func TestListOfMessages(t *testing.T) {
	s := serde.List(values)
	in := []*structpb.Value{structpb.NewBoolValue(true), nil, {}}
	b, err := s.Append([]byte{}, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Decode(b)
	if err != nil || len(out) != 3 || !out[0].GetBoolValue() || out[1] != nil || out[2] == nil {
		t.Errorf("decoded %v, %v", out, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0xff})
	f.Add([]byte("\x1a\x03abc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := values.Decode(data)
		if err != nil {
			return
		}
		b, err := values.Append([]byte{}, v)
		if err != nil {
			t.Fatalf("what was decoded is not encoded: %v", err)
		}
		// Not compared as messages, in which a NaN is not itself.
		back, err := values.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := values.Append([]byte{}, back); !bytes.Equal(b, again) {
			t.Fatalf("%x became %x", b, again)
		}
		if proto.Size(v) != len(b) {
			t.Fatalf("%d bytes of a message of %d", len(b), proto.Size(v))
		}
	})
}
