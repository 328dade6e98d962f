package mirror_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A second encoder, which knows nothing of the package's: it walks the schemas as
// KIP-1279 writes them down, and encodes flexible version 0 by the rules of
// KIP-482 with encoding/binary alone.

// field is one line of a schema.
type field struct {
	name   string
	kind   string  // int8, int16, int32, int64, bool, string, []string, [] (of fields)
	fields []field // of the elements
}

var (
	readRequestSchema = []field{
		{name: "MirrorName", kind: "string"},
		{name: "Topics", kind: "[]", fields: []field{
			{name: "Name", kind: "string"},
			{name: "Partitions", kind: "[]", fields: []field{
				{name: "PartitionIndex", kind: "int32"},
			}},
		}},
		{name: "NeedPartitionStates", kind: "bool"},
	}
	readResponseSchema = []field{
		{name: "ThrottleTimeMs", kind: "int32"},
		{name: "ErrorCode", kind: "int16"},
		{name: "Topics", kind: "[]", fields: []field{
			{name: "Name", kind: "string"},
			{name: "Partitions", kind: "[]", fields: []field{
				{name: "PartitionIndex", kind: "int32"},
				{name: "LastMirroredOffset", kind: "int64"},
				{name: "State", kind: "int8"},
				{name: "ErrorCode", kind: "int16"},
			}},
		}},
	}
	writeRequestSchema = []field{
		{name: "MirrorName", kind: "string"},
		{name: "Topics", kind: "[]", fields: []field{
			{name: "Name", kind: "string"},
			{name: "Partitions", kind: "[]", fields: []field{
				{name: "PartitionIndex", kind: "int32"},
				{name: "LastMirroredOffset", kind: "int64"},
				{name: "State", kind: "int8"},
			}},
		}},
		{name: "RemovedTopics", kind: "[]string"},
	}
	writeResponseSchema = []field{
		{name: "ThrottleTimeMs", kind: "int32"},
		{name: "ErrorCode", kind: "int16"},
		{name: "Topics", kind: "[]", fields: []field{
			{name: "Name", kind: "string"},
			{name: "Partitions", kind: "[]", fields: []field{
				{name: "PartitionIndex", kind: "int32"},
				{name: "ErrorCode", kind: "int16"},
			}},
		}},
	}
)

// object is a message, or an element of one, by the names of its fields.
type object map[string]any

// tag is the number of an unknown tagged field that an object has under "tags".
type tag struct {
	number uint64
	value  string
}

func encode(b *bytes.Buffer, fields []field, o object) {
	for _, f := range fields {
		switch v := o[f.name]; f.kind {
		case "string":
			encodeString(b, v.(string))
		case "[]string":
			all, _ := v.([]string)
			encodeLength(b, len(all))
			for _, s := range all {
				encodeString(b, s)
			}
		case "[]":
			all, _ := v.([]object)
			encodeLength(b, len(all))
			for _, e := range all {
				encode(b, f.fields, e)
			}
		default:
			if err := binary.Write(b, binary.BigEndian, v); err != nil {
				panic(fmt.Sprintf("%s %s: %v", f.kind, f.name, err))
			}
		}
	}
	tags, _ := o["tags"].([]tag)
	b.Write(binary.AppendUvarint(nil, uint64(len(tags))))
	for _, t := range tags {
		b.Write(binary.AppendUvarint(nil, t.number))
		b.Write(binary.AppendUvarint(nil, uint64(len(t.value))))
		b.WriteString(t.value)
	}
}

// encodeLength writes the length of something compact: one more than it is, so
// that 0 can be null.
func encodeLength(b *bytes.Buffer, n int) { b.Write(binary.AppendUvarint(nil, uint64(n)+1)) }

func encodeString(b *bytes.Buffer, s string) {
	encodeLength(b, len(s))
	b.WriteString(s)
}
