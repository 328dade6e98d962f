package streams_test

import (
	"bytes"
	"encoding/base64"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// TestWindowsEqualJava pipes random records, with late ones, into windows of all
// kinds with their default retention, and compares all that comes of each with what
// was recorded from Java Kafka Streams 4.4.0: results as they change, as windows
// close, and behind a suppression, and the changelogs. A line is an input record or,
// indented, an output record: topic, timestamp, key and value in base64 ("-" for
// null, "=" for empty), the values of headers.
func TestWindowsEqualJava(t *testing.T) {
	recorded, err := os.ReadFile("testdata/windows-random.txt")
	if err != nil {
		t.Fatal(err)
	}
	b := NewBuilder()
	g := Stream(b, "in", ConsumedWith(text, text)).GroupByKey()
	windowsOfAllKinds(g)
	d := streamstest.NewDriver(t, b.Build(), streamstest.WithConfig(Config{StateStoreCacheMaxBytes: -1}))
	for i, step := range strings.Split("\n"+string(recorded), "\nin ")[1:] {
		lines := strings.Split(strings.TrimSpace(step), "\n")
		input := recordedRecord(t, "in "+lines[0])
		if err := d.TryPipe(input); err != nil {
			t.Fatal(err)
		}
		want := make(map[string][]string)
		for _, line := range lines[1:] {
			topic, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			want[topic] = append(want[topic], dump([]*kgo.Record{recordedRecord(t, line)}))
		}
		got := make(map[string][]string)
		for _, out := range d.Sent() {
			if !strings.HasSuffix(out.Topic, "-s-store-changelog") { // not recorded
				out.Partition = 0
				got[out.Topic] = append(got[out.Topic], dump([]*kgo.Record{out}))
			}
		}
		for topic := range want {
			if !slices.Equal(got[topic], want[topic]) {
				t.Fatalf("record %d, %q of %q at %d, comes to\n%sin Java\n%s", i, input.Value, input.Key, input.Timestamp.UnixMilli(),
					strings.Join(got[topic], ""), strings.Join(want[topic], ""))
			}
			delete(got, topic)
		}
		if len(got) > 0 {
			t.Fatalf("record %d, %q of %q at %d, comes to %q, in Java to nothing", i, input.Value, input.Key, input.Timestamp.UnixMilli(), got)
		}
	}
}

func recordedRecord(t *testing.T, line string) *kgo.Record {
	fields := strings.Fields(line)
	timestamp, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	decode := func(s string) []byte {
		switch s {
		case "-":
			return nil
		case "=":
			return []byte{}
		}
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(b)
	}
	r := &kgo.Record{Topic: fields[0], Timestamp: time.UnixMilli(timestamp), Key: decode(fields[2]), Value: decode(fields[3])}
	for _, h := range fields[4:] {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "h", Value: []byte(h)})
	}
	return r
}

func windowsOfAllKinds(g *KGroupedStream[*string, *string]) {
	type table = *KTable[serde.Windowed[*string], *string]
	appending := func(_, v, aggregate *string) *string {
		switch {
		case v == nil:
			return new(orEmpty(aggregate) + "~")
		case *v == "D":
			return nil
		}
		return new(orEmpty(aggregate) + *v)
	}
	reducing := func(aggregate, v *string) *string {
		if v != nil && *v == "D" {
			return nil
		}
		return new(orNull(aggregate) + "/" + orNull(v))
	}
	for name, aggregate := range map[string]func(emit EmitStrategy, m Materialized[*string, *string]) table{
		"tumbling": func(e EmitStrategy, m Materialized[*string, *string]) table {
			return WindowedAggregate(WindowedBy(g, TimeWindows{Size: 10 * ms, Grace: 5 * ms}).EmitStrategy(e), empty, appending, m)
		},
		"hopping": func(e EmitStrategy, m Materialized[*string, *string]) table {
			return WindowedBy(g, TimeWindows{Size: 10 * ms, Grace: 4 * ms, Advance: 3 * ms}).EmitStrategy(e).Reduce(reducing, m)
		},
		"nograce": func(e EmitStrategy, m Materialized[*string, *string]) table {
			return WindowedAggregate(WindowedBy(g, TimeWindows{Size: 4 * ms}).EmitStrategy(e), empty, appending, m)
		},
		"sliding": func(e EmitStrategy, m Materialized[*string, *string]) table {
			return WindowedAggregate(WindowedBy(g, SlidingWindows{TimeDifference: 7 * ms, Grace: 9 * ms}).EmitStrategy(e), empty, appending, m)
		},
		"session": func(e EmitStrategy, m Materialized[*string, *string]) table {
			merge := func(_, a, b *string) *string { return new(*a + "|" + *b) }
			return SessionAggregate(SessionWindowedBy(g, SessionWindows{InactivityGap: 4 * ms, Grace: 6 * ms}).EmitStrategy(e), empty, appending, merge, m)
		},
		"sessionred": func(e EmitStrategy, m Materialized[*string, *string]) table {
			return SessionWindowedBy(g, SessionWindows{InactivityGap: 3 * ms}).EmitStrategy(e).Reduce(reducing, m)
		},
	} {
		updates := aggregate(OnWindowUpdate, MaterializedWith(name+"-u", text, text))
		updates.ToStream().To(name + "-updates")
		SuppressUntilWindowCloses(updates, Suppressed{Name: name + "-s"}).ToStream().To(name + "-suppressed")
		aggregate(OnWindowClose, MaterializedWith(name+"-c", text, text)).ToStream().To(name + "-closed")
	}
}
