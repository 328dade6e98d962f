package taskmgr

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/state"
)

// Topology is what a thread runs: its subtopologies by id.
type Topology map[string]Subtopology

// Persistent says whether a store keeps its data on disk.
func (t Topology) Persistent() bool {
	for _, sub := range t {
		if slices.ContainsFunc(sub.Stores, func(s StoreSpec) bool { return s.Persistent }) {
			return true
		}
	}
	return false
}

// Subtopology is a connected part of a topology. Each of its tasks is one
// instance of it over one partition of its source topics.
type Subtopology struct {
	// SourceTopics are the topics it reads, repartition topics included, by
	// their names in the cluster.
	SourceTopics []string

	// SourcePatterns are patterns of topics that it reads besides.
	SourcePatterns []SourcePattern

	// Reset is where partitions of a source topic without a committed offset
	// begin, for topics that don't begin where the thread's others do.
	Reset map[string]Reset

	// Stores are its state stores.
	Stores []StoreSpec

	// NewGraph makes the graph of one task. The context is the task's and
	// valid until the graph is closed; the stores are open and restored.
	NewGraph func(*Context) (Graph, error)
}

// Reset says where a partition without a committed offset begins that does so at the
// time of now; ok is false where it can't, which is a [NoOffsetError].
type Reset func(now time.Time) (from kgo.Offset, ok bool)

// client is what a client does with an offset that its partition doesn't have.
func (r Reset) client() kgo.Offset {
	if from, ok := r(time.Now()); ok {
		return from
	}
	return kgo.NoResetOffset()
}

// StoreSpec is one state store of a subtopology.
type StoreSpec struct {
	// Changelog is the store's changelog topic in the cluster, empty for a
	// store whose changes are not logged.
	Changelog string

	// ChangelogIsSource says that the changelog is a source topic, which the
	// store is restored from up to what was processed, and which nothing is
	// written to.
	ChangelogIsSource bool

	// Persistent says that the store keeps its data on disk.
	Persistent bool

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
