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

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
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

// vectorPrograms are the programs of the vectors in testdata, in Go.
var vectorPrograms = map[string]func(*Builder){
	"11-groupbykey-count": func(b *Builder) {
		Stream[string, string](b, "in").GroupByKey().Count().ToStream().To("out")
	},
	"12-groupby-count-default": func(b *Builder) {
		// With a type that has null, as Java's String has: a null value gives a
		// null key here.
		text := serde.Pointer(serde.String)
		value := func(_ string, v *string) *string { return v }
		in := Stream(b, "in", ConsumedWith(serde.String, text))
		GroupBy(in, value, GroupedWith(text, text)).Count().ToStream().To("out")
		in2 := Stream(b, "in2", ConsumedWith(serde.String, text))
		SelectKey(in2, value).GroupByKey(GroupedWith(text, text)).Count().ToStream().To("out2")
	},
}

func TestVectors(t *testing.T) {
	for name, program := range vectorPrograms {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", "vectors", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var v vector
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatal(err)
			}
			b := NewBuilder()
			program(b)
			topology := b.Build()
			c, err := topology.compile("app", -1)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := topology.Describe(); err != nil || text != v.Describe.Text {
				t.Errorf("describes as\n%s\n%v, in Java as\n%s", text, err, v.Describe.Text)
			}
			checkHeartbeat(t, c, v.HeartbeatTopology.Version, decode(t, v.HeartbeatTopology.Body))
			checkDescription(t, c, v)
			checkPipe(t, c, v)
		})
	}
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
				!equal(got.SinkTopic, want.SinkTopic) || !slices.Equal(got.Stores, want.Stores) || !slices.Equal(got.Successors, want.Successors) {
				t.Errorf("node %+v is described, in Java %+v", got, want)
			}
		}
	}
}

func equal[T comparable](a, b *T) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// checkPipe runs the vector's input through one task of each subtopology and
// compares all that is produced, in order.
func checkPipe(t *testing.T, c *compiled, v vector) {
	t.Helper()
	out := &recorder{}
	sources := make(map[string]taskmgr.Source)
	for id, sub := range c.topology {
		var stores []state.Store
		for _, spec := range sub.Stores {
			s := spec.New()
			if err := s.Open(state.OpenContext{Changelog: recordedChangelog{out, spec.Changelog}}); err != nil {
				t.Fatal(err)
			}
			stores = append(stores, s)
		}
		g, err := sub.NewGraph(taskmgr.NewContext(membership.TaskID{Subtopology: id}, out, stores...))
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range sub.SourceTopics {
			sources[topic] = g.Source(topic)
		}
	}
	for i, step := range v.Pipe.Steps {
		out.records = nil
		queue := []*kgo.Record{step.Input.record(t)}
		for seen := 0; len(queue) > 0; queue = queue[1:] {
			rec := queue[0]
			ts, err := sources[rec.Topic].Timestamp(rec, -1)
			if err != nil {
				t.Fatal(err)
			}
			if err := sources[rec.Topic].Process(rec, ts); err != nil {
				t.Fatal(err)
			}
			for ; seen < len(out.records); seen++ {
				if r := out.records[seen]; sources[r.Topic] != nil { // a repartition topic
					queue = append(queue, r)
				}
			}
		}
		var want []*kgo.Record
		for _, r := range step.Output {
			want = append(want, r.record(t))
		}
		if got := dump(out.records); got != dump(want) {
			t.Errorf("step %d produced\n%sin Java\n%s", i, got, dump(want))
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
			nullable(r.Key), nullable(r.Value),
		}, " "))
		for _, h := range r.Headers {
			b.WriteString(" " + h.Key + ":" + nullable(h.Value))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func nullable(b []byte) string {
	if b == nil {
		return "null"
	}
	return strconv.Quote(string(b))
}

// recorder is a Collector that keeps what is sent.
type recorder struct{ records []*kgo.Record }

func (*recorder) Grab() []byte         { return make([]byte, 0, 16) }
func (*recorder) Keep(b []byte) []byte { return b }

func (r *recorder) Send(topic string, partition int32, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	r.records = append(r.records, &kgo.Record{
		Topic: topic, Partition: partition, Key: key, Value: value, Timestamp: time.UnixMilli(timestamp), Headers: headers,
	})
	return nil
}

func (r *recorder) Log(to *taskmgr.Changelog, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	return r.Send(to.Topic, to.Partition, key, value, timestamp, headers)
}

type recordedChangelog struct {
	out   *recorder
	topic string
}

func (c recordedChangelog) Append(key, value []byte, timestamp int64, headers []state.Header) error {
	var out []kgo.RecordHeader
	for _, h := range headers {
		out = append(out, kgo.RecordHeader(h))
	}
	return c.out.Send(c.topic, 0, bytes.Clone(key), bytes.Clone(value), timestamp, out)
}
