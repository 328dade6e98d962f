package taskmgr

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// TestMetadataEqualsJava compares with commit metadata recorded from Java Kafka
// Streams 4.4.0.
func TestMetadataEqualsJava(t *testing.T) {
	var recorded struct {
		Cases []struct {
			Metadata      string
			PartitionTime *int64           `json:"partition_time"`
			Processors    map[string]int64 `json:"processor_metadata"`
			HashMap       bool             `json:"hash_map"` // and not a map in the keys' order
			Decoded       *struct {
				PartitionTime int64 `json:"partition_time"`
			}
		} `json:"offset_commit_metadata"`
	}
	readJSON(t, "commit-metadata.json", &recorded)
	encoded, decoded := 0, 0
	for _, c := range recorded.Cases {
		var want offsetMetadata
		switch {
		case c.PartitionTime != nil:
			want = offsetMetadata{*c.PartitionTime, c.Processors}
			if len(c.Processors) < 2 || c.HashMap {
				encoded++
				if got := want.encode(); got != c.Metadata {
					t.Errorf("%v is encoded as %q, in Java as %q", want, got, c.Metadata)
				}
			}
		case c.Decoded != nil:
			want.time = c.Decoded.PartitionTime
			decoded++
		}
		if got := decodeMetadata(c.Metadata); got.time != want.time || !maps.Equal(got.processors, want.processors) {
			t.Errorf("%q is decoded as %v, in Java as %v", c.Metadata, got, want)
		}
	}
	if encoded == 0 || decoded == 0 {
		t.Errorf("%d cases to encode and %d to decode", encoded, decoded)
	}
}

// TestBrokenMetadata: what Java can't read, we don't read either, but the time that
// stands before it.
func TestBrokenMetadata(t *testing.T) {
	whole := offsetMetadata{7, map[string]int64{"k1": 5}}
	b, err := base64.StdEncoding.DecodeString(whole.encode())
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(b) {
		got, want := decodeMetadata(base64.StdEncoding.EncodeToString(b[:n])), int64(7)
		if n < 9 {
			want = -1
		}
		if got.time != want || len(got.processors) > 0 {
			t.Errorf("%d bytes of %d are decoded as %v", n, len(b), got)
		}
	}
}

func FuzzDecodeMetadata(f *testing.F) {
	f.Add("AgAAAAAAAAB6")
	f.Add("AgAAAAAAAAB6AAAAAgAAAAJrMQAAAAAAAAAFAAAABGtleTIAAAAAAAAACQ==")
	f.Add("%%%")
	f.Fuzz(func(t *testing.T, s string) {
		m := decodeMetadata(s)
		if again := decodeMetadata(m.encode()); again.time != m.time || !maps.Equal(again.processors, m.processors) {
			t.Errorf("%q is %v, which does not survive: %v", s, m, again)
		}
	})
}

// TestPartitionerEqualsJava compares with partitions recorded from Java Kafka
// 4.4.0.
func TestPartitionerEqualsJava(t *testing.T) {
	var recorded struct {
		Keys []struct {
			Key        string `json:"key_b64"`
			Partitions map[string]int
		}
	}
	readJSON(t, "murmur2.json", &recorded)
	if len(recorded.Keys) == 0 {
		t.Fatal("no keys")
	}
	p := Partitioner().ForTopic("t")
	for _, k := range recorded.Keys {
		key, err := base64.StdEncoding.DecodeString(k.Key)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range k.Partitions {
			n, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			r := &kgo.Record{Key: key, Partition: AnyPartition}
			if got := p.Partition(r, n); got != want || !p.RequiresConsistency(r) {
				t.Errorf("key %x is in partition %d of %d, in Java in %d", key, got, n, want)
			}
		}
	}
}

func TestPartitionerRespectsPartition(t *testing.T) {
	p := Partitioner().ForTopic("t")
	for _, key := range [][]byte{nil, {}, []byte("key")} {
		r := &kgo.Record{Key: key, Partition: 3}
		if got := p.Partition(r, 5); got != 3 || !p.RequiresConsistency(r) {
			t.Errorf("a record for partition 3 with key %q goes to %d", key, got)
		}
	}
	if p.RequiresConsistency(&kgo.Record{Partition: AnyPartition}) {
		t.Error("a record without a key is bound to a partition")
	}
}

// TestBuffer checks that what was kept is never written to again.
func TestBuffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b buffer
		type kept struct{ got, want []byte }
		var all []kept
		for range rapid.IntRange(1, 200).Draw(t, "records") {
			want := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, rapid.SampledFrom([]int{0, 1, 8, 500, bufferRoom, 5 * bufferRoom, bufferSize + 1}).Draw(t, "size"))
			grabbed := append(b.Grab(), want...)
			if rapid.Bool().Draw(t, "keep") {
				got := b.Keep(grabbed)
				if got == nil {
					t.Fatal("empty became null")
				}
				all = append(all, kept{got, want})
			}
		}
		for i, k := range all {
			if !bytes.Equal(k.got, k.want) {
				t.Fatalf("record %d was overwritten", i)
			}
			_ = append(k.got, 'x') // must not reach into the next one
		}
		for i, k := range all {
			if !bytes.Equal(k.got, k.want) {
				t.Fatalf("appending to another record changed record %d", i)
			}
		}
	})
}
