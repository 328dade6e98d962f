package streams

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/odradek-go/odradek/serde"
)

// TestJoinAndChangeEncodings compares the encodings of changes in repartition topics
// and of the unmatched records of joins with what was recorded from Java Kafka Streams
// 4.4.0, also while it is being upgraded.
func TestJoinAndChangeEncodings(t *testing.T) {
	var recorded struct {
		Entries []struct {
			Format, Key, Value string
			Timestamp          int64
			Left               bool
			New, Old           *string
			Error              string
			Bytes              []byte `json:"b64"`
		} `json:"join_and_change"`
	}
	data, err := os.ReadFile("testdata/join-and-change.json")
	if err == nil {
		err = json.Unmarshal(data, &recorded)
	}
	if err != nil || len(recorded.Entries) != 17 {
		t.Fatalf("%d entries, %v", len(recorded.Entries), err)
	}
	for _, e := range recorded.Entries {
		switch {
		case strings.HasPrefix(e.Format, "TimestampedKeyAndJoinSide"):
			checkEncoding(t, unmatchedKeySerde[string]{serde.String}, unmatchedKey[string]{timestamp: e.Timestamp, left: e.Left, key: e.Key}, e.Bytes)
		case strings.HasPrefix(e.Format, "LeftOrRightValue"):
			v := either[string, string]{isLeft: e.Left, right: e.Value}
			if e.Left {
				v.left, v.right = e.Value, ""
			}
			checkEncoding(t, eitherSerde[string, string]{serde.String, serde.String}, v, e.Bytes)
		case e.Error != "": // Java refuses what its older versions can't read
		default:
			var c change[string]
			if e.New != nil {
				c.new = nullable[string]{*e.New, true}
			}
			if e.Old != nil {
				c.old = nullable[string]{*e.Old, true}
			}
			checkEncoding(t, changeSerde[string]{serde.String}, c, e.Bytes)
		}
	}
}
