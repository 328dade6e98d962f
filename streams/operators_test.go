package streams_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
	"github.com/odradek-go/odradek/taskmgr"
)

// run runs records through a topology and returns all that comes out of topics
// that are not its own.
func run(t *testing.T, topology *Topology, records ...*kgo.Record) (out []*kgo.Record, err error) {
	t.Helper()
	d := streamstest.NewDriver(t, topology)
	for _, rec := range records {
		if err := d.TryPipe(rec); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(d.Sent(), func(r *kgo.Record) bool { return strings.HasPrefix(r.Topic, "app-") }), nil
}

func record(topic string, key, value []byte) *kgo.Record {
	return &kgo.Record{Topic: topic, Key: key, Value: value, Timestamp: time.UnixMilli(7), Partition: taskmgr.AnyPartition}
}

// TestNulls: what is nil is null, and null is nil where the type has it and the
// zero value where it doesn't, for each operator of a stream.
func TestNulls(t *testing.T) {
	null := func(string, *string) *string { return nil }
	for name, c := range map[string]struct {
		program func(*KStream[string, *string])
		want    string
	}{
		"Map": {func(s *KStream[string, *string]) {
			Map(s, func(k string, v *string) (*string, *string) { return nil, nil }).To("out", ProducedWith(text, text))
		}, "null null"},
		"MapValues": {func(s *KStream[string, *string]) {
			MapValues(s, func(*string) *string { return nil }).To("out", ProducedWith(serde.String, text))
		}, "null null"},
		"MapValues of null": {func(s *KStream[string, *string]) { MapValues(s, orNull).To("out") }, `null "null"`},
		"SelectKey":         {func(s *KStream[string, *string]) { SelectKey(s, null).To("out", ProducedWith(text, text)) }, "null null"},
		"SelectKey to a value": {func(s *KStream[string, *string]) {
			SelectKey(s, func(k string, _ *string) string { return k + "!" }).To("out")
		}, `"!" null`},
		"FlatMap": {func(s *KStream[string, *string]) {
			FlatMap(s, func(string, *string) []KeyValue[*string, *string] { return []KeyValue[*string, *string]{{}} }).To("out", ProducedWith(text, text))
		}, "null null"},
		"FlatMapValues": {func(s *KStream[string, *string]) {
			FlatMapValues(s, func(*string) []*string { return []*string{nil} }).To("out", ProducedWith(serde.String, text))
		}, "null null"},
		"Filter": {func(s *KStream[string, *string]) {
			s.Filter(func(k string, v *string) bool { return k == "" && v == nil }).To("out")
		}, "null null"},
		"Peek": {func(s *KStream[string, *string]) { s.Peek(func(string, *string) {}).To("out") }, "null null"},
		"ProcessValues": {func(s *KStream[string, *string]) {
			ProcessValues(s, func() FixedKeyProcessor[string, *string, *string] { return &mirror{} }).To("out", ProducedWith(serde.String, text))
		}, "null null"},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder()
			c.program(Stream(b, "in", nullableText()))
			out, err := run(t, b.Build(), record("in", nil, nil))
			if err != nil || len(out) != 1 {
				t.Fatalf("produced %v, %v", out, err)
			}
			if got := quoted(out[0].Key) + " " + quoted(out[0].Value); got != c.want {
				t.Errorf("produced %s, want %s", got, c.want)
			}
		})
	}
}

// mirror sends on what it gets, its value taken anew, and to a child by name.
type mirror struct {
	ctx *FixedKeyProcessorContext[string, *string]
}

func (m *mirror) Init(ctx *FixedKeyProcessorContext[string, *string]) error { m.ctx = ctx; return nil }
func (*mirror) Close() error                                                { return nil }

func (m *mirror) Process(r FixedKeyRecord[string, *string]) error {
	if r.Key() != "" || !r.KeyNull() || !r.ValueNull {
		return fmt.Errorf("got %+v", r)
	}
	return m.ctx.ForwardTo("KSTREAM-SINK-0000000002", WithValue(r, r.Value))
}

// TestPrint: a line for each record, as in Java, with a name of Java's.
func TestPrint(t *testing.T) {
	var out strings.Builder
	b := NewBuilder()
	s := Stream(b, "in", nullableText())
	s.Print(Printed[string, *string]{To: &out})
	s.Print(Printed[string, *string]{To: &out, Label: "label", Name: "named", Format: func(k string, v *string) string { return k + "=" + orNull(v) }})
	if _, err := run(t, b.Build(), record("in", []byte("k"), []byte("v")), record("in", nil, nil)); err != nil {
		t.Fatal(err)
	}
	const want = "[KSTREAM-PRINTER-0000000001]: k, v\n[label]: k=v\n[KSTREAM-PRINTER-0000000001]: null, null\n[label]: =null\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
	if text := describe(t, b.Build()); !strings.Contains(text, "Processor: named") {
		t.Errorf("describes as\n%s", text)
	}
}

// TestHeaders: what becomes of a record has its headers, on the way through
// repartition topics and tables too.
func TestHeaders(t *testing.T) {
	b := NewBuilder()
	s := Stream[string, string](b, "in")
	MapValues(s, strings.ToUpper).To("mapped")
	FlatMapValues(s, strings.Fields).To("flat-mapped")
	SelectKey(s, func(_, v string) string { return v }).Repartition().To("repartitioned")
	s.GroupByKey().Count().ToStream().To("counted")
	s.ToTable().ToStream().To("table")
	ProcessValues(s, newUpperValues).To("processed")
	in := record("in", []byte("k"), []byte("v"))
	in.Headers = []Header{{Key: "h", Value: []byte("1")}, {Key: "h", Value: nil}}
	out, err := run(t, b.Build(), in)
	if err != nil || len(out) != 6 {
		t.Fatalf("produced %d records, %v", len(out), err)
	}
	for _, r := range out {
		if got := fmt.Sprint(r.Headers); got != fmt.Sprint(in.Headers) || r.Timestamp != in.Timestamp {
			t.Errorf("%s has headers %s and time %v", r.Topic, got, r.Timestamp)
		}
	}
}

// TestRecordErrors: what goes wrong with a record is an error that says what.
func TestRecordErrors(t *testing.T) {
	for name, c := range map[string]struct {
		program func(*Builder)
		says    string
	}{
		"undecodable key": {func(b *Builder) { Stream[int64, string](b, "in").To("out") }, "deserialize the key"},
		"undecodable value": {func(b *Builder) {
			Stream(b, "in", Consumed[string, int64]{TimestampExtractor: UsePartitionTimeOnInvalidTimestamp[string, int64]}).To("out")
		}, "deserialize the value"},
		"no topic": {func(b *Builder) {
			Stream[string, string](b, "in").ToDynamic(func(Record[string, string], RecordContext) string { return "" })
		}, "chose no topic"},
		"extractor": {func(b *Builder) {
			Stream(b, "in", Consumed[string, string]{}.WithTimestampExtractor(func(Record[string, string], int64) (int64, error) { return 0, errors.New("no time") })).To("out")
		}, "no time"},
		"unknown child": {func(b *Builder) {
			Process(Stream[string, string](b, "in"), func() Processor[string, string, string, string] { return &misdirecting{} })
		}, `no child "nobody"`},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder()
			c.program(b)
			if _, err := run(t, b.Build(), record("in", []byte("k"), []byte("v"))); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %s", err, c.says)
			}
		})
	}
}

type misdirecting struct{ passOn[string, string] }

func (m *misdirecting) Process(r Record[string, string]) error { return m.ctx.ForwardTo("nobody", r) }

// TestGetStoreErrors: a store that is not the processor's, or not of that type, is an
// error when the task is made.
func TestGetStoreErrors(t *testing.T) {
	for says, newProcessor := range map[string]func() Processor[string, string, string, string]{
		`not connected to a state store "other"`: func() Processor[string, string, string, string] {
			return &needing[*state.KeyValue[string, int64]]{store: "other"}
		},
		"is a *state.KeyValue": func() Processor[string, string, string, string] {
			return &needing[*state.TimestampedKeyValue[string, int64]]{store: "st"}
		},
	} {
		b := NewBuilder()
		Process(Stream[string, string](b, "in"), newProcessor, Processed{NewStores: []StateStore{NewKeyValueStore[string, int64]("st", nil, nil)}})
		sub := compile(t, b.Build()).Tasks["0"]
		s := sub.Stores[0].New()
		if _, err := sub.NewGraph(taskmgr.NewContext(membership.TaskID{Subtopology: "0"}, nil, s)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
	}
}

type needing[S state.Store] struct {
	passOn[string, string]
	store string
}

func (n *needing[S]) Init(ctx *ProcessorContext[string, string]) error {
	_, err := GetStore[S](ctx, n.store)
	return err
}

func TestTimestampExtractors(t *testing.T) {
	for name, c := range map[string]struct {
		extract         TimestampExtractor[string, string]
		time, partition int64
		want            int64
		fails           bool
	}{
		"fail, valid":            {FailOnInvalidTimestamp[string, string], 5, 9, 5, false},
		"fail, invalid":          {FailOnInvalidTimestamp[string, string], -1, 9, 0, true},
		"skip, valid":            {SkipOnInvalidTimestamp[string, string], 5, 9, 5, false},
		"skip, invalid":          {SkipOnInvalidTimestamp[string, string], -1, 9, -1, false},
		"partition, valid":       {UsePartitionTimeOnInvalidTimestamp[string, string], 5, 9, 5, false},
		"partition, invalid":     {UsePartitionTimeOnInvalidTimestamp[string, string], -1, 9, 9, false},
		"partition, without one": {UsePartitionTimeOnInvalidTimestamp[string, string], -1, -1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.extract(Record[string, string]{Timestamp: c.time}, c.partition)
			if (err != nil) != c.fails || err == nil && got != c.want {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	if now, err := WallclockTimestampExtractor(Record[string, string]{Timestamp: 1}, 1); err != nil || time.Since(time.UnixMilli(now)) > time.Minute {
		t.Errorf("the time is %d, %v", now, err)
	}
}
