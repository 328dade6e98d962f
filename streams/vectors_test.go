package streams_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/state"
	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
	"github.com/odradek-go/odradek/taskmgr"
)

// vector is what Java Kafka Streams 4.4.0 computed for a program.
type vector struct {
	Config            map[string]string
	Describe          struct{ Text string }
	HeartbeatTopology struct {
		Body    string `json:"example_request_body_b64"`
		Version int16  `json:"example_request_version"`
	} `json:"heartbeat_topology"`
	Description struct {
		Subtopologies []struct {
			SubtopologyID string
			Nodes         []vectorNode
		}
		GlobalStores []struct{ Source, Processor vectorNode }
	} `json:"topology_description_update"`
	Pipe struct {
		Steps []struct {
			Input   *vectorRecord
			Advance int64  `json:"advance_wall_clock_ms"` // where there is no input
			Query   string // nor this
			Result  *string
			Output  []vectorRecord
		}
		FinalStores map[string]struct {
			Entries []struct{ Key, Value json.RawMessage }
		} `json:"final_stores"`
		Committed map[string]struct{ Metadata []byte } `json:"final_committed_offsets"`
	}
}

type vectorNode struct {
	Name         string
	NodeType     int8
	SourceTopics []string
	SinkTopic    *string
	Stores       []string
	Successors   []string
}

type vectorRecord struct {
	Topic     string
	Partition *int32
	Timestamp *int64  // nil: left to the producer
	Key       *string `json:"key_b64"`
	Value     *string `json:"value_b64"`
	Headers   []struct {
		Key   string
		Value *string `json:"value_b64"`
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
	if text, err := topology.Describe(); err != nil || text != v.Describe.Text {
		t.Errorf("describes as\n%s\n%v, in Java as\n%s", text, err, v.Describe.Text)
	}
	cfg := v.config(t)
	c, err := topology.Compile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	// Java sends no patterns, and refuses the topology because of them before it
	// sends anything.
	if v.HeartbeatTopology.Body != "" && name != "09-source-pattern" {
		checkHeartbeat(t, c, v.HeartbeatTopology.Version, decode(t, v.HeartbeatTopology.Body))
	}
	checkDescription(t, c, v)
	checkPipe(t, topology, cfg, v)
}

// checkRestored restores the stores from what Java has written to their changelogs,
// and compares them with those that the records have made.
func checkRestored(t *testing.T, d *streamstest.Driver, topology *Topology, cfg Config, v vector) {
	t.Helper()
	c, err := topology.Compile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	disk := state.NewDisk(state.DiskOptions{FS: vfs.NewMem()})
	defer disk.Close()
	for id, sub := range c.Tasks {
		for _, spec := range sub.Stores {
			if spec.Changelog == "" || spec.ChangelogIsSource {
				continue
			}
			s := spec.New()
			if err := s.Open(state.OpenContext{Dir: id + "/" + s.Name(), Disk: disk}); err != nil {
				t.Fatal(err)
			}
			for _, step := range v.Pipe.Steps {
				for _, r := range step.Output {
					if r.Topic == spec.Changelog {
						if err := taskmgr.RestoreRecord(s, r.record(t)); err != nil {
							t.Errorf("restore store %q: %v", s.Name(), err)
						}
					}
				}
			}
			got, want := contents(t, s), contents(t, streamstest.Store[state.Store](d, s.Name()))
			if !slices.Equal(got, want) {
				t.Errorf("store %q is restored as\n%s\nand was\n%s", s.Name(), strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// config is the configuration that the program ran with.
func (v vector) config(t *testing.T) Config {
	cfg := Config{
		ApplicationID:                           "app",
		ReplicationFactor:                       int16(v.number(t, "replication.factor", 0)),
		StateStoreCacheMaxBytes:                 v.number(t, "statestore.cache.max.bytes", 0),
		WindowStoreChangelogAdditionalRetention: time.Duration(v.number(t, "windowstore.changelog.additional.retention.ms", 0)) * time.Millisecond,
	}
	if cfg.StateStoreCacheMaxBytes == 0 {
		cfg.StateStoreCacheMaxBytes = -1
	}
	for property, value := range v.Config {
		if setting, ok := strings.CutPrefix(property, "topic."); ok {
			if cfg.InternalTopicConfig == nil {
				cfg.InternalTopicConfig = make(map[string]string)
			}
			cfg.InternalTopicConfig[setting] = value
		}
	}
	return cfg
}

// number is a number of the configuration.
func (v vector) number(t *testing.T, property string, otherwise int64) int64 {
	t.Helper()
	if v.Config[property] == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(v.Config[property], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// compile puts a topology under the application id "app".
func compile(t *testing.T, topology *Topology) *Compiled {
	t.Helper()
	c, err := topology.Compile(Config{ApplicationID: "app"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkHeartbeat compares the bytes of a whole joining request.
func checkHeartbeat(t *testing.T, c *Compiled, version int16, want []byte) {
	t.Helper()
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	if err := func() error { req.Version = version; return req.ReadFrom(want) }(); err != nil {
		t.Fatal(err)
	}
	req.Topology = c.Heartbeat
	if got := req.AppendTo(nil); !bytes.Equal(got, want) {
		t.Errorf("the topology of the heartbeat is\n%q\nin Java\n%q", got, want)
	}
}

func checkDescription(t *testing.T, c *Compiled, v vector) {
	t.Helper()
	if len(c.Description.GlobalStores) != len(v.Description.GlobalStores) {
		t.Fatalf("%d global stores are described, in Java %d", len(c.Description.GlobalStores), len(v.Description.GlobalStores))
	}
	for i, want := range v.Description.GlobalStores {
		checkNode(t, c.Description.GlobalStores[i].Source, want.Source)
		checkNode(t, c.Description.GlobalStores[i].Processor, want.Processor)
	}
	for i, want := range v.Description.Subtopologies {
		got := c.Description.Subtopologies[i]
		if got.SubtopologyID != want.SubtopologyID || len(got.Nodes) != len(want.Nodes) {
			t.Fatalf("subtopology %q with %d nodes is described, in Java %q with %d", got.SubtopologyID, len(got.Nodes), want.SubtopologyID, len(want.Nodes))
		}
		for j, want := range want.Nodes {
			checkNode(t, got.Nodes[j], want)
		}
	}
}

func checkNode(t *testing.T, got kmsg.TopologyDescriptionNode, want vectorNode) {
	t.Helper()
	if got.Name != want.Name || got.NodeType != want.NodeType || !slices.Equal(got.SourceTopics, want.SourceTopics) ||
		!equalPointers(got.SinkTopic, want.SinkTopic) || !slices.Equal(got.Stores, want.Stores) || !slices.Equal(got.Successors, want.Successors) {
		t.Errorf("node %+v is described, in Java %+v", got, want)
	}
}

// checkPipe runs the vector's input and compares all that is produced, in order,
// and what is in the stores at the end.
func checkPipe(t *testing.T, topology *Topology, cfg Config, v vector) {
	t.Helper()
	d := streamstest.NewDriver(t, topology, streamstest.WithConfig(cfg), streamstest.WithStartTime(time.UnixMilli(0)),
		streamstest.WithEmitInterval(time.Duration(v.number(t, "__emit.interval.ms.kstreams.windowed.aggregation__", 0))*time.Millisecond))
	for i, step := range v.Pipe.Steps {
		if step.Query != "" {
			checkQuery(t, d, step.Query, step.Result)
		} else if step.Input == nil {
			d.AdvanceWallClock(time.Duration(step.Advance) * time.Millisecond)
		} else if err := d.TryPipe(step.Input.record(t)); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		var want []*kgo.Record
		for _, r := range step.Output {
			want = append(want, r.record(t))
		}
		if got := d.Sent(); dump(got) != dump(want) {
			t.Errorf("step %d produced\n%sin Java\n%s", i, dump(got), dump(want))
		}
	}
	checkMetadata(t, d, v)
	checkRestored(t, d, topology, cfg, v)
	if names := d.StoreNames(); len(names) != len(v.Pipe.FinalStores) {
		t.Errorf("the stores are %q, in Java there are %d", names, len(v.Pipe.FinalStores))
	}
	for name, want := range v.Pipe.FinalStores {
		var entries []string
		for _, e := range want.Entries {
			entries = append(entries, compact(t, e.Key)+": "+compact(t, e.Value))
		}
		slices.Sort(entries)
		got := contents(t, streamstest.Store[state.Store](d, name))
		if cfg.StateStoreCacheMaxBytes > 0 {
			// In Java a cache shows windows that have expired in the store below.
			entries = slices.DeleteFunc(entries, func(e string) bool { return strings.Contains(e, `"end"`) && !slices.Contains(got, e) })
		}
		if !slices.Equal(got, entries) && !slices.Equal(untimed(got), entries) {
			t.Errorf("store %q has\n%s\nin Java\n%s", name, strings.Join(got, "\n"), strings.Join(entries, "\n"))
		}
	}
}

// checkQuery asks a versioned store: "name.get(key)" or "name.get(key,time)".
func checkQuery(t *testing.T, d *streamstest.Driver, query string, want *string) {
	t.Helper()
	part := queryParts.FindStringSubmatch(query)
	store, args := reflect.ValueOf(streamstest.Store[state.Store](d, part[1])), []reflect.Value{reflect.ValueOf(part[2])}
	method := "Get"
	if part[3] != "" {
		asOf, err := strconv.ParseInt(part[3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		method, args = "GetAsOf", append(args, reflect.ValueOf(asOf))
	}
	found := store.MethodByName(method).Call(args)
	if err := found[2].Interface(); err != nil {
		t.Fatal(err)
	}
	var got *string
	if found[1].Bool() {
		got = new(fmt.Sprintf("<%v,%v,Optional.empty>", reflect.Indirect(found[0].Field(0)), found[0].Field(1)))
	}
	if !equalPointers(got, want) {
		t.Errorf("%s is %s, in Java %s", query, orNull(got), orNull(want))
	}
}

var queryParts = regexp.MustCompile(`^(.+)\.get\((.+?)(?:,([0-9]+))?\)$`)

// checkMetadata compares what is committed with the offsets. All of Java's driver is
// one task: its processor metadata is that of our tasks together.
func checkMetadata(t *testing.T, d *streamstest.Driver, v vector) {
	t.Helper()
	got, want := make(map[string]bool), make(map[string]bool)
	split := func(metadata []byte, entries map[string]bool) (time []byte) {
		for b := metadata[min(13, len(metadata)):]; len(b) > 0; {
			n := 4 + binary.BigEndian.Uint32(b) + 8
			entries[string(b[:n])] = true
			b = b[n:]
		}
		return metadata[:9]
	}
	for partition, java := range v.Pipe.Committed {
		metadata := decode(t, d.OffsetMetadata(strings.TrimSuffix(partition, "-0")))
		if got, want := split(metadata, got), split(java.Metadata, want); !bytes.Equal(got, want) {
			t.Errorf("the time of %s is committed as %q, in Java %q", partition, got, want)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the processor metadata is %v, in Java %v", got, want)
	}
}

// contents are the entries of a store of whatever types as JSON, in the form of the
// vectors.
func contents(t *testing.T, s state.Store) (entries []string) {
	var scan reflect.Value
	for _, name := range []string{"Range", "All", "FetchRange"} { // of keys, windows, sessions
		if scan = reflect.ValueOf(s).MethodByName(name); scan.IsValid() {
			break
		}
	}
	if !scan.IsValid() {
		return nil // a buffer, of which the vectors have no entries
	}
	var from []reflect.Value
	for i := range scan.Type().NumIn() {
		from = append(from, reflect.Zero(scan.Type().In(i)))
	}
	it := scan.Call(from)[0]
	get := func(method string) any { return it.MethodByName(method).Call(nil)[0].Interface() }
	for get("Next").(bool) {
		value := get("Value")
		if list := reflect.ValueOf(value); list.Kind() == reflect.Slice && list.Len() == 1 {
			value = list.Index(0).Interface() // Java has an entry for each
		}
		if it.MethodByName("Timestamp").IsValid() && get("Timestamp") != int64(-1) {
			value = map[string]any{"value": value, "timestamp": get("Timestamp")}
		}
		if has := it.MethodByName("Headers"); has.IsValid() {
			value = withHeaders(value, get("Headers").([]state.Header))
		}
		entries = append(entries, compact(t, []byte(marshal(t, get("Key"))))+": "+marshal(t, value))
	}
	if err := get("Close"); err != nil {
		t.Error(err)
	}
	slices.Sort(entries)
	return entries
}

// withHeaders is a value of a store with its headers, if there are any.
func withHeaders(value any, headers []state.Header) any {
	if len(headers) == 0 {
		return value
	}
	timed, ok := value.(map[string]any)
	if !ok {
		timed = map[string]any{"aggregation": value}
	}
	var list []any
	for _, h := range headers {
		list = append(list, map[string]any{"key": h.Key, "value": h.Value})
	}
	timed["headers"] = list
	return timed
}

// untimed is without timestamps: in Java the stores of joined streams have none, nor
// have plain window stores.
func untimed(entries []string) (out []string) {
	for _, e := range entries {
		out = append(out, timestamped.ReplaceAllString(e, "$1"))
	}
	return out
}

var timestamped = regexp.MustCompile(`\{"timestamp":[0-9]+,"value":(.*)\}$`)

func marshal(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// compact is JSON of a vector as marshal writes it. What the vectors have besides
// is left out: what bytes look like, and that a store has no headers.
func compact(t *testing.T, data json.RawMessage) string {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if m, ok := v.(map[string]any); ok {
		for k, field := range m { // Key, Start and End of a window
			delete(m, k)
			m[strings.ToLower(k)] = field
		}
		delete(m, "auto")
		if m["timestamp"] == -1.0 {
			delete(m, "timestamp")
		}
		headers, _ := m["headers"].([]any)
		if len(headers) == 0 {
			delete(m, "headers")
		}
		for _, bare := range []string{"value", "aggregation"} {
			if value, ok := m[bare]; ok && len(m) == 1 {
				return marshal(t, value)
			}
		}
		for _, header := range headers { // as bytes alone
			h := header.(map[string]any)
			h["value"] = h["value_b64"]
			delete(h, "value_b64")
		}
	}
	return marshal(t, v)
}

func (r *vectorRecord) record(t *testing.T) *kgo.Record {
	rec := &kgo.Record{Topic: r.Topic, Partition: taskmgr.AnyPartition}
	if r.Timestamp != nil {
		rec.Timestamp = time.UnixMilli(*r.Timestamp)
	}
	if r.Partition != nil {
		rec.Partition = *r.Partition
	}
	rec.Key, rec.Value = decodeNullable(t, r.Key), decodeNullable(t, r.Value)
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: h.Key, Value: decodeNullable(t, h.Value)})
	}
	return rec
}

func decodeNullable(t *testing.T, b64 *string) []byte {
	t.Helper()
	if b64 == nil {
		return nil
	}
	return decode(t, *b64)
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

func equalPointers[T comparable](a, b *T) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}
