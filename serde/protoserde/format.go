package protoserde

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Format is the serde of [New] with what a schema registry needs: give it to
// srserde.New. Before each message stands which of the messages in its file it is, as
// Confluent's serializers write it.
type Format[T any, M interface {
	*T
	proto.Message
}] struct {
	messageSerde[T, M]
	file  protoreflect.FileDescriptor
	index []byte // which of the file's messages it is
}

// NewFormat returns the format of a generated message type.
func NewFormat[T any, M interface {
	*T
	proto.Message
}]() *Format[T, M] {
	message := M(new(T)).ProtoReflect().Descriptor()
	return &Format[T, M]{file: message.ParentFile(), index: messageIndex(message)}
}

// messageIndex is the path to a message in its file: how many steps it has, and then
// in each the place among its siblings. The first message of a file is a zero.
func messageIndex(message protoreflect.MessageDescriptor) []byte {
	var path []int64
	for d := protoreflect.Descriptor(message); ; d = d.Parent() {
		m, ok := d.(protoreflect.MessageDescriptor)
		if !ok {
			break
		}
		path = append(path, int64(m.Index()))
	}
	slices.Reverse(path)
	if len(path) == 1 && path[0] == 0 {
		return []byte{0}
	}
	index := binary.AppendVarint(nil, int64(len(path)))
	for _, step := range path {
		index = binary.AppendVarint(index, step)
	}
	return index
}

// Append implements serde.Serde.
func (f *Format[T, M]) Append(dst []byte, v M) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return f.messageSerde.Append(append(dst, f.index...), v)
}

// Decode implements serde.Serde. Any message that was written is read as an M: who
// writes other messages to a topic tells them apart otherwise.
func (f *Format[T, M]) Decode(data []byte) (M, error) {
	steps, n := binary.Varint(data)
	if n <= 0 || steps < 0 || steps > int64(len(data)) {
		return nil, fmt.Errorf("protoserde: %d bytes without the place of the message in its file before them", len(data))
	}
	data = data[n:]
	for range steps {
		if _, n = binary.Varint(data); n <= 0 {
			return nil, fmt.Errorf("protoserde: the place of the message in its file has less than %d steps", steps)
		}
		data = data[n:]
	}
	return f.messageSerde.Decode(data)
}

// SchemaType is the schema's type, as schema registries call it.
func (*Format[T, M]) SchemaType() string { return "PROTOBUF" }

// Schema is the message's file, a FileDescriptorProto in base64.
func (f *Format[T, M]) Schema() string { return fileSchema(f.file) }

// Decoder returns what decodes data: whatever the schema that it was written with, the
// fields that both know are read.
func (f *Format[T, M]) Decoder(string, []string) (func(data []byte) (M, error), error) {
	return f.Decode, nil
}

// Files yields the files that the message's file imports, each before those that import
// it, and the message's file last: with their schemas, and the names of what they
// import. Protocol Buffers' own files, which registries know, are left out.
func (f *Format[T, M]) Files(yield func(name, schema string, imports []string) error) error {
	return eachFile(f.file, make(map[string]bool), yield)
}

func eachFile(file protoreflect.FileDescriptor, seen map[string]bool, yield func(name, schema string, imports []string) error) error {
	if seen[file.Path()] {
		return nil
	}
	seen[file.Path()] = true
	var names []string
	imports := file.Imports()
	for i := range imports.Len() {
		imported := imports.Get(i)
		if strings.HasPrefix(imported.Path(), "google/protobuf/") {
			continue
		}
		if err := eachFile(imported.FileDescriptor, seen, yield); err != nil {
			return err
		}
		names = append(names, imported.Path())
	}
	return yield(file.Path(), fileSchema(file), names)
}

func fileSchema(file protoreflect.FileDescriptor) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(protodesc.ToFileDescriptorProto(file))
	if err != nil {
		panic(fmt.Sprintf("protoserde: %s was generated and can't be marshaled: %v", file.Path(), err))
	}
	return base64.StdEncoding.EncodeToString(b)
}
