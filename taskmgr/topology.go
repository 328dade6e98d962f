package taskmgr

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// Topology is what a thread runs: its subtopologies by id.
type Topology map[string]Subtopology

// Subtopology is a connected part of a topology. Each of its tasks is one
// instance of it over one partition of its source topics.
type Subtopology struct {
	// SourceTopics are the topics it reads, repartition topics included, by
	// their names in the cluster.
	SourceTopics []string

	// Reset is where partitions of a source topic without a committed offset
	// begin, for topics that don't begin where the thread's others do.
	Reset map[string]Reset

	// Stores are its state stores.
	Stores []StoreSpec

	// NewGraph makes the graph of one task. The context is the task's and
	// valid until the graph is closed; the stores are open and restored.
	NewGraph func(*Context) (Graph, error)
}

// Reset says where a partition begins that does so at the time of now.
type Reset func(now time.Time) kgo.Offset

// StoreSpec is one state store of a subtopology.
type StoreSpec struct {
	// Changelog is the store's changelog topic in the cluster, empty for a
	// store whose changes are not logged.
	Changelog string

	// ChangelogIsSource says that the changelog is a source topic, which the
	// store is restored from up to what was processed, and which nothing is
	// written to.
	ChangelogIsSource bool

	// New makes the store of one task, not yet open.
	New func() state.Store
}

// Graph is what one task computes. It is used by the task's thread alone.
type Graph interface {
	// Source returns what takes the records of a source topic; it is nil for a
	// topic that the graph does not read.
	Source(topic string) Source

	// Close ends the graph's processors. Stores are closed by the task.
	Close() error
}

// Source takes the records of one topic.
type Source interface {
	// Timestamp returns the time of a record in milliseconds; partitionTime is
	// the highest one yet in the record's partition, or -1. A negative result
	// drops the record.
	Timestamp(rec *kgo.Record, partitionTime int64) (int64, error)

	// Process runs the record, whose time is timestamp, through the graph.
	Process(rec *kgo.Record, timestamp int64) error
}

// Context is a task as its graph sees it.
type Context struct {
	// Task is the task's id.
	Task membership.TaskID

	// Out takes what the task sends.
	Out Collector

	// EmitInterval is how long, in milliseconds of the wall clock, operators wait
	// at least between two looks for results whose windows have closed. It is 0
	// where no thread runs the task, as in Java's test driver.
	EmitInterval int64

	stores     map[string]state.Store
	record     *kgo.Record
	streamTime int64

	processorMetadata map[string]int64
	metadataChanged   bool // since it was last committed
}

// NewContext returns the context of a task that no thread runs: a test driver's.
// The stores are open.
func NewContext(task membership.TaskID, out Collector, stores ...state.Store) *Context {
	c := &Context{Task: task, Out: out, stores: make(map[string]state.Store, len(stores)), streamTime: -1}
	for _, s := range stores {
		c.stores[s.Name()] = s
	}
	return c
}

// Processing says which record is processed next, and its time in milliseconds. A
// driver that is no thread says it before each record.
func (c *Context) Processing(rec *kgo.Record, timestamp int64) {
	c.record, c.streamTime = rec, max(c.streamTime, timestamp)
}

// Store returns the task's store of that name, or nil.
func (c *Context) Store(name string) state.Store { return c.stores[name] }

// Record is the record of a source topic that is being processed, nil outside of
// processing. Its timestamp is the topic's, not what an extractor made of it.
func (c *Context) Record() *kgo.Record { return c.record }

// StreamTime is the highest record time that the task has seen, in
// milliseconds, and -1 before the first record.
func (c *Context) StreamTime() int64 { return c.streamTime }

// ProcessorMetadata is a number that a processor has set for a key of its own, in
// this task or before it moved here; ok is false where there is none.
func (c *Context) ProcessorMetadata(key string) (value int64, ok bool) {
	value, ok = c.processorMetadata[key]
	return value, ok
}

// SetProcessorMetadata sets such a number. It is committed along with what was
// processed up to now, in the metadata of the offsets (KIP-825).
func (c *Context) SetProcessorMetadata(key string, value int64) {
	if c.processorMetadata == nil {
		c.processorMetadata = make(map[string]int64)
	}
	c.processorMetadata[key], c.metadataChanged = value, true
}

// recall takes over processor metadata that was committed. Of several values, which
// partitions may have whose commits lie apart, the highest counts.
func (c *Context) recall(committed map[string]int64) {
	for key, value := range committed {
		if known, ok := c.processorMetadata[key]; !ok || value > known {
			if c.processorMetadata == nil {
				c.processorMetadata = make(map[string]int64)
			}
			c.processorMetadata[key] = value
		}
	}
}

// OffsetMetadata is the metadata that is committed with the offset of a partition
// whose time is partitionTime, in milliseconds.
func (c *Context) OffsetMetadata(partitionTime int64) string {
	return offsetMetadata{partitionTime, c.processorMetadata}.encode()
}
