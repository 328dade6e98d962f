package streams

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
)

// The JSON of what an unmatched store has, in the form of the vectors.

func (k unmatchedKey[K]) MarshalJSON() ([]byte, error) {
	return json.Marshal(fmt.Sprintf("<%s,%s:%d>", sideName(k.left), textOf(k.key), k.timestamp))
}

func (e either[V, VOther]) MarshalJSON() ([]byte, error) {
	value := textOf(e.right)
	if e.isLeft {
		value = textOf(e.left)
	}
	return json.Marshal(fmt.Sprintf("<%s,%s>", sideName(e.isLeft), value))
}

func sideName(left bool) string {
	if left {
		return "left"
	}
	return "right"
}

func textOf(v any) string {
	if s, ok := v.(*string); ok && s != nil {
		return *s
	}
	return fmt.Sprint(v)
}

// TestUnmatchedEncodings: what is kept of a join has the bytes of Java.
func TestUnmatchedEncodings(t *testing.T) {
	keys := unmatchedKeySerde[string]{serde.String}
	checkEncoding(t, keys, unmatchedKey[string]{timestamp: 0x0102, left: true, key: "k"}, []byte("\x00\x00\x00\x00\x00\x00\x01\x02\x01k"))
	checkEncoding(t, keys, unmatchedKey[string]{timestamp: 1, key: ""}, []byte("\x00\x00\x00\x00\x00\x00\x00\x01\x00"))
	values := eitherSerde[string, int64]{serde.String, serde.Int64}
	checkEncoding(t, values, either[string, int64]{isLeft: true, left: "v"}, []byte("\x01v"))
	checkEncoding(t, values, either[string, int64]{right: 7}, []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x07"))
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		again(t, keys, data)
		again(t, values, data)
	})
}
