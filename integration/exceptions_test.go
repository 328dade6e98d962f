package integration

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/taskmgr"
)

// poisonRecords: records that can't be read, processed or written are left out
// where a handler says so, with a dead letter each; all others go through.
func poisonRecords(t *testing.T, c *cluster) {
	in, out, dead := c.topic(t, "in", 1), c.topic(t, "out", 1), c.topic(t, "dead", 1)
	var mu sync.Mutex
	asked := make(map[string]int)
	handler := func(name string) streams.ExceptionHandler {
		return func(ctx streams.ErrorHandlerContext, err error) streams.ExceptionHandlerResponse {
			mu.Lock()
			defer mu.Unlock()
			asked[name+" "+string(ctx.Record.Value)]++
			return streams.Resume
		}
	}
	c.produce(t, in, "good", "unreadable", "good", "fail", "unwritable", "good")
	app := c.start(t, poisonTopology(in, out), func(cfg *streams.Config) {
		cfg.DeserializationExceptionHandler = handler("read")
		cfg.ProcessingExceptionHandler = handler("process")
		cfg.ProductionExceptionHandler = handler("write")
		cfg.DeadLetterQueueTopic = dead
	})
	c.received(t, out, "good", "good", "good")
	c.received(t, dead, "unreadable", "fail", "unwritable")
	letter := c.read(t, dead)[1]
	headers := make(map[string]string)
	for _, h := range letter.Headers {
		headers[h.Key] = string(h.Value)
	}
	for key, want := range map[string]string{
		"__streams.errors.exception": "*streams.ProcessorError", "__streams.errors.topic": in,
		"__streams.errors.partition": "0", "__streams.errors.offset": "3",
		"__streams.errors.message": fmt.Sprintf("processor %q: %v", "picky", errFail),
	} {
		if headers[key] != want {
			t.Errorf("header %s is %q, want %q", key, headers[key], want)
		}
	}
	if err := app.stop(); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"read unreadable", "process fail", "write unwritable"} {
		if asked[key] != 1 {
			t.Errorf("handlers were asked %v", asked)
		}
	}

	// What was left out is committed: it does not come again.
	c.start(t, poisonTopology(in, out))
	c.produce(t, in, "good")
	c.received(t, out, "good", "good", "good", "good")
}

// deadLetterOfFailure: where the handler has the thread fail, the dead letter is
// written all the same.
func deadLetterOfFailure(t *testing.T, c *cluster) {
	in, out, dead := c.topic(t, "in", 1), c.topic(t, "out", 1), c.topic(t, "dead", 1)
	c.produce(t, in, "good", "unreadable")
	err := c.start(t, poisonTopology(in, out), func(cfg *streams.Config) { cfg.DeadLetterQueueTopic = dead }).ended(t)
	var de *streams.DeserializationError
	if !errors.As(err, &de) || de.Part != "value" || !errors.Is(err, errUnreadable) {
		t.Errorf("ended with %v", err)
	}
	c.received(t, out, "good")
	c.received(t, dead, "unreadable")
}

// recordTooLarge: the broker's refusal of a record is for the production handler.
func recordTooLarge(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	c.produce(t, in, "good", "huge", "good")
	var refused []string
	app := c.start(t, poisonTopology(in, out), func(cfg *streams.Config) {
		cfg.ProductionExceptionHandler = func(ctx streams.ErrorHandlerContext, err error) streams.ExceptionHandlerResponse {
			refused = append(refused, ctx.Record.Topic)
			return streams.Resume
		}
	})
	c.received(t, out, "good", "good")
	if err := app.stop(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(refused, []string{out}) {
		t.Errorf("refused records for %q", refused)
	}
}

// recordBeyondBuffers: a record that is larger than all that the client buffers,
// which it refuses on its own and late, is not lost: the thread fails, and what it
// came from is not committed.
func recordBeyondBuffers(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	c.produce(t, in, "enormous")
	for range 2 { // it comes again
		var pe *taskmgr.ProduceError
		if err := c.start(t, poisonTopology(in, out)).ended(t); !errors.As(err, &pe) || pe.Topic != out {
			t.Fatalf("ended with %v", err)
		}
	}
}

// slowRecords: a thread looks up between slow records. It stops when it is told
// to, and commits what it has processed and no more.
func slowRecords(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	var values []string
	for i := range 500 {
		values = append(values, fmt.Sprint(i))
	}
	c.produce(t, in, values...)
	topology := func() *streams.Topology {
		b := streams.NewBuilder()
		streams.FlatMapValues(streams.Stream[string, string](b, in), func(v string) []string {
			time.Sleep(20 * time.Millisecond)
			return []string{v}
		}).To(out)
		return b.Build()
	}
	app := c.start(t, topology(), func(cfg *streams.Config) { cfg.MaxPollInterval = 3 * time.Second })
	eventually(t, "the first outputs", func() error {
		if n := c.ends(t, out)[0]; n < 10 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	if err := app.stop(); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if n := c.ends(t, out)[0]; n >= 500 {
		t.Error("it stopped only when it had processed all")
	}
	running(t, c.start(t, topology(), func(cfg *streams.Config) { cfg.MaxPollInterval = 3 * time.Second }))
	c.received(t, out, values...)
}

var (
	errUnreadable = errors.New("can't be read")
	errUnwritable = errors.New("can't be written")
)

func poisonTopology(in, out string) *streams.Topology {
	text := serde.New(
		func(v string) ([]byte, error) {
			switch v {
			case "unwritable":
				return nil, errUnwritable
			case "huge":
				return make([]byte, 2<<20), nil
			case "enormous":
				return make([]byte, 40<<20), nil
			}
			return []byte(v), nil
		},
		func(b []byte) (string, error) {
			if string(b) == "unreadable" {
				return "", errUnreadable
			}
			return string(b), nil
		},
	)
	t := streams.NewTopology()
	streams.AddSource(t, "source", streams.ConsumedWith(serde.String, text), in)
	streams.AddProcessor(t, "picky", func() streams.Processor[string, string, string, string] { return &picky{} }, "source")
	streams.AddSink(t, "sink", out, streams.ProducedWith(serde.String, text), "picky")
	return t
}

// picky fails at the value "fail".
type picky struct {
	ctx *streams.ProcessorContext[string, string]
}

func (p *picky) Init(ctx *streams.ProcessorContext[string, string]) error { p.ctx = ctx; return nil }
func (p *picky) Close() error                                             { return nil }

func (p *picky) Process(r streams.Record[string, string]) error {
	if r.Value == "fail" {
		return errFail
	}
	return p.ctx.Forward(r)
}
