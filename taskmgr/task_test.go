package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// fakeGraph records what reaches it.
type fakeGraph struct {
	ctx   *Context
	seen  []string
	times []int64
	fail  error
}

func (g *fakeGraph) Source(topic string) Source {
	if topic == "unknown" {
		return nil
	}
	return g
}
func (g *fakeGraph) Close() error { return nil }

func (g *fakeGraph) Timestamp(rec *kgo.Record, _ int64) (int64, error) {
	return rec.Timestamp.UnixMilli(), nil
}

func (g *fakeGraph) Process(rec *kgo.Record, ts int64) error {
	if g.ctx.Record() != rec {
		return errors.New("the context has another record")
	}
	g.seen = append(g.seen, fmt.Sprintf("%s-%d@%d", rec.Topic, rec.Partition, rec.Offset))
	g.times = append(g.times, ts)
	return g.fail
}

func runningTask(t testing.TB, topics ...string) (*task, *fakeGraph) {
	g := &fakeGraph{}
	id := membership.TaskID{Subtopology: "0", Partition: 1}
	task := newTask(id, Subtopology{SourceTopics: topics, NewGraph: func(ctx *Context) (Graph, error) {
		g.ctx = ctx
		return g, nil
	}}, nil, storage{}, restoring)
	if _, err := task.open(); err != nil {
		t.Fatal(err)
	}
	var inputs []*input
	for _, topic := range topics {
		inputs = append(inputs, &input{task: task, topic: topic, partition: 1, time: -1, next: -1})
	}
	if err := task.start(inputs); err != nil {
		t.Fatal(err)
	}
	return task, g
}

func always() bool { return true }

func record(topic string, offset, ts int64) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: 1, Offset: offset, Timestamp: time.UnixMilli(ts), LeaderEpoch: 7}
}

func TestTaskProcessesInTimestampOrder(t *testing.T) {
	task, g := runningTask(t, "a", "b")
	task.inputs[0].queue = []*kgo.Record{record("a", 0, 10), record("a", 1, 30), record("a", 2, 20)}
	task.inputs[1].queue = []*kgo.Record{record("b", 5, 15), record("b", 6, 25)}
	if err := task.process(always); err != nil {
		t.Fatal(err)
	}
	// a@1 at 30 holds a@2 at 20 back: a partition's own order stays.
	want := []string{"a-1@0", "b-1@5", "b-1@6", "a-1@1", "a-1@2"}
	if !slices.Equal(g.seen, want) {
		t.Errorf("processed %v, want %v", g.seen, want)
	}
	a, b := task.inputs[0], task.inputs[1]
	if a.next != 3 || a.time != 30 || b.next != 7 || b.time != 25 || a.leaderEpoch != 7 || !task.dirty() {
		t.Errorf("after processing: %+v, %+v", a, b)
	}
	if g.ctx.StreamTime() != 30 || g.ctx.Record() != nil {
		t.Errorf("the context has stream time %d and record %v", g.ctx.StreamTime(), g.ctx.Record())
	}
}

// TestTaskOrder: whatever is queued, each partition's records come in their
// order, and the next one processed is never later than another partition's head.
func TestTaskOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topics := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "topics")]
		var tt testing.T
		task, g := runningTask(&tt, topics...)
		heads := make([][]int64, len(topics))
		total := 0
		for i, in := range task.inputs {
			heads[i] = rapid.SliceOfN(rapid.Int64Range(0, 20), 0, 10).Draw(t, in.topic)
			for j, ts := range heads[i] {
				in.queue = append(in.queue, record(in.topic, int64(j), ts))
			}
			total += len(heads[i])
		}
		if err := task.process(always); err != nil {
			t.Fatal(err)
		}
		if len(g.seen) != total {
			t.Fatalf("processed %d of %d", len(g.seen), total)
		}
		at := make([]int, len(topics))
		for n, seen := range g.seen {
			i := slices.IndexFunc(topics, func(topic string) bool { return strings.HasPrefix(seen, topic+"-") })
			if want := fmt.Sprintf("%s-1@%d", topics[i], at[i]); seen != want {
				t.Fatalf("step %d processed %s, want %s", n, seen, want)
			}
			for j := range topics {
				if at[j] < len(heads[j]) && heads[j][at[j]] < heads[i][at[i]] {
					t.Fatalf("step %d processed %s at %d while %s has %d", n, seen, heads[i][at[i]], topics[j], heads[j][at[j]])
				}
			}
			at[i]++
		}
	})
}

// TestTaskStops: a task that may not go on keeps the rest in its queues, and goes
// on with it later.
func TestTaskStops(t *testing.T) {
	task, g := runningTask(t, "a")
	for i := range int64(3 * confirmEvery) {
		task.inputs[0].queue = append(task.inputs[0].queue, record("a", i, i))
	}
	left := 2
	if err := task.process(func() bool { left--; return left >= 0 }); err != nil {
		t.Fatal(err)
	}
	if len(g.seen) != 2*confirmEvery || !task.queued() || task.inputs[0].next != 2*confirmEvery {
		t.Errorf("processed %d, next offset %d, more queued: %v", len(g.seen), task.inputs[0].next, task.queued())
	}
	if err := task.process(func() bool { return false }); err != nil || len(g.seen) != 2*confirmEvery {
		t.Errorf("processed %d, %v", len(g.seen), err)
	}
	if err := task.process(always); err != nil || len(g.seen) != 3*confirmEvery || task.queued() {
		t.Errorf("processed %d, more queued: %v, %v", len(g.seen), task.queued(), err)
	}
}

func TestTaskDropsNegativeTimestamps(t *testing.T) {
	task, g := runningTask(t, "a")
	task.inputs[0].queue = []*kgo.Record{record("a", 0, -1), record("a", 1, 5)}
	if err := task.process(always); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.seen, []string{"a-1@1"}) || task.inputs[0].next != 2 {
		t.Errorf("processed %v, next offset %d", g.seen, task.inputs[0].next)
	}
}

// TestTaskErrorNamesTheRecord: what failed is not committed, and can be found.
func TestTaskErrorNamesTheRecord(t *testing.T) {
	task, g := runningTask(t, "a")
	g.fail = errors.New("no")
	task.inputs[0].queue = []*kgo.Record{record("a", 41, 1), record("a", 42, 1)}
	err := task.process(always)
	var te *TaskError
	if !errors.As(err, &te) || !errors.Is(err, g.fail) || te.Task != task.id || te.Topic != "a" || te.Partition != 1 || te.Offset != 41 {
		t.Errorf("got %v", err)
	}
	if task.dirty() {
		t.Error("the failed record's offset would be committed")
	}
}

func TestTaskStartNeedsSources(t *testing.T) {
	task := newTask(membership.TaskID{Subtopology: "0"}, Subtopology{NewGraph: func(*Context) (Graph, error) { return &fakeGraph{}, nil }}, nil, storage{}, restoring)
	if err := task.start([]*input{{task: task, topic: "unknown"}}); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("got %v", err)
	}
}

// brokenStore fails to open or to close.
type brokenStore struct {
	state.Store
	open, close error
}

func (s brokenStore) Open(c state.OpenContext) error { return errors.Join(s.open, s.Store.Open(c)) }
func (s brokenStore) Close() error                   { return errors.Join(s.close, s.Store.Close()) }

func TestTaskStores(t *testing.T) {
	broken := errors.New("broken")
	counts := func() state.Store {
		return state.NewTimestampedKeyValue("counts", serde.String, serde.Int64, state.Memory)
	}
	id := membership.TaskID{Subtopology: "1"}
	with := func(s state.Store) *task {
		return newTask(id, Subtopology{Stores: []StoreSpec{{New: func() state.Store { return s }}}}, nil, storage{}, restoring)
	}
	_, err := with(brokenStore{counts(), broken, nil}).open()
	var te *TaskError
	if !errors.Is(err, broken) || !errors.As(err, &te) || te.Task != id {
		t.Errorf("opening a broken store: %v", err)
	}

	task := with(brokenStore{counts(), nil, broken})
	if _, err := task.open(); err != nil {
		t.Fatal(err)
	}
	if task.ctx.Store("counts") == nil || task.ctx.Store("others") != nil {
		t.Error("the context has not the stores of the task")
	}
	if err := task.close(true, nil); !errors.Is(err, broken) {
		t.Errorf("closing a broken store: %v", err)
	}
	if err := task.close(true, nil); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err   *kerr.Error
		is    error
		retry bool
	}{
		{kerr.StaleMemberEpoch, errStaleEpoch, false},
		{kerr.UnknownMemberID, errFenced, false},
		{kerr.FencedMemberEpoch, errFenced, false},
		{kerr.IllegalGeneration, errFenced, false},
		{kerr.NotCoordinator, kerr.NotCoordinator, true},
		{kerr.CoordinatorLoadInProgress, kerr.CoordinatorLoadInProgress, true},
		{kerr.UnknownTopicOrPartition, kerr.UnknownTopicOrPartition, true},
		{kerr.UnknownTopicID, kerr.UnknownTopicID, true},
		{kerr.UnstableOffsetCommit, kerr.UnstableOffsetCommit, true},
		{kerr.TopicAuthorizationFailed, kerr.TopicAuthorizationFailed, false},
		{kerr.OffsetMetadataTooLarge, kerr.OffsetMetadataTooLarge, false},
	} {
		err := classify(c.err.Code)
		if !errors.Is(err, c.is) || retriable(err) != c.retry {
			t.Errorf("%v is %v, retriable: %v", c.err, err, retriable(err))
		}
	}
	if err := classify(0); err != nil {
		t.Errorf("no error is %v", err)
	}
}

func TestRetriable(t *testing.T) {
	for err, want := range map[error]bool{
		io.EOF: true,
		&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}: true,
		context.Canceled:         false,
		context.DeadlineExceeded: false,
		kgo.ErrClientClosed:      false,
		errors.New("anything"):   false,
	} {
		if got := retriable(&CommitError{Err: err}); got != want {
			t.Errorf("%v: retriable is %v", err, got)
		}
	}
}

func TestWorst(t *testing.T) {
	of := func(codes ...*kerr.Error) error {
		var errs []error
		for _, c := range codes {
			errs = append(errs, &CommitError{Err: classify(c.Code)})
		}
		return worst(errs)
	}
	if err := of(); err != nil {
		t.Errorf("the worst of nothing is %v", err)
	}
	if err := of(kerr.NotCoordinator, kerr.StaleMemberEpoch, kerr.UnknownMemberID, kerr.TopicAuthorizationFailed); !errors.Is(err, errFenced) {
		t.Errorf("got %v, not the fencing", err)
	}
	if err := of(kerr.NotCoordinator, kerr.StaleMemberEpoch, kerr.TopicAuthorizationFailed); !errors.Is(err, errStaleEpoch) {
		t.Errorf("got %v, not the stale epoch", err)
	}
	if err := of(kerr.NotCoordinator, kerr.TopicAuthorizationFailed); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("got %v, not the error that can't be retried", err)
	}
}

// TestProcessorMetadata: what processors want to know again is there before the
// graph is made, and is committed with all partitions, of which those that have
// nothing else to commit say it too.
func TestProcessorMetadata(t *testing.T) {
	atStart := make(map[string]int64)
	task := newTask(membership.TaskID{}, Subtopology{NewGraph: func(ctx *Context) (Graph, error) {
		for _, key := range []string{"a", "b", "c"} {
			if value, ok := ctx.ProcessorMetadata(key); ok {
				atStart[key] = value
			}
		}
		return &fakeGraph{ctx: ctx}, nil
	}}, nil, storage{}, restored)
	inputs := []*input{
		{task: task, topic: "x", next: 5, processors: map[string]int64{"a": 1, "b": 2}},
		{task: task, topic: "y", next: 7, processors: map[string]int64{"a": 3, "b": 1}},
		{task: task, topic: "z", next: -1},
	}
	if err := task.start(inputs); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int64{"a": 3, "b": 2}; !maps.Equal(atStart, want) {
		t.Errorf("it starts with %v, want %v", atStart, want)
	}
	if err := task.flush(); err != nil || task.dirty() {
		t.Errorf("a flush leaves something to commit where nothing has changed (%v)", err)
	}
	task.ctx.SetProcessorMetadata("c", 9)
	if err := task.flush(); err != nil {
		t.Fatal(err)
	}
	if !inputs[0].dirty || !inputs[1].dirty || inputs[2].dirty {
		t.Errorf("to commit are %v, %v, %v; want those with an offset", inputs[0].dirty, inputs[1].dirty, inputs[2].dirty)
	}
	if got := decodeMetadata(task.ctx.OffsetMetadata(4)); got.time != 4 || !maps.Equal(got.processors, map[string]int64{"a": 3, "b": 2, "c": 9}) {
		t.Errorf("committed is %v", got)
	}
	// Elsewhere it may have gone on: what is there now is forgotten.
	clear(atStart)
	if err := task.start([]*input{{task: task, topic: "x", next: 6, processors: map[string]int64{"c": 10}}}); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int64{"c": 10}; !maps.Equal(atStart, want) {
		t.Errorf("it starts again with %v, want %v", atStart, want)
	}
}
