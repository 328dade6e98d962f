package streams

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
)

// The JSON of a stored subscription and its key, in the form of the vectors.

func (k combinedKey[KOther, K]) MarshalJSON() ([]byte, error) {
	data, err := combinedKeySerde[KOther, K]{serdeOr[KOther](nil), serdeOr[K](nil)}.Append([]byte{}, k)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"b64": base64.StdEncoding.EncodeToString(data)})
}

var instructionNames = []string{
	"DELETE_KEY_NO_PROPAGATE", "DELETE_KEY_AND_PROPAGATE", "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE", "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE",
}

func (s subscription[K]) MarshalJSON() ([]byte, error) {
	return json.Marshal(fmt.Sprintf("SubscriptionWrapper{version=%d, primaryKey=%v, instruction=%s, hash=[%d, %d], primaryPartition=%d}",
		s.version, s.key, instructionNames[s.instruction], int64(s.hash.v[0]), int64(s.hash.v[1]), s.partition))
}

// foreignKeyVector is one encoding of Java's.
type foreignKeyVector struct {
	Format      string
	Version     byte
	Instruction byte `json:"instruction_byte"`
	Hash        []int64
	PrimaryKey  string  `json:"primary_key"`
	ForeignKey  string  `json:"foreign_key"`
	Value       *string `json:"foreign_value"`
	Partition   *int32  `json:"primary_partition"`
	B64         []byte
	InputB64    []byte `json:"input_b64"`
	H1, H2      int64
}

func (v *foreignKeyVector) hash() (hash nullable[hash128]) {
	if v.Hash != nil {
		hash = nullable[hash128]{hash128{uint64(v.Hash[0]), uint64(v.Hash[1])}, true}
	}
	return hash
}

// TestForeignKeyEncodings: what members of a foreign-key join tell each other has
// the bytes of Java, in both directions.
func TestForeignKeyEncodings(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "foreignkey.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []foreignKeyVector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, v := range vectors {
		seen[v.Format]++
		switch v.Format {
		case "SubscriptionWrapper":
			want := subscription[string]{key: v.PrimaryKey, hash: v.hash(), instruction: instruction(v.Instruction), version: v.Version, partition: AnyPartition}
			if v.Partition != nil {
				want.partition = *v.Partition
			}
			checkEncoding(t, subscriptionSerde[string]{serde.String}, want, v.B64)
		case "SubscriptionResponseWrapper":
			want := response[string]{hash: v.hash(), partition: AnyPartition}
			if v.Value != nil && *v.Value != "" { // an empty one is read as null
				want.value = nullable[string]{*v.Value, true}
			}
			checkEncoding(t, responseSerde[string]{serde.String}, want, v.B64)
		case "CombinedKey (subscription store key)":
			checkEncoding(t, combinedKeySerde[string, string]{serde.String, serde.String},
				combinedKey[string, string]{nullable[string]{v.ForeignKey, true}, v.PrimaryKey}, v.B64)
		case "CombinedKey prefix":
			if got, err := (combinedKeySerde[string, string]{foreign: serde.String}).appendPrefix(nil, v.ForeignKey); err != nil || !bytes.Equal(got, v.B64) {
				t.Errorf("the prefix of %q is %x, %v, in Java %x", v.ForeignKey, got, err, v.B64)
			}
		default:
			if got := murmur3(v.InputB64); got != (hash128{uint64(v.H1), uint64(v.H2)}) {
				t.Errorf("the hash of %x is %x, in Java %x %x", v.InputB64, got, uint64(v.H1), uint64(v.H2))
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("the formats are %v", seen)
	}
}

func checkEncoding[T comparable](t *testing.T, s serde.Serde[T], v T, want []byte) {
	t.Helper()
	if got, err := s.Append([]byte{}, v); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%+v is written as %x, %v, in Java as %x", v, got, err, want)
	}
	if got, err := s.Decode(want); err != nil || got != v {
		t.Errorf("%x is read as %+v, %v, want %+v", want, got, err, v)
	}
}

// TestForeignKeyGarbage: whatever comes from a topic is a value or an error.
func TestForeignKeyGarbage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		again(t, subscriptionSerde[string]{serde.String}, data)
		again(t, responseSerde[string]{serde.String}, data)
		again(t, combinedKeySerde[string, string]{serde.String, serde.String}, data)
	})
}

// again: what is read is written as it was.
func again[T any](t *rapid.T, s serde.Serde[T], data []byte) {
	v, err := s.Decode(data)
	if err != nil {
		return
	}
	if _, err := s.Append([]byte{}, v); err != nil {
		t.Errorf("%x is read as %+v, which can't be written: %v", data, v, err)
	}
}
