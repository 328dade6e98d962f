package state

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/odradek-go/odradek/serde"
)

// TestHeadersEqualJava compares what stores with headers keep with what was recorded
// from Java Kafka Streams 4.4.0.
func TestHeadersEqualJava(t *testing.T) {
	var recorded struct {
		StoreValues []struct {
			Format, Value string
			Timestamp     int64
			Headers       []struct {
				Key   string
				Value []byte `json:"value_b64"`
			}
			Bytes []byte `json:"b64"`
		} `json:"store_values"`
	}
	data, err := os.ReadFile("testdata/store-values.json")
	if err == nil {
		err = json.Unmarshal(data, &recorded)
	}
	if err != nil || len(recorded.StoreValues) != 12 {
		t.Fatalf("%d values, %v", len(recorded.StoreValues), err)
	}
	for _, v := range recorded.StoreValues {
		var headers []Header
		for _, h := range v.Headers {
			headers = append(headers, Header(h))
		}
		c := newCodec(serde.String, serde.String)
		c.headers = !strings.HasPrefix(v.Format, "ValueAndTimestamp")
		var got []byte
		switch strings.Fields(v.Format)[0] {
		case "HeadersSerializer.serialize": // which has no length before them
			got, _, err = cutHeaders(appendHeaders(nil, headers))
		case "AggregationWithHeaders":
			got, err = c.encodeValue(c.prefix(headers), v.Value)
		default:
			got, err = c.encodeTimestamped(v.Value, v.Timestamp, headers)
		}
		if err != nil || !bytes.Equal(got, v.Bytes) {
			t.Errorf("%s of %q is %q (%v), in Java %q", v.Format, headers, got, err, v.Bytes)
		}
	}
}

// FuzzReadHeaders: headers that are damaged are an error or something else, no panic.
func FuzzReadHeaders(f *testing.F) {
	f.Add(appendHeaders(nil, nil))
	f.Add(appendHeaders(nil, []Header{{Key: "h", Value: []byte("v")}, {Key: "null"}}))
	f.Add([]byte("\x04\xfe\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		headers, err := readHeaders(data)
		if err != nil {
			return
		}
		again, err := readHeaders(appendHeaders(nil, headers))
		if err != nil || len(again) != len(headers) {
			t.Errorf("%q is read as %q, and that again as %q (%v)", data, headers, again, err)
		}
	})
}
