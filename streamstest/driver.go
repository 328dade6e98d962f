package streamstest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/taskmgr"
)

// TB is a test: a testing.TB, or something like it such as a *rapid.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Driver runs a topology in a test, without a broker, goroutines or waiting: what is piped into an input topic has gone
// all the way to the output topics when the call returns. It is Java's TopologyTestDriver.
//
//	d := streamstest.NewDriver(t, topology)
//	lines := streamstest.NewInputTopic[string, string](d, "lines")
//	counts := streamstest.NewOutputTopic[string, int64](d, "counts")
//	lines.Pipe("", "to be or not to be")
//	got := streamstest.ReadMap(counts) // map[be:2 not:1 or:1 to:2]
//
// Every topic has one partition, and every subtopology one task, of partition 0. Stores are in memory. What is sent to a repartition topic,
// or to any other topic that the topology reads, is processed at once; of the records that wait in several topics the
// one with the lowest timestamp is next. A commit follows each record.
//
// As in Java, all errors fail the test, unless they are asked for as errors with TryPipe; panics of the topology's code
// are left to the test. Unlike in Java, subtopologies are tasks of their own, each with its own stream time, as they
// are on a broker.
//
// A Driver is used by one goroutine. It closes itself when the test ends.
type Driver struct {
	tb       TB
	config   driverConfig
	compiled *streams.Compiled
	now      time.Time

	tasks  []*driverTask
	inputs map[string]*driverInput // by topic
	queued byHead
	stores map[string]state.Store
	global *driverGlobal // nil: there are no global stores
	disk   *state.Disk   // for all stores
	cache  *state.Cache
	sinks  map[string]bool // the topics that are known to be written to; nil: any may be

	out      collector
	captured int                      // how many of out's records were taken up
	outputs  map[string][]*kgo.Record // what was captured and not read, by topic
	closed   bool
}

// driverTask is the task of one subtopology.
type driverTask struct {
	ctx    *taskmgr.Context
	graph  taskmgr.Graph
	stores []state.Store

	patterns []taskmgr.SourcePattern // of topics that it reads besides those that are among the inputs
}

// DriverOption configures a Driver.
type DriverOption func(*driverConfig)

type driverConfig struct {
	streams      streams.Config
	start        time.Time
	emitInterval time.Duration
}

// WithConfig gives the application's configuration. What counts is the application id, "app" by default, which the names
// of repartition and changelog topics begin with; the size of caches, which hold changes back until a record and all
// that it leads to in its task is processed; and the handlers of errors and their dead-letter topic.
func WithConfig(cfg streams.Config) DriverOption {
	return func(c *driverConfig) { c.streams = cfg }
}

// WithStartTime sets the wall clock that the driver begins with, and that input topics begin with unless they say
// otherwise. By default it is the time of now.
func WithStartTime(t time.Time) DriverOption { return func(c *driverConfig) { c.start = t } }

// WithEmitInterval sets how long, by the wall clock, operators wait at least between two looks for results whose
// windows have closed. By default they look with every record, as in Java's driver; an application does it once a
// second.
func WithEmitInterval(d time.Duration) DriverOption {
	return func(c *driverConfig) { c.emitInterval = d }
}

// NewDriver returns a driver whose tasks run. A topology that can't work fails the test.
func NewDriver(tb TB, topology *streams.Topology, opts ...DriverOption) *Driver {
	tb.Helper()
	d := &Driver{
		tb:      tb,
		config:  driverConfig{start: time.Now()},
		inputs:  make(map[string]*driverInput),
		stores:  make(map[string]state.Store),
		outputs: make(map[string][]*kgo.Record),
	}
	for _, o := range opts {
		o(&d.config)
	}
	if d.config.streams.ApplicationID == "" {
		d.config.streams.ApplicationID = "app"
	}
	d.now = d.config.start
	tb.Cleanup(d.Close)
	if err := d.open(topology); err != nil {
		tb.Fatalf("streamstest: %v", err)
	}
	return d
}

func (d *Driver) open(topology *streams.Topology) (err error) {
	if d.compiled, err = topology.Compile(d.config.streams); err != nil {
		return err
	}
	d.disk = state.NewDisk(state.DiskOptions{InMemory: true})
	if size := d.config.streams.StateStoreCacheMaxBytes; size >= 0 {
		d.cache = state.NewCache(cmp.Or(size, streams.DefaultStateStoreCacheMaxBytes))
	}
	if err := d.openGlobal(); err != nil {
		return fmt.Errorf("global stores: %w", err)
	}
	d.sinks = writtenTopics(d.compiled, d.config.streams.DeadLetterQueueTopic)
	for _, id := range slices.SortedFunc(maps.Keys(d.compiled.Tasks), byNumber) {
		if err := d.openTask(id, d.compiled.Tasks[id]); err != nil {
			return fmt.Errorf("subtopology %s: %w", id, err)
		}
	}
	return d.complete()
}

func (d *Driver) openTask(id string, spec taskmgr.Subtopology) error {
	task := &driverTask{}
	d.tasks = append(d.tasks, task)
	for _, spec := range spec.Stores {
		task.stores = append(task.stores, spec.New())
	}
	task.ctx = taskmgr.NewContext(membership.TaskID{Subtopology: id}, &d.out, task.stores...)
	task.ctx.SetSystemTime(d.now.UnixMilli())
	task.ctx.EmitInterval = d.config.emitInterval.Milliseconds()
	for i, s := range task.stores {
		ctx := state.OpenContext{
			Disk: d.disk, Cache: d.cache,
			Record: func() any { return task.ctx.Moment() },
		}
		if spec := spec.Stores[i]; spec.Changelog != "" && !spec.ChangelogIsSource {
			ctx.Changelog = changelog{&d.out, spec.Changelog}
		}
		if err := s.Open(ctx); err != nil {
			return err
		}
		d.stores[s.Name()] = s
	}
	if d.global != nil {
		task.ctx.AddStores(d.global.views...)
	}
	graph, err := spec.NewGraph(task.ctx)
	if err != nil {
		return err
	}
	task.graph = graph
	for _, topic := range spec.SourceTopics {
		d.inputs[topic] = newDriverInput(task, topic)
	}
	task.patterns = spec.SourcePatterns
	return nil
}

// Close ends the topology's processors and stores. It is called when the test ends, and can be called before, to see
// what processors do when they are closed.
func (d *Driver) Close() {
	d.tb.Helper()
	if d.closed {
		return
	}
	d.closed = true
	for _, task := range d.tasks {
		if task.graph != nil {
			if err := task.graph.Close(); err != nil {
				d.tb.Errorf("streamstest: close: %v", err)
			}
		}
		d.closeStores(task.stores)
	}
	d.closeGlobal()
	if d.disk != nil {
		if err := d.disk.Close(); err != nil {
			d.tb.Errorf("streamstest: close: %v", err)
		}
	}
	d.capture()
}

func (d *Driver) closeStores(stores []state.Store) {
	for _, s := range stores {
		if err := s.Close(); err != nil {
			d.tb.Errorf("streamstest: close: %v", err)
		}
	}
}

// WallClock is the driver's time of day, which stands still unless it is advanced.
func (d *Driver) WallClock() time.Time { return d.now }

// AdvanceWallClock lets time pass, and runs what waits for it.
func (d *Driver) AdvanceWallClock(by time.Duration) {
	d.tb.Helper()
	d.now = d.now.Add(by)
	if err := d.punctuateAll(); err != nil {
		d.tb.Fatalf("streamstest: advance the wall clock to %v: %v", d.now, err)
	}
}

// TryPipe processes a record of an input topic, and all that comes of it, and returns the error that a stream thread
// would have failed with. It takes the record as it is, its timestamp too, but for partition and offset. What was
// queued behind a record that failed is processed with the next one.
func (d *Driver) TryPipe(rec *kgo.Record) error {
	if !d.reads(rec.Topic) {
		return fmt.Errorf("the topology does not read topic %q, only %q", rec.Topic, d.sources())
	}
	if err := d.take(rec); err != nil {
		return err
	}
	return d.complete()
}

// sources are the topics that the topology reads, and their patterns.
func (d *Driver) sources() []string {
	sources := slices.Sorted(maps.Keys(d.inputs))
	if d.global != nil {
		sources = append(sources, d.global.topics...)
	}
	for _, sub := range d.compiled.Heartbeat.Subtopologies {
		for _, pattern := range sub.SourceTopicRegex {
			if !slices.Contains(sources, pattern) {
				sources = append(sources, pattern)
			}
		}
	}
	return sources
}

// Sent returns all that was sent since the last call, in the order of sending: what output topics have too, raw, as
// well as what is in repartition and changelog topics. Records that leave their partition to the default partitioner
// have partition -1, and those that leave their timestamp to the producer have none. Output topics keep what they have.
func (d *Driver) Sent() []*kgo.Record {
	sent := d.out.records[:d.captured]
	d.out.records, d.captured = d.out.records[d.captured:], 0
	return sent
}

// OffsetMetadata is what is committed along with the offset of a topic that the topology reads: the topic's time, and
// what processors want to know again (KIP-825), in Java's encoding.
func (d *Driver) OffsetMetadata(topic string) string {
	d.tb.Helper()
	in := d.inputs[topic]
	if in == nil {
		d.tb.Fatalf("streamstest: the topology does not read topic %q, only %q", topic, d.sources())
	}
	return in.task.ctx.OffsetMetadata(in.time)
}

// byNumber orders the ids of subtopologies, which are numbers.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
