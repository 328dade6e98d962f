package state

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"
)

// TestKeysEqualJava compares with keys recorded from Java Kafka Streams 4.4.0.
func TestKeysEqualJava(t *testing.T) {
	data, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Keys []struct {
			Type, Key, B64 string
			Start, End     int64
			Sequence       uint32
		}
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	if len(recorded.Keys) < 20 {
		t.Fatalf("%d keys", len(recorded.Keys))
	}
	for _, k := range recorded.Keys {
		want, err := base64.StdEncoding.DecodeString(k.B64)
		if err != nil {
			t.Fatal(err)
		}
		if k.Type == "window" {
			if got := appendWindowSuffix([]byte(k.Key), k.Start, k.Sequence); !bytes.Equal(got, want) {
				t.Errorf("%+v is %x, in Java %x", k, got, want)
			}
			if key, start, sequence, ok := splitWindowKey(want); !ok || string(key) != k.Key || start != k.Start || sequence != k.Sequence {
				t.Errorf("%x is %q, %d, %d, %v, in Java %+v", want, key, start, sequence, ok, k)
			}
			continue
		}
		if got := appendSessionSuffix([]byte(k.Key), k.Start, k.End); !bytes.Equal(got, want) {
			t.Errorf("%+v is %x, in Java %x", k, got, want)
		}
		if key, start, end, ok := splitSessionKey(want); !ok || string(key) != k.Key || start != k.Start || end != k.End {
			t.Errorf("%x is %q, %d, %d, %v, in Java %+v", want, key, start, end, ok, k)
		}
	}
}

func FuzzSplitWindowKey(f *testing.F) {
	f.Add(appendWindowSuffix([]byte("key"), 1, 2))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if key, start, sequence, ok := splitWindowKey(b); ok && !bytes.Equal(appendWindowSuffix(key, start, sequence), b) {
			t.Errorf("%x does not survive", b)
		}
	})
}

func FuzzSplitSessionKey(f *testing.F) {
	f.Add(appendSessionSuffix([]byte("key"), 1, 2))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if key, start, end, ok := splitSessionKey(b); ok && !bytes.Equal(appendSessionSuffix(key, start, end), b) {
			t.Errorf("%x does not survive", b)
		}
	})
}

func FuzzParseVersion(f *testing.F) {
	f.Add([]byte{1, 'v'})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if value, err := parseVersion(b); err == nil && (value != nil) != (b[0] != 0) {
			t.Errorf("%x is %x", b, value)
		}
	})
}
