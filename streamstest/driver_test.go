package streamstest_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// wordCount has two subtopologies with a repartition topic between them.
func wordCount() *streams.Topology {
	b := streams.NewBuilder()
	words := streams.FlatMapValues(streams.Stream[string, string](b, "lines"), strings.Fields)
	streams.GroupBy(words, func(_, word string) string { return word }, streams.Grouped[string, string]{Name: "words"}).
		Count(streams.Materialized[string, int64]{Name: "counts"}).ToStream().To("out")
	return b.Build()
}

func TestDriver(t *testing.T) {
	d := streamstest.NewDriver(t, wordCount(), streamstest.WithConfig(streams.Config{ApplicationID: "wc"}))
	lines := streamstest.NewInputTopic[string, string](d, "lines")
	out := streamstest.NewOutputTopic[string, int64](d, "out")

	if !out.IsEmpty() {
		t.Errorf("%d records at the beginning", out.Len())
	}
	lines.PipeValue("to be or not to be")
	if out.Len() != 6 {
		t.Errorf("%d records, want one for each word", out.Len())
	}
	if got := out.ReadKeyValue(); got != (streams.KeyValue[string, int64]{Key: "to", Value: 1}) {
		t.Errorf("read %v", got)
	}
	if got := out.ReadValue(); got != 1 {
		t.Errorf("read %d", got)
	}
	if got := fmt.Sprint(out.ReadKeyValues()); got != "[{or 1} {not 1} {to 2} {be 2}]" {
		t.Errorf("read %s", got)
	}
	lines.PipeValues("be", "be")
	if got := streamstest.ReadMap(out); !maps.Equal(got, map[string]int64{"be": 4}) {
		t.Errorf("read %v", got)
	}
	if !out.IsEmpty() || len(out.ReadAll()) != 0 {
		t.Error("what was read is still there")
	}

	words := streamstest.NewOutputTopic[string, string](d, "wc-words-repartition")
	if words.Len() != 8 || words.Read().Key != "to" {
		t.Error("the repartition topic does not have the words")
	}
	changes := streamstest.NewOutputTopic[string, int64](d, "wc-counts-changelog")
	if got := streamstest.ReadMap(changes); !maps.Equal(got, map[string]int64{"to": 2, "be": 4, "or": 1, "not": 1}) {
		t.Errorf("the changelog has %v", got)
	}
	n, _, ok, err := streamstest.TimestampedKeyValueStore[string, int64](d, "counts").Get("be")
	if n != 4 || !ok || err != nil {
		t.Errorf("the store has %d, %v, %v", n, ok, err)
	}
}

// TestDriverInput: what gets into a topic, and when.
func TestDriverInput(t *testing.T) {
	b := streams.NewBuilder()
	text := serde.Pointer(serde.String)
	streams.Stream(b, "in", streams.ConsumedWith(text, text)).To("out")
	d := streamstest.NewDriver(t, b.Build(), streamstest.WithStartTime(time.UnixMilli(1000)))
	out := streamstest.NewOutputTopic(d, "out", streamstest.Output[*string, *string]{Key: text, Value: text})
	read := func() string {
		t.Helper()
		r := out.Read()
		show := func(s *string) string {
			if s == nil {
				return "null"
			}
			return *s
		}
		if r.KeyNull != (r.Key == nil) || r.ValueNull != (r.Value == nil) {
			t.Errorf("read %+v", r)
		}
		return fmt.Sprintf("%s=%s@%d", show(r.Key), show(r.Value), r.Timestamp)
	}

	pointers := streamstest.NewInputTopic(d, "in", streamstest.Input[*string, *string]{Key: text, Value: text, Start: new(int64(5)), Advance: 10 * time.Millisecond})
	plain := streamstest.NewInputTopic[string, string](d, "in")
	for _, c := range []struct {
		pipe func()
		want string
	}{
		{func() { pointers.Pipe(new("k"), nil) }, "k=null@5"},
		{func() { pointers.Pipe(nil, new("v")) }, "null=v@15"},
		{func() { pointers.PipeAt(7, new("k"), new("v")) }, "k=v@7"},
		{func() { pointers.AdvanceTime(time.Second); pointers.Pipe(nil, nil) }, "null=null@1025"},
		{func() { plain.Pipe("", "") }, "=@1000"},
		{func() { plain.PipeValue("v") }, "null=v@1000"},
		{func() { plain.PipeTombstone("k") }, "k=null@1000"},
		{func() { plain.PipeKeyValues(streams.KeyValue[string, string]{Key: "k", Value: "v"}) }, "k=v@1000"},
		{func() { plain.PipeValues("v") }, "null=v@1000"},
		{func() { plain.PipeRecord(streams.Record[string, string]{KeyNull: true, Value: "v", Timestamp: 3}) }, "null=v@3"},
	} {
		c.pipe()
		if got := read(); got != c.want {
			t.Errorf("read %s, want %s", got, c.want)
		}
	}

	headers := []streams.Header{{Key: "h", Value: []byte("1")}}
	plain.PipeRecord(streams.Record[string, string]{Headers: headers})
	if got := out.Read().Headers; !reflect.DeepEqual(got, headers) {
		t.Errorf("read headers %v", got)
	}
}

// TestDriverOrder: of what waits in several topics, the record with the lowest
// timestamp is next, whatever order it came in.
func TestDriverOrder(t *testing.T) {
	b := streams.NewBuilder()
	in := streams.Stream[string, int64](b, "in")
	// Each value is a time to send the record on with.
	retimed := streams.Process(in, func() streams.Processor[string, int64, string, int64] { return &retiming{} })
	retimed.To("late-or-early")
	streams.Stream[string, int64](b, "late-or-early").Merge(in).To("out")
	d := streamstest.NewDriver(t, b.Build())
	topic := streamstest.NewInputTopic[string, int64](d, "in")
	out := streamstest.NewOutputTopic[string, int64](d, "out")
	topic.PipeAt(10, "a", 30)
	topic.PipeAt(20, "b", 5)
	var got []string
	for _, r := range out.ReadAll() {
		got = append(got, fmt.Sprintf("%s@%d", r.Key, r.Timestamp))
	}
	if want := "a@10 a@30 b@20 b@5"; strings.Join(got, " ") != want {
		t.Errorf("processed %v, want %s", got, want)
	}
}

type retiming struct {
	ctx *streams.ProcessorContext[string, int64]
}

func (p *retiming) Init(ctx *streams.ProcessorContext[string, int64]) error { p.ctx = ctx; return nil }
func (*retiming) Close() error                                              { return nil }
func (p *retiming) Process(r streams.Record[string, int64]) error {
	r.Timestamp = r.Value
	return p.ctx.Forward(r)
}

// TestDriverSent: everything in the order of sending, once.
func TestDriverSent(t *testing.T) {
	d := streamstest.NewDriver(t, wordCount())
	out := streamstest.NewOutputTopic[string, int64](d, "out")
	if err := d.TryPipe(&kgo.Record{Topic: "lines", Value: []byte("a b"), Timestamp: time.UnixMilli(9)}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range d.Sent() {
		got = append(got, fmt.Sprintf("%s:%s@%d", r.Topic, r.Key, r.Timestamp.UnixMilli()))
	}
	const want = "app-words-repartition:a@9 app-words-repartition:b@9 app-counts-changelog:a@9 out:a@9 app-counts-changelog:b@9 out:b@9"
	if strings.Join(got, " ") != want {
		t.Errorf("sent\n%v, want\n%s", got, want)
	}
	if len(d.Sent()) != 0 || out.Len() != 2 {
		t.Errorf("%d sent again; the output topic has %d", len(d.Sent()), out.Len())
	}
}

// TestDriverPositions: a processor sees where its record comes from, and the task
// that it is in.
func TestDriverPositions(t *testing.T) {
	b := streams.NewBuilder()
	streams.Process(streams.Stream[string, string](b, "in").Repartition(streams.Repartitioned[string, string]{Name: "r"}),
		func() streams.Processor[string, string, string, string] { return &locating{} }).To("out")
	d := streamstest.NewDriver(t, b.Build())
	in := streamstest.NewInputTopic[string, string](d, "in")
	in.Pipe("k", "x")
	in.Pipe("k", "y")
	got := streamstest.NewOutputTopic[string, string](d, "out").ReadValues()
	if want := "[1_0 app-r-repartition-0@0 1_0 app-r-repartition-0@1]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

type locating struct {
	ctx *streams.ProcessorContext[string, string]
}

func (p *locating) Init(ctx *streams.ProcessorContext[string, string]) error { p.ctx = ctx; return nil }
func (*locating) Close() error                                               { return nil }
func (p *locating) Process(r streams.Record[string, string]) error {
	topic, partition, offset, _ := p.ctx.RecordMetadata()
	r.Value = fmt.Sprintf("%v %s-%d@%d", p.ctx.TaskID(), topic, partition, offset)
	return p.ctx.Forward(r)
}

// TestDriverHandlers: the configuration's handlers decide about errors, and dead
// letters are an output topic.
func TestDriverHandlers(t *testing.T) {
	b := streams.NewBuilder()
	streams.Stream[string, int64](b, "in").To("out")
	d := streamstest.NewDriver(t, b.Build(), streamstest.WithConfig(streams.Config{
		DeserializationExceptionHandler: func(streams.ErrorHandlerContext, error) streams.ExceptionHandlerResponse { return streams.Resume },
		DeadLetterQueueTopic:            "dead",
	}))
	streamstest.NewInputTopic[string, string](d, "in").Pipe("k", "not eight bytes long")
	streamstest.NewInputTopic[string, int64](d, "in").Pipe("k", 8)
	if got := streamstest.NewOutputTopic[string, int64](d, "out").ReadValues(); len(got) != 1 || got[0] != 8 {
		t.Errorf("read %v", got)
	}
	if got := streamstest.NewOutputTopic[string, string](d, "dead").ReadValue(); got != "not eight bytes long" {
		t.Errorf("the dead letter is %q", got)
	}
}

// TestDriverErrors: TryPipe returns what Pipe fails the test with, and the driver
// goes on.
func TestDriverErrors(t *testing.T) {
	b := streams.NewBuilder()
	streams.Stream[string, int64](b, "in").To("out")
	d := streamstest.NewDriver(t, b.Build())
	bad := streams.Record[string, string]{Value: "x"}
	var decode *streams.DeserializationError
	if err := streamstest.NewInputTopic[string, string](d, "in").TryPipe(bad); !errors.As(err, &decode) {
		t.Errorf("got %v", err)
	}
	in := streamstest.NewInputTopic[string, int64](d, "in")
	in.Pipe("k", 1)
	if got := streamstest.NewOutputTopic[string, int64](d, "out").ReadValue(); got != 1 {
		t.Errorf("read %d", got)
	}
	if err := d.TryPipe(&kgo.Record{Topic: "other"}); err == nil || !strings.Contains(err.Error(), `"in"`) {
		t.Errorf("%v does not name the topics that there are", err)
	}
}

// TestDriverFailsTests: a mistake fails the test with words that say what to do.
func TestDriverFailsTests(t *testing.T) {
	driver := func(tb streamstest.TB) *streamstest.Driver { return streamstest.NewDriver(tb, wordCount()) }
	type private struct{}
	for says, mistake := range map[string]func(tb streamstest.TB){
		"it has no nodes":                               func(tb streamstest.TB) { streamstest.NewDriver(tb, streams.NewTopology()) },
		`does not read topic "line"`:                    func(tb streamstest.TB) { streamstest.NewInputTopic[string, string](driver(tb), "line") },
		`does not write to topic "output"`:              func(tb streamstest.TB) { streamstest.NewOutputTopic[string, int64](driver(tb), "output") },
		"no standard serde of streamstest_test.private": func(tb streamstest.TB) { streamstest.NewOutputTopic[string, private](driver(tb), "out") },
		"2 options": func(tb streamstest.TB) {
			streamstest.NewInputTopic(driver(tb), "lines", streamstest.Input[string, string]{}, streamstest.Input[string, string]{})
		},
		"has no record to be read": func(tb streamstest.TB) { streamstest.NewOutputTopic[string, int64](driver(tb), "out").Read() },
		"deserialize the value": func(tb streamstest.TB) {
			d := driver(tb)
			streamstest.NewInputTopic[string, string](d, "lines").PipeValue("x")
			streamstest.NewOutputTopic[string, int32](d, "out").Read()
		},
		`no state store "count", only ["counts"]`: func(tb streamstest.TB) { streamstest.Store[state.Store](driver(tb), "count") },
		"is a *state.TimestampedKeyValue":         func(tb streamstest.TB) { streamstest.KeyValueStore[string, int64](driver(tb), "counts") },
	} {
		tb := &failing{}
		tb.run(func() { mistake(tb) })
		if !strings.Contains(tb.message, says) {
			t.Errorf("fails with %q, which does not say %q", tb.message, says)
		}
	}
}

// failing is a test that is expected to fail.
type failing struct {
	message  string
	cleanups []func()
}

type failed struct{}

func (*failing) Helper()            {}
func (f *failing) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *failing) Errorf(format string, args ...any) {
	f.message += fmt.Sprintf(format, args...)
}
func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(failed{})
}

func (f *failing) run(test func()) {
	defer func() {
		if _, ok := recover().(failed); ok {
			for _, c := range f.cleanups {
				c()
			}
		}
	}()
	test()
}

// TestDriverCloses: the end of the test closes processors, once, and an error of
// theirs fails it.
func TestDriverCloses(t *testing.T) {
	b := streams.NewBuilder()
	closed := 0
	streams.Process(streams.Stream[string, string](b, "in"), func() streams.Processor[string, string, string, string] {
		return &closing{closed: &closed}
	}).To("out")
	tb := &failing{}
	d := streamstest.NewDriver(tb, b.Build())
	d.Close()
	for _, c := range tb.cleanups {
		c()
	}
	if closed != 1 || !strings.Contains(tb.message, "can't close") {
		t.Errorf("closed %d times, failed with %q", closed, tb.message)
	}
}

type closing struct {
	locating
	closed *int
}

func (c *closing) Close() error { *c.closed++; return errors.New("can't close") }

// TestDriverWallClock: time passes when it is told to, for punctuations, processors
// and all that comes of them, in other subtopologies too.
func TestDriverWallClock(t *testing.T) {
	b := streams.NewBuilder()
	streams.Process(streams.Stream[string, string](b, "in"), func() streams.Processor[string, string, string, string] { return &ticking{} }).
		Repartition(streams.Repartitioned[string, string]{Name: "r"}).To("out")
	d := streamstest.NewDriver(t, b.Build(), streamstest.WithStartTime(time.UnixMilli(1000)))
	out := streamstest.NewOutputTopic[string, string](d, "out")
	d.AdvanceWallClock(9 * time.Second)
	if !out.IsEmpty() {
		t.Errorf("the punctuation came early: %+v", out.ReadAll())
	}
	d.AdvanceWallClock(time.Second)
	if got := fmt.Sprintf("%+v", out.ReadKeyValues()); got != "[{Key:tick Value:11000}]" {
		t.Errorf("read %s", got)
	}
	if got := d.WallClock(); !got.Equal(time.UnixMilli(11000)) {
		t.Errorf("it is %v", got)
	}
}

type ticking struct{ locating }

func (p *ticking) Init(ctx *streams.ProcessorContext[string, string]) error {
	_, err := ctx.Schedule(10*time.Second, streams.WallClockTime, func(now int64) error {
		return ctx.Forward(streams.Record[string, string]{Key: "tick", Value: fmt.Sprint(ctx.SystemTime()), Timestamp: now})
	})
	return err
}

// TestDriverGlobal: every subtopology sees what is in a global table, and the test does,
// whether the table's topic is piped into or written to by the topology.
func TestDriverGlobal(t *testing.T) {
	b := streams.NewBuilder()
	table := streams.GlobalTable(b, "prices", streams.Materialized[string, string]{Name: "prices"})
	streams.Stream[string, string](b, "new-prices").To("prices")
	for _, topic := range []string{"a", "b"} {
		streams.LeftJoinGlobalTable(streams.Stream[string, string](b, topic), table,
			func(_, v string) (string, bool) { return v, true },
			func(v, price string) string { return v + "=" + price }).To("out")
	}
	d := streamstest.NewDriver(t, b.Build())
	streamstest.NewInputTopic[string, string](d, "prices").Pipe("tea", "3")
	streamstest.NewInputTopic[string, string](d, "new-prices").Pipe("milk", "1")
	streamstest.NewInputTopic[string, string](d, "a").PipeValues("tea", "milk", "beer")
	streamstest.NewInputTopic[string, string](d, "b").PipeValues("tea")
	streamstest.NewInputTopic[string, string](d, "prices").PipeTombstone("tea")
	streamstest.NewInputTopic[string, string](d, "b").PipeValues("tea")
	if got := fmt.Sprint(streamstest.NewOutputTopic[string, string](d, "out").ReadValues()); got != "[tea=3 milk=1 beer= tea=3 tea=]" {
		t.Errorf("read %s", got)
	}
	if v, _, ok, err := streamstest.TimestampedKeyValueStore[string, string](d, "prices").Get("milk"); v != "1" || !ok || err != nil {
		t.Errorf("the store has %q, %v, %v", v, ok, err)
	}
	if err := d.TryPipe(&kgo.Record{Topic: "none"}); err == nil || !strings.Contains(err.Error(), `"prices"`) {
		t.Errorf("%v does not name the table's topic", err)
	}
}
