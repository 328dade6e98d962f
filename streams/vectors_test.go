package streams

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/taskmgr"
)

// vector is what Java Kafka Streams 4.4.0 computed for a program.
type vector struct {
	Describe          struct{ Text string }
	HeartbeatTopology struct {
		Body    string `json:"example_request_body_b64"`
		Version int16  `json:"example_request_version"`
	} `json:"heartbeat_topology"`
	Description struct {
		Subtopologies []struct {
			SubtopologyID string
			Nodes         []struct {
				Name         string
				NodeType     int8
				SourceTopics []string
				SinkTopic    *string
				Stores       []string
				Successors   []string
			}
		}
	} `json:"topology_description_update"`
	Pipe struct {
		Steps []struct {
			Input  *vectorRecord
			Output []vectorRecord
		}
		FinalStores map[string]struct {
			Entries []struct{ Key, Value json.RawMessage }
		} `json:"final_stores"`
	}
}

type vectorRecord struct {
	Topic     string
	Partition *int32
	Timestamp int64
	Key       *string `json:"key_b64"`
	Value     *string `json:"value_b64"`
	Headers   []struct {
		Key   string
		Value string `json:"value_b64"`
	}
}

func TestVectors(t *testing.T) {
	for name, program := range vectorPrograms {
		t.Run(name, func(t *testing.T) { checkVector(t, name, program(NewBuilder())) })
	}
	files, err := filepath.Glob(filepath.Join("testdata", "vectors", "*.json"))
	if err != nil || len(files) != len(vectorPrograms) {
		t.Errorf("%d programs for %d vectors (%v)", len(vectorPrograms), len(files), err)
	}
}

func checkVector(t *testing.T, name string, topology *Topology) {
	data, err := os.ReadFile(filepath.Join("testdata", "vectors", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var v vector
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	c, err := topology.compile("app", -1)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := topology.Describe(); err != nil || text != v.Describe.Text {
		t.Errorf("describes as\n%s\n%v, in Java as\n%s", text, err, v.Describe.Text)
	}
	if v.HeartbeatTopology.Body != "" {
		checkHeartbeat(t, c, v.HeartbeatTopology.Version, decode(t, v.HeartbeatTopology.Body))
	}
	checkDescription(t, c, v)
	checkPipe(t, c, v)
}

// checkHeartbeat compares the bytes of a whole joining request.
func checkHeartbeat(t *testing.T, c *compiled, version int16, want []byte) {
	t.Helper()
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	if err := func() error { req.Version = version; return req.ReadFrom(want) }(); err != nil {
		t.Fatal(err)
	}
	req.Topology = c.wire
	if got := req.AppendTo(nil); !bytes.Equal(got, want) {
		t.Errorf("the topology of the heartbeat is\n%q\nin Java\n%q", got, want)
	}
}

func checkDescription(t *testing.T, c *compiled, v vector) {
	t.Helper()
	for i, want := range v.Description.Subtopologies {
		got := c.description.Subtopologies[i]
		if got.SubtopologyID != want.SubtopologyID || len(got.Nodes) != len(want.Nodes) {
			t.Fatalf("subtopology %q with %d nodes is described, in Java %q with %d", got.SubtopologyID, len(got.Nodes), want.SubtopologyID, len(want.Nodes))
		}
		for j, want := range want.Nodes {
			got := got.Nodes[j]
			if got.Name != want.Name || got.NodeType != want.NodeType || !slices.Equal(got.SourceTopics, want.SourceTopics) ||
				!equalPointers(got.SinkTopic, want.SinkTopic) || !slices.Equal(got.Stores, want.Stores) || !slices.Equal(got.Successors, want.Successors) {
				t.Errorf("node %+v is described, in Java %+v", got, want)
			}
		}
	}
}

func (r *vectorRecord) record(t *testing.T) *kgo.Record {
	rec := &kgo.Record{Topic: r.Topic, Partition: taskmgr.AnyPartition, Timestamp: time.UnixMilli(r.Timestamp)}
	if r.Partition != nil {
		rec.Partition = *r.Partition
	}
	if r.Key != nil {
		rec.Key = decode(t, *r.Key)
	}
	if r.Value != nil {
		rec.Value = decode(t, *r.Value)
	}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: h.Key, Value: decode(t, h.Value)})
	}
	return rec
}

func decode(t *testing.T, b64 string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func dump(records []*kgo.Record) string {
	var b strings.Builder
	for _, r := range records {
		b.WriteString(strings.Join([]string{
			r.Topic, strconv.Itoa(int(r.Partition)), strconv.FormatInt(r.Timestamp.UnixMilli(), 10),
			quoted(r.Key), quoted(r.Value),
		}, " "))
		for _, h := range r.Headers {
			b.WriteString(" " + h.Key + ":" + quoted(h.Value))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func quoted(b []byte) string {
	if b == nil {
		return "null"
	}
	return strconv.Quote(string(b))
}
