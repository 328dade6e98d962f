package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/streams"
)

// shutdownApplication: one instance asks, and all end with a reason.
func shutdownApplication(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 2), c.topic(t, "out", 1)
	c.configure(t, "streams.session.timeout.ms", "2000")
	a, b := c.start(t, longestTopology(in, out)), c.start(t, longestTopology(in, out), func(cfg *streams.Config) { cfg.NumStreamThreads = 2 })
	running(t, a, b)
	c.produce(t, in, "a")
	c.received(t, out, "a")
	a.app.ShutdownApplication()
	for name, i := range map[string]*instance{"the one that asked": a, "the other one": b} {
		if err := i.ended(t); !errors.Is(err, membership.ErrShutdownRequested) || i.app.State() != streams.Error {
			t.Errorf("%s ended as %v with %v", name, i.app.State(), err)
		}
	}
	// Once the sessions of those that were told have expired, the application can
	// be started again, and goes on behind what was committed.
	eventually(t, "an empty group", func() error {
		group, err := c.describe(t)
		if err == nil && len(group.Members) > 0 {
			err = fmt.Errorf("it has %d members", len(group.Members))
		}
		return err
	})
	d := c.start(t, longestTopology(in, out))
	running(t, d)
	c.produce(t, in, "aa", "aa")
	c.received(t, out, "a", "aa")
}

// shutdownByHandler: an instance fails, and its handler stops the application.
func shutdownByHandler(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	handler := func(cfg *streams.Config) {
		cfg.UncaughtExceptionHandler = func(err error) streams.UncaughtExceptionResponse {
			if !errors.Is(err, errFail) {
				t.Errorf("the handler is asked about %v", err)
			}
			return streams.ShutdownApplication
		}
	}
	a, b := c.start(t, longestTopology(in, out), handler), c.start(t, longestTopology(in, out), handler)
	running(t, a, b)
	c.produce(t, in, "fail")
	errA, errB := a.ended(t), b.ended(t)
	if errors.Is(errB, errFail) {
		errA, errB = errB, errA
	}
	if !errors.Is(errA, errFail) || !errors.Is(errB, membership.ErrShutdownRequested) || errors.Is(errB, errFail) {
		t.Errorf("ended with %v and %v", errA, errB)
	}
}

// replaceThread: a failed thread is replaced as long as the handler says so, and
// what it had not committed is processed again.
func replaceThread(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	var failures atomic.Int32
	topology := streams.NewTopology()
	streams.AddSource(topology, "source", streams.Consumed[string, string]{}, in)
	streams.AddProcessor(topology, "p", func() streams.Processor[string, string, string, string] {
		return &failing{left: &failures}
	}, "source")
	streams.AddSink(topology, "sink", out, streams.Produced[string, string]{}, "p")
	failures.Store(2)
	app := c.start(t, topology, func(cfg *streams.Config) {
		cfg.UncaughtExceptionHandler = func(error) streams.UncaughtExceptionResponse { return streams.ReplaceThread }
	})
	c.produce(t, in, "a", "b")
	eventually(t, "the records to go through", func() error {
		if n := c.ends(t, out)[0]; n < 2 {
			return fmt.Errorf("%d went through", n)
		}
		return nil
	})
	running(t, app)
	if err := app.stop(); err != nil || failures.Load() > 0 {
		t.Errorf("stopped with %v, %d failures left", err, failures.Load())
	}
}

// failing fails as often as left says, and sends records on otherwise.
type failing struct {
	ctx  *streams.ProcessorContext[string, string]
	left *atomic.Int32
}

func (f *failing) Init(ctx *streams.ProcessorContext[string, string]) error {
	f.ctx = ctx
	return nil
}

func (f *failing) Process(r streams.Record[string, string]) error {
	if f.left.Load() > 0 {
		f.left.Add(-1)
		return errFail
	}
	return f.ctx.Forward(r)
}

func (f *failing) Close() error { return nil }

// staticMember: a static member that restarts finds its tasks again, and nothing
// moves to others meanwhile.
func staticMember(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 4), c.topic(t, "out", 1)
	static := func(name string) func(*streams.Config) {
		return func(cfg *streams.Config) { cfg.GroupInstanceID = name }
	}
	a, b := c.start(t, longestTopology(in, out), static("a")), c.start(t, longestTopology(in, out), static("b"))
	owned := func() map[string][]int32 {
		tasks := make(map[string][]int32)
		eventually(t, "two members with tasks", func() error {
			group, err := c.describe(t)
			if err != nil {
				return err
			}
			for _, m := range group.Members {
				if m.InstanceID == nil || len(m.Assignment.ActiveTasks) != 1 || !slices.EqualFunc(m.Assignment.ActiveTasks, m.TargetAssignment.ActiveTasks, sameTasks) {
					return fmt.Errorf("a member is %+v", m)
				}
				tasks[*m.InstanceID] = slices.Sorted(slices.Values(m.Assignment.ActiveTasks[0].Partitions))
			}
			if len(group.Members) != 2 {
				return fmt.Errorf("the group has %d members", len(group.Members))
			}
			return nil
		})
		return tasks
	}
	running(t, a, b)
	before := owned()
	if before["a-1"] == nil || before["b-1"] == nil {
		t.Fatalf("tasks are %v: the instance ids have not the threads' numbers", before)
	}
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	a = c.start(t, longestTopology(in, out), static("a"))
	running(t, a, b)
	if after := owned(); !maps.EqualFunc(before, after, slices.Equal) {
		t.Errorf("tasks were %v before the restart and are %v after it", before, after)
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	if err := c.start(t, longestTopology(in, out), static("a")).ended(t); !errors.Is(err, membership.ErrInstanceIDInUse) {
		t.Errorf("a second instance of the same id ended with %v", err)
	}
}

func sameTasks(a, b kmsg.TaskIDs) bool {
	return a.SubtopologyID == b.SubtopologyID && slices.Equal(slices.Sorted(slices.Values(a.Partitions)), slices.Sorted(slices.Values(b.Partitions)))
}

// slowProcessor: a record takes longer than max.poll.interval. The member leaves
// so that others can go on, and joins again when there is progress; what it
// had not committed is processed again, by whoever has the task then.
func slowProcessor(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	c.produce(t, in, "a", "slow", "b")
	release := make(chan struct{})
	var slow atomic.Int32
	topology := streams.NewTopology()
	streams.AddSource(topology, "source", streams.Consumed[string, string]{}, in)
	streams.AddProcessor(topology, "p", func() streams.Processor[string, string, string, string] {
		return &blocking{release: release, slow: &slow}
	}, "source")
	streams.AddSink(topology, "sink", out, streams.Produced[string, string]{}, "p")
	app := c.start(t, topology, func(cfg *streams.Config) { cfg.MaxPollInterval = time.Second })
	eventually(t, "the member to leave", func() error {
		group, err := c.describe(t)
		if err == nil && (slow.Load() == 0 || len(group.Members) > 0) {
			err = fmt.Errorf("%d members", len(group.Members))
		}
		return err
	})
	select {
	case <-app.done:
		t.Fatalf("the application ended: %v", app.err)
	default:
	}
	close(release)
	eventually(t, "all records to go through", func() error {
		seen := make(map[string]bool)
		for _, r := range c.read(t, out) {
			seen[string(r.Value)] = true
		}
		if len(seen) != 3 {
			return fmt.Errorf("only %v did", seen)
		}
		return nil
	})
	running(t, app)
	c.produce(t, in, "c")
	eventually(t, "one more record", func() error {
		records := c.read(t, out)
		if last := records[len(records)-1]; string(last.Value) != "c" {
			return fmt.Errorf("the last is %q", last.Value)
		}
		return nil
	})
	if err := app.stop(); err != nil {
		t.Error(err)
	}
}

// blocking blocks at the record "slow" until it is released.
type blocking struct {
	ctx     *streams.ProcessorContext[string, string]
	release chan struct{}
	slow    *atomic.Int32
}

func (b *blocking) Init(ctx *streams.ProcessorContext[string, string]) error {
	b.ctx = ctx
	return nil
}

func (b *blocking) Process(r streams.Record[string, string]) error {
	if r.Value == "slow" {
		b.slow.Add(1)
		<-b.release
	}
	return b.ctx.Forward(r)
}

func (b *blocking) Close() error { return nil }
