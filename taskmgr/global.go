package taskmgr

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// GlobalTopology is the part of a topology that fills its global stores, which each
// instance of an application has whole: from all partitions of their topics.
type GlobalTopology struct {
	// ID is its place among the subtopologies.
	ID string

	// Topics are the topics that it reads.
	Topics []string

	// Stores are the global stores.
	Stores []GlobalStoreSpec

	// NewGraph makes the graph. It is made once for each instance.
	NewGraph func(*Context) (Graph, error)
}

// Persistent says whether a store keeps its data on disk. A nil topology has none.
func (t *GlobalTopology) Persistent() bool {
	return t != nil && slices.ContainsFunc(t.Stores, func(s GlobalStoreSpec) bool { return s.Persistent })
}

// GlobalStoreSpec is one global store.
type GlobalStoreSpec struct {
	Name string

	// Persistent says that the store keeps its data on disk.
	Persistent bool

	// Engine is what the store keeps its data in.
	Engine state.OpenEngine

	// New makes the store, or a view of it for one task, not yet open.
	New func(state.OpenEngine) state.Store
}

// Positions are the next offsets of partitions, by topic.
type Positions map[string]map[int32]int64

// GlobalState is the global stores of one instance with the graph that fills them.
// It is used by one goroutine; what Views returns belongs to the caller's.
type GlobalState struct {
	spec      *GlobalTopology
	ctx       *Context
	graph     Graph
	stores    []state.Store
	shared    []*state.Shared
	times     map[changelogKey]int64 // the highest of each partition
	positions Positions
	commits   int64

	// gate is held by whoever has the stores, where others than their goroutine read
	// them (KIP-67).
	gate state.Gate

	onError func(membership.TaskID, *kgo.Record, error, Collector) error
}

// OpenGlobalState opens the global stores, those on disk below dir, as they were at
// their last checkpoint unless fresh. Onerror is Config.OnRecordError, and out takes
// dead letters.
func OpenGlobalState(spec *GlobalTopology, dir string, disk *state.Disk, fresh bool, out Collector, onError func(membership.TaskID, *kgo.Record, error, Collector) error) (_ *GlobalState, err error) {
	g := &GlobalState{spec: spec, times: make(map[changelogKey]int64), positions: make(Positions), onError: onError}
	for _, s := range spec.Stores {
		shared := &state.Shared{}
		g.shared = append(g.shared, shared)
		g.stores = append(g.stores, s.New(shared.Writer(s.Engine)))
	}
	g.ctx = NewContext(membership.TaskID{Subtopology: spec.ID, Partition: -1}, out, g.stores...)
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	for i, s := range g.stores {
		ctx := state.OpenContext{Disk: disk, Fresh: fresh, Record: func() any { return g.ctx.Moment() }}
		if spec.Stores[i].Persistent {
			ctx.Dir = filepath.Join(dir, url.PathEscape(s.Name())+".store")
		}
		if err := s.Open(ctx); err != nil {
			return nil, err
		}
	}
	if err := g.recall(); err != nil {
		return nil, err
	}
	g.graph, err = spec.NewGraph(g.ctx)
	return g, err
}

// recall takes over the positions of the stores' checkpoints. Topics whose stores
// know nothing are read from their start.
func (g *GlobalState) recall() error {
	for i, s := range g.stores {
		note := g.shared[i].Note()
		if _, ok := s.Checkpointed(); !ok || len(note) == 0 {
			g.positions = make(Positions)
			return nil
		}
		var at Positions
		if err := json.Unmarshal(note, &at); err != nil {
			return fmt.Errorf("global store %q: its positions: %w", s.Name(), err)
		}
		for topic, partitions := range at {
			if g.positions[topic] == nil {
				g.positions[topic] = maps.Clone(partitions)
				continue
			}
			for p, offset := range partitions {
				// What one store has not seen is processed again by all.
				if known, ok := g.positions[topic][p]; ok {
					g.positions[topic][p] = min(known, offset)
				}
			}
		}
	}
	return nil
}

// Positions are the offsets to go on from; a partition that is not there is read
// from its start.
func (g *GlobalState) Positions() Positions { return g.positions }

// Process runs one record of a topic through the graph.
func (g *GlobalState) Process(rec *kgo.Record) error {
	source := g.graph.Source(rec.Topic)
	if source == nil {
		return fmt.Errorf("global stores: there is no source for topic %q", rec.Topic)
	}
	key := changelogKey{rec.Topic, rec.Partition}
	partitionTime, ok := g.times[key]
	if !ok {
		partitionTime = -1
	}
	timestamp, err := source.Timestamp(rec, partitionTime)
	if err == nil && timestamp >= 0 {
		g.times[key] = max(partitionTime, timestamp)
		g.ctx.Processing(rec, timestamp)
		err = source.Process(rec, timestamp)
	}
	if err != nil && g.onError != nil {
		err = g.onError(g.ctx.Task, rec, err, g.ctx.Out)
	}
	if err != nil {
		return fmt.Errorf("global stores: record %s-%d@%d: %w", rec.Topic, rec.Partition, rec.Offset, err)
	}
	if g.positions[rec.Topic] == nil {
		g.positions[rec.Topic] = make(map[int32]int64)
	}
	g.positions[rec.Topic][rec.Partition] = rec.Offset + 1
	return nil
}

// Checkpoint has the stores found as they are now.
func (g *GlobalState) Checkpoint() error {
	note, err := json.Marshal(g.positions)
	if err != nil {
		return err
	}
	g.ctx.Processing(nil, 0)
	if err := FlushStores(g.stores); err != nil {
		return err
	}
	g.commits++
	for i, s := range g.stores {
		g.shared[i].SetNote(note)
		if err := s.Checkpoint(g.commits); err != nil {
			return err
		}
	}
	return nil
}

// Views are the global stores for one task to read, open. They are closed by the
// caller.
func (g *GlobalState) Views() ([]state.Store, error) {
	views := make([]state.Store, len(g.spec.Stores))
	for i, s := range g.spec.Stores {
		views[i] = s.New(g.shared[i].Reader())
		if err := views[i].Open(state.OpenContext{}); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// SetSystemTime says what the time of the wall clock is, in milliseconds.
func (g *GlobalState) SetSystemTime(now int64) { g.ctx.SetSystemTime(now) }

// Close ends the graph and closes the stores, as they were at their last checkpoint.
func (g *GlobalState) Close() error {
	var errs []error
	if g.graph != nil {
		errs = append(errs, g.graph.Close())
		g.graph = nil
	}
	for _, s := range g.stores {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
