package mirror_test

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/mirror"
)

var keys = mirror.Keys{ReadMirrorStates: 1000, WriteMirrorStates: 1001}

// message is what requests and responses have in common.
type message interface {
	Key() int16
	MaxVersion() int16
	GetVersion() int16
	SetVersion(int16)
	IsFlexible() bool
	AppendTo([]byte) []byte
	ReadFrom([]byte) error
}

var (
	_ kmsg.Request          = (*mirror.ReadMirrorStatesRequest)(nil)
	_ kmsg.Request          = (*mirror.WriteMirrorStatesRequest)(nil)
	_ kmsg.Response         = (*mirror.ReadMirrorStatesResponse)(nil)
	_ kmsg.Response         = (*mirror.WriteMirrorStatesResponse)(nil)
	_ kmsg.ThrottleResponse = (*mirror.ReadMirrorStatesResponse)(nil)
	_ kmsg.ThrottleResponse = (*mirror.WriteMirrorStatesResponse)(nil)
)

func emptyMessages() []message {
	read, write := mirror.NewReadMirrorStatesRequest(keys, ""), mirror.NewWriteMirrorStatesRequest(keys, "")
	return []message{read, read.ResponseKind(), write, write.ResponseKind()}
}

// Encodings built by hand from the schemas, byte by byte.
func TestBytes(t *testing.T) {
	read := mirror.NewReadMirrorStatesRequest(keys, "dr")
	read.Topics = []mirror.Topic[mirror.ReadPartition]{
		{Name: "in", Partitions: []mirror.ReadPartition{{PartitionIndex: 0}, {PartitionIndex: 258}}},
		{Name: "x"},
	}
	answer := read.ResponseKind().(*mirror.ReadMirrorStatesResponse)
	answer.ThrottleMillis, answer.ErrorCode = 100, 15
	answer.Topics = []mirror.Topic[mirror.ReadPartitionResult]{{Name: "in", Partitions: []mirror.ReadPartitionResult{
		{PartitionIndex: 1, LastMirroredOffset: 1 << 40, State: 5},
		{PartitionIndex: 2, LastMirroredOffset: -1, State: -1, ErrorCode: 3},
	}}}
	write := mirror.NewWriteMirrorStatesRequest(keys, "dr")
	write.Topics = []mirror.Topic[mirror.WritePartition]{{Name: "in", Partitions: []mirror.WritePartition{
		{PartitionIndex: 1, LastMirroredOffset: 41, State: 1},
	}}}
	write.RemovedTopics = []string{"a", "bc"}
	written := write.ResponseKind().(*mirror.WriteMirrorStatesResponse)
	written.Topics = []mirror.Topic[mirror.WritePartitionResult]{{Name: "in", Partitions: []mirror.WritePartitionResult{
		{PartitionIndex: 1, ErrorCode: 16},
	}}}

	for name, test := range map[string]struct {
		message message
		bytes   string
	}{
		"read": {read, "03 6472" + // MirrorName
			"03" + // two topics
			"03 696e 03 00000000 00 00000102 00 00" + // in, two partitions
			"02 78 01 00" + // x, none
			"01" + // NeedPartitionStates
			"00"}, // no tags
		"read nothing": {&mirror.ReadMirrorStatesRequest{}, "01 01 00 00"},
		"read answered": {answer, "00000064 000f" + // ThrottleTimeMs, ErrorCode
			"02 03 696e 03" + // one topic with two partitions
			"00000001 0000010000000000 05 0000 00" +
			"00000002 ffffffffffffffff ff 0003 00" +
			"00 00"},
		"write": {write, "03 6472" +
			"02 03 696e 02 00000001 0000000000000029 01 00 00" +
			"03 02 61 03 6263" + // RemovedTopics
			"00"},
		"write nothing": {&mirror.WriteMirrorStatesRequest{}, "01 01 01 00"},
		"written": {written, "00000000 0000" +
			"02 03 696e 02 00000001 0010 00 00" +
			"00"},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := hex.DecodeString(strings.ReplaceAll(test.bytes, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			if got := test.message.AppendTo([]byte("before"))[len("before"):]; !bytes.Equal(got, want) {
				t.Errorf("encoded\n%x, want\n%x", got, want)
			}
			back := reflect.New(reflect.TypeOf(test.message).Elem()).Interface().(message)
			if err := back.ReadFrom(want); err != nil {
				t.Fatal(err)
			}
			reflect.ValueOf(back).Elem().FieldByName("APIKey").SetInt(int64(test.message.Key()))
			if !reflect.DeepEqual(back, test.message) {
				t.Errorf("decoded\n%+v, want\n%+v", back, test.message)
			}
			for n := range want {
				if err := back.ReadFrom(want[:n]); err == nil {
					t.Errorf("the first %d of %d bytes are taken for a whole message", n, len(want))
				}
			}
		})
	}
}

// What kgo wants to know of a message.
func TestMessages(t *testing.T) {
	for _, m := range emptyMessages() {
		m.SetVersion(0)
		if m.GetVersion() != 0 || m.MaxVersion() != 0 || !m.IsFlexible() {
			t.Errorf("%T: version %d of %d, flexible: %v", m, m.GetVersion(), m.MaxVersion(), m.IsFlexible())
		}
		if r, ok := m.(kmsg.Response); ok {
			if kind := r.RequestKind(); kind.Key() != r.Key() || kind.ResponseKind().Key() != r.Key() {
				t.Errorf("%T: key %d, its request's %d", m, r.Key(), kind.Key())
			}
			r.(kmsg.SetThrottleResponse).SetThrottle(7)
			if ms, after := r.(kmsg.ThrottleResponse).Throttle(); ms != 7 || !after {
				t.Errorf("%T: throttled for %d ms, after the response: %v", m, ms, after)
			}
		}
	}
	if read := mirror.NewReadMirrorStatesRequest(keys, "m"); read.Key() != 1000 || !read.NeedPartitionStates {
		t.Errorf("%+v", read)
	}
	if back := new(mirror.ReadMirrorStatesResponse).RequestKind().(*mirror.ReadMirrorStatesRequest); !back.NeedPartitionStates {
		t.Error("NeedPartitionStates is not true by default")
	}
}

// Both encoders write the same, and what was written is read back.
func TestSecondEncoder(t *testing.T) {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "topic", strings.Repeat("long", 60)}), rapid.String())
	tags := func(t *rapid.T) (kmsg.Tags, []tag) {
		var ours kmsg.Tags
		var theirs []tag
		for n := range uint64(rapid.IntRange(0, 2).Draw(t, "tags")) {
			value := text.Draw(t, "tag")
			ours.Set(uint32(n*200), []byte(value))
			theirs = append(theirs, tag{n * 200, value})
		}
		return ours, theirs
	}
	rapid.Check(t, func(t *rapid.T) {
		for _, test := range []func(*rapid.T) (message, []field, object){
			func(t *rapid.T) (message, []field, object) {
				m := &mirror.ReadMirrorStatesRequest{MirrorName: text.Draw(t, "mirror"), NeedPartitionStates: rapid.Bool().Draw(t, "need")}
				o := object{"MirrorName": m.MirrorName, "NeedPartitionStates": m.NeedPartitionStates}
				m.UnknownTags, o["tags"] = split(tags(t))
				m.Topics, o["Topics"] = topics(t, text, tags, func(t *rapid.T, p *mirror.ReadPartition, o object) {
					p.PartitionIndex = rapid.Int32().Draw(t, "partition")
					o["PartitionIndex"] = p.PartitionIndex
					p.UnknownTags, o["tags"] = split(tags(t))
				})
				return m, readRequestSchema, o
			},
			func(t *rapid.T) (message, []field, object) {
				m := &mirror.ReadMirrorStatesResponse{ThrottleMillis: rapid.Int32().Draw(t, "throttle"), ErrorCode: rapid.Int16().Draw(t, "code")}
				o := object{"ThrottleTimeMs": m.ThrottleMillis, "ErrorCode": m.ErrorCode}
				m.UnknownTags, o["tags"] = split(tags(t))
				m.Topics, o["Topics"] = topics(t, text, tags, func(t *rapid.T, p *mirror.ReadPartitionResult, o object) {
					p.PartitionIndex, p.LastMirroredOffset = rapid.Int32().Draw(t, "partition"), rapid.Int64().Draw(t, "offset")
					p.State, p.ErrorCode = rapid.Int8().Draw(t, "state"), rapid.Int16().Draw(t, "code")
					o["PartitionIndex"], o["LastMirroredOffset"], o["State"], o["ErrorCode"] = p.PartitionIndex, p.LastMirroredOffset, p.State, p.ErrorCode
					p.UnknownTags, o["tags"] = split(tags(t))
				})
				return m, readResponseSchema, o
			},
			func(t *rapid.T) (message, []field, object) {
				m := &mirror.WriteMirrorStatesRequest{MirrorName: text.Draw(t, "mirror")}
				for range rapid.IntRange(0, 3).Draw(t, "removed") {
					m.RemovedTopics = append(m.RemovedTopics, text.Draw(t, "topic"))
				}
				o := object{"MirrorName": m.MirrorName, "RemovedTopics": m.RemovedTopics}
				m.UnknownTags, o["tags"] = split(tags(t))
				m.Topics, o["Topics"] = topics(t, text, tags, func(t *rapid.T, p *mirror.WritePartition, o object) {
					p.PartitionIndex, p.LastMirroredOffset, p.State = rapid.Int32().Draw(t, "partition"), rapid.Int64().Draw(t, "offset"), rapid.Int8().Draw(t, "state")
					o["PartitionIndex"], o["LastMirroredOffset"], o["State"] = p.PartitionIndex, p.LastMirroredOffset, p.State
					p.UnknownTags, o["tags"] = split(tags(t))
				})
				return m, writeRequestSchema, o
			},
			func(t *rapid.T) (message, []field, object) {
				m := &mirror.WriteMirrorStatesResponse{ThrottleMillis: rapid.Int32().Draw(t, "throttle"), ErrorCode: rapid.Int16().Draw(t, "code")}
				o := object{"ThrottleTimeMs": m.ThrottleMillis, "ErrorCode": m.ErrorCode}
				m.UnknownTags, o["tags"] = split(tags(t))
				m.Topics, o["Topics"] = topics(t, text, tags, func(t *rapid.T, p *mirror.WritePartitionResult, o object) {
					p.PartitionIndex, p.ErrorCode = rapid.Int32().Draw(t, "partition"), rapid.Int16().Draw(t, "code")
					o["PartitionIndex"], o["ErrorCode"] = p.PartitionIndex, p.ErrorCode
					p.UnknownTags, o["tags"] = split(tags(t))
				})
				return m, writeResponseSchema, o
			},
		} {
			m, schema, o := test(t)
			var want bytes.Buffer
			encode(&want, schema, o)
			got := m.AppendTo(nil)
			if !bytes.Equal(got, want.Bytes()) {
				t.Fatalf("%T: encoded\n%x, want\n%x", m, got, want.Bytes())
			}
			back := reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)
			if err := back.ReadFrom(got); err != nil {
				t.Fatalf("%T: %v", m, err)
			}
			if again := back.AppendTo(nil); !bytes.Equal(again, got) {
				t.Fatalf("%T: read back and encoded\n%x, want\n%x", m, again, got)
			}
		}
	})
}

func split(ours kmsg.Tags, theirs []tag) (kmsg.Tags, []tag) { return ours, theirs }

// topics draws topics for both encoders.
func topics[P any](t *rapid.T, text *rapid.Generator[string], tags func(*rapid.T) (kmsg.Tags, []tag), partition func(*rapid.T, *P, object)) ([]mirror.Topic[P], []object) {
	var ours []mirror.Topic[P]
	var theirs []object
	for range rapid.IntRange(0, 3).Draw(t, "topics") {
		topic := mirror.Topic[P]{Name: text.Draw(t, "topic")}
		o := object{"Name": topic.Name}
		topic.UnknownTags, o["tags"] = split(tags(t))
		var partitions []object
		for range rapid.SampledFrom([]int{0, 1, 2, 130}).Draw(t, "partitions") {
			var p P
			po := object{}
			partition(t, &p, po)
			topic.Partitions, partitions = append(topic.Partitions, p), append(partitions, po)
		}
		o["Partitions"] = partitions
		ours, theirs = append(ours, topic), append(theirs, o)
	}
	return ours, theirs
}

func TestMalformed(t *testing.T) {
	for name, test := range map[string]struct {
		message message
		bytes   []byte
		err     string
	}{
		"null topics":         {new(mirror.ReadMirrorStatesRequest), []byte{1, 0, 1, 0}, "Topics is null"},
		"null partitions":     {new(mirror.WriteMirrorStatesRequest), []byte{1, 2, 1, 0, 0, 1, 0}, "Partitions is null"},
		"null removed topics": {new(mirror.WriteMirrorStatesRequest), []byte{1, 1, 0, 0}, "RemovedTopics is null"},
		"null name":           {new(mirror.WriteMirrorStatesRequest), []byte{0, 1, 1, 0}, kbin.ErrNotEnoughData.Error()},
		"empty":               {new(mirror.ReadMirrorStatesResponse), nil, kbin.ErrNotEnoughData.Error()},
	} {
		if err := test.message.ReadFrom(test.bytes); err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Lengths that the message doesn't keep must not make memory.
func TestMalformedLengths(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x07} // 2³¹−1
	filler := make([]byte, 1<<10)
	for name, test := range map[string]struct {
		message message
		prefix  []byte
	}{
		"mirror name":    {new(mirror.ReadMirrorStatesRequest), nil},
		"topics":         {new(mirror.ReadMirrorStatesRequest), []byte{1}},
		"partitions":     {new(mirror.WriteMirrorStatesRequest), []byte{1, 2, 1}},
		"removed topics": {new(mirror.WriteMirrorStatesRequest), []byte{1, 1}},
		"tags":           {new(mirror.WriteMirrorStatesRequest), []byte{1, 1, 1}},
		"results":        {new(mirror.ReadMirrorStatesResponse), []byte{0, 0, 0, 0, 0, 0}},
		"written":        {new(mirror.WriteMirrorStatesResponse), []byte{0, 0, 0, 0, 0, 0, 2, 1}},
	} {
		for _, length := range [][]byte{huge, {0xff, 0xff, 0xff, 0xff, 0x0f}, {0x80, 0x08}} {
			src := bytes.Join([][]byte{test.prefix, length, filler}, nil)
			if used := allocated(func() { _ = test.message.ReadFrom(src) }); used > 256<<10 {
				t.Errorf("%s: %d bytes of memory for a message of %d", name, used, len(src))
			}
		}
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Whatever comes in, decoding neither panics nor makes much more memory than the
// message has bytes, and what is taken can be sent on.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(0), []byte{3, 'd', 'r', 2, 2, 'x', 2, 0, 0, 0, 1, 0, 0, 1, 0})
	f.Add(uint8(1), []byte{0, 0, 0, 0, 0, 0, 2, 2, 'x', 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 5, 0, 0, 0, 0, 0})
	f.Add(uint8(2), []byte{3, 'd', 'r', 2, 2, 'x', 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 5, 0, 0, 2, 2, 'y', 0})
	f.Add(uint8(3), []byte{0, 0, 0, 0, 0, 0, 2, 2, 'x', 2, 0, 0, 0, 1, 0, 0, 0, 0, 1, 7, 2, 'h', 'i'})
	f.Add(uint8(2), []byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, which uint8, src []byte) {
		m := emptyMessages()[which%4]
		var err error
		if used := allocated(func() { err = m.ReadFrom(src) }); used > 1<<20+256*uint64(len(src)) {
			t.Fatalf("%T: %d bytes of memory for a message of %d", m, used, len(src))
		}
		if err != nil {
			return
		}
		sent := m.AppendTo(nil)
		back := emptyMessages()[which%4]
		if err := back.ReadFrom(sent); err != nil {
			t.Fatalf("%T: what was decoded and encoded can't be decoded: %v", m, err)
		}
		if !bytes.Equal(back.AppendTo(nil), sent) {
			t.Fatalf("%T: changes when it is sent on", m)
		}
	})
}
