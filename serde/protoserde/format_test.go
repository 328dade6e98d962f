package protoserde

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestMessageIndex: the first message of a file is a zero, any other a list of steps.
func TestMessageIndex(t *testing.T) {
	for want, message := range map[string]proto.Message{
		"\x00":         (*structpb.Struct)(nil),
		"\x02\x02":     (*structpb.Value)(nil), // [1]
		"\x04\x04\x00": (*descriptorpb.DescriptorProto_ExtensionRange)(nil),
		"\x04\x04\x02": (*descriptorpb.DescriptorProto_ReservedRange)(nil),
	} {
		if got := messageIndex(message.ProtoReflect().Descriptor()); string(got) != want {
			t.Errorf("%T is % x, want % x", message, got, want)
		}
	}
}

func TestFormat(t *testing.T) {
	f := NewFormat[structpb.Value]()
	b, err := f.Append([]byte("before "), structpb.NewStringValue("abc"))
	if want := "before \x02\x02\x1a\x03abc"; err != nil || string(b) != want {
		t.Errorf("got %q, %v, not %q", b, err, want)
	}
	if v, err := f.Decode([]byte("\x02\x02\x1a\x03abc")); err != nil || v.GetStringValue() != "abc" {
		t.Errorf("decoded %v, %v", v, err)
	}
	if b, err := f.Append([]byte{}, nil); b != nil || err != nil {
		t.Errorf("nil is %q, %v", b, err)
	}
	first := NewFormat[wrapperspb.DoubleValue]()
	if b, err := first.Append([]byte{}, &wrapperspb.DoubleValue{}); err != nil || string(b) != "\x00" {
		t.Errorf("an empty message is %q, %v", b, err)
	}
	if v, err := first.Decode([]byte("\x00")); err != nil || v.GetValue() != 0 {
		t.Errorf("decoded %v, %v", v, err)
	}
	for _, malformed := range []string{"", "\x01", "\x02", "\xff", "\x7e\x00\x00", "\x02\x02\xff"} {
		if v, err := f.Decode([]byte(malformed)); err == nil {
			t.Errorf("%q is %v", malformed, v)
		}
	}
}

// TestSchema: the schema is the message's file, as others can read it.
func TestSchema(t *testing.T) {
	b, err := base64.StdEncoding.DecodeString(NewFormat[structpb.Value]().Schema())
	if err != nil {
		t.Fatal(err)
	}
	var file descriptorpb.FileDescriptorProto
	if err := proto.Unmarshal(b, &file); err != nil || file.GetName() != "google/protobuf/struct.proto" || file.MessageType[1].GetName() != "Value" {
		t.Errorf("the schema is of %v, %v", file.GetName(), err)
	}
}

// TestFiles: imports come before what imports them, each once.
func TestFiles(t *testing.T) {
	var known protoregistry.Files
	file := func(name string, imports ...string) protoreflect.FileDescriptor {
		d, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
			Name: &name, Syntax: proto.String("proto3"), Package: proto.String(strings.TrimSuffix(name, ".proto")), Dependency: imports,
		}, resolvers{&known, protoregistry.GlobalFiles})
		if err == nil {
			err = known.RegisterFile(d)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	file("id.proto")
	file("item.proto", "id.proto", "google/protobuf/struct.proto")
	cart := file("cart.proto", "item.proto", "id.proto")
	var got []string
	err := eachFile(cart, make(map[string]bool), func(name, _ string, imports []string) error {
		got = append(got, fmt.Sprint(name, imports))
		return nil
	})
	if want := []string{"id.proto[]", "item.proto[id.proto]", "cart.proto[item.proto id.proto]"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the files are %v, %v, want %v", got, err, want)
	}
}

// resolvers look in several places.
type resolvers []*protoregistry.Files

func (r resolvers) FindFileByPath(path string) (d protoreflect.FileDescriptor, err error) {
	for _, files := range r {
		if d, err = files.FindFileByPath(path); err == nil {
			return d, nil
		}
	}
	return nil, err
}

func (r resolvers) FindDescriptorByName(name protoreflect.FullName) (d protoreflect.Descriptor, err error) {
	for _, files := range r {
		if d, err = files.FindDescriptorByName(name); err == nil {
			return d, nil
		}
	}
	return nil, err
}

func FuzzFormat(f *testing.F) {
	format := NewFormat[structpb.Value]()
	f.Add([]byte("\x02\x02\x1a\x03abc"))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := format.Decode(data)
		if err != nil {
			return
		}
		if _, err := format.Append([]byte{}, v); err != nil {
			t.Fatalf("what was decoded is not encoded: %v", err)
		}
	})
}
