package taskmgr

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// taskState is where a task is in its life:
//
//	created ──▶ restoring ──▶ restored ──▶ running ──▶ closed
//	    │           ▲                         │           ▲
//	    └───────▶ standby ◀───────────────────┘           │ from every state
//
// A standby is promoted to restoring with its stores as they are, and a running
// task demoted to standby with them. The stores of a restoring and a standby task
// belong to the updater; in every other state they belong to the thread.
type taskState int8

const (
	created   taskState = iota // its stores are to be opened
	restoring                  // the updater fills its stores, until they are complete
	standby                    // the updater keeps its stores current; warm-ups too
	restored                   // complete, and waiting for the committed offsets
	running                    // its partitions are being consumed
	closed
)

// task is one task of a thread.
type task struct {
	id      membership.TaskID
	spec    Subtopology
	storage storage
	state   taskState
	then    taskState // what a created task becomes: restoring or standby
	ctx     *Context
	stores  []*taskStore
	views   []state.Store // of global stores
	graph   Graph
	inputs  []*input
	touched bool // there is something to commit besides offsets

	// gate is held by whoever has the stores, while it uses them.
	gate     state.Gate
	active   bool // with the gate: the stores are the truth
	readable []*state.Readable
	maxIdle  time.Duration

	// onError is Config.OnRecordError.
	onError func(membership.TaskID, *kgo.Record, error, Collector) error
}

// emitInterval is Context.EmitInterval of running tasks, Java's, in milliseconds.
const emitInterval = 1000

// newTask makes a task that is to be restoring or standby.
func newTask(id membership.TaskID, spec Subtopology, out Collector, at storage, then taskState) *task {
	t := &task{id: id, spec: spec, storage: at, then: then}
	stores := make([]state.Store, len(spec.Stores))
	for i, spec := range spec.Stores {
		s := newStore(t, spec)
		t.stores = append(t.stores, s)
		stores[i] = s.Store
	}
	t.ctx = NewContext(id, out, stores...)
	t.ctx.EmitInterval = emitInterval
	return t
}

// open opens the stores, which makes a created task what it is to be. It says false
// where another thread of the process has not closed the task's directory yet.
func (t *task) open() (bool, error) {
	if dir := t.storage.dir; dir != nil && !dir.use(t.id) {
		return false, nil
	}
	t.state = t.then
	for _, s := range t.stores {
		if err := s.open(); err != nil {
			return false, t.fail(err)
		}
	}
	if t.storage.global != nil {
		var err error
		if t.views, err = t.storage.global.Views(); err != nil {
			return false, t.fail(err)
		}
		t.ctx.AddStores(t.views...)
	}
	t.publish()
	return true, nil
}

// updating says whether the stores are with the updater.
func (t *task) updating() bool { return t.state == restoring || t.state == standby }

// demote makes a task a standby, whose graph has ended and whose changes are flushed
// and committed: its stores go on from what it has written.
func (t *task) demote() error {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.active = false
	t.settle()
	t.inputs, t.state = nil, standby
	for _, s := range t.stores {
		if c, ok := s.Store.(state.CacheClearer); ok {
			if err := c.ClearCache(); err != nil {
				return t.fail(err)
			}
		}
	}
	return nil
}

func (t *task) endGraph() error {
	if t.graph == nil {
		return nil
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	graph := t.graph
	t.graph, t.ctx.punctuations = nil, [2]punctuations{}
	return graph.Close()
}

// settle notes where the stores of a running task are, whose changes are flushed
// and written.
func (t *task) settle() {
	for _, s := range t.stores {
		if s.log != nil {
			s.position = s.settled()
		}
	}
}

// checkpoint has the persistent stores found as they are now.
func (t *task) checkpoint() error {
	for _, s := range t.stores {
		if err := s.checkpoint(); err != nil {
			return t.fail(err)
		}
	}
	return nil
}

// committed is told that all that a running task has done is committed.
func (t *task) committed() error {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.touched, t.ctx.commit = false, false
	t.settle()
	return t.checkpoint()
}

// logged says whether there is a store with a changelog.
func (t *task) logged() bool {
	return slices.ContainsFunc(t.stores, func(s *taskStore) bool { return s.log != nil })
}

// processed is the offset up to which the task has processed a source topic.
func (t *task) processed(topic string) int64 {
	if in := t.input(topic); in != nil && in.next >= 0 {
		return in.next
	}
	return beginning
}

// input is the task's partition of a topic, nil where it has none.
func (t *task) input(topic string) *input {
	for _, in := range t.inputs {
		if in.topic == topic {
			return in
		}
	}
	return nil
}

// start makes the task's graph and inputs and sets it running.
func (t *task) start(inputs []*input) error {
	t.ctx.processorMetadata = nil
	for _, in := range inputs {
		t.ctx.streamTime = max(t.ctx.streamTime, in.time)
		t.ctx.recall(in.processors)
	}
	t.ctx.SetSystemTime(time.Now().UnixMilli())
	t.gate.Lock()
	defer t.gate.Unlock()
	graph, err := t.spec.NewGraph(t.ctx)
	if err != nil {
		return t.fail(err)
	}
	t.graph, t.inputs, t.state = graph, nil, running
	t.active = true
	return t.read(inputs)
}

// add has a running task read more partitions.
func (t *task) add(inputs []*input) error {
	t.gate.Lock()
	defer t.gate.Unlock()
	return t.read(inputs)
}

func (t *task) read(inputs []*input) error {
	for _, in := range inputs {
		if in.source = t.graph.Source(in.topic); in.source == nil {
			return t.fail(fmt.Errorf("the graph has no source for topic %q", in.topic))
		}
		t.inputs = append(t.inputs, in)
	}
	return nil
}

// confirmEvery is after how many records a task asks again whether it may go on.
const confirmEvery = 16

// process runs what its inputs have queued through the graph, in the order of
// the records' times over all partitions. It stops early, with records left in
// the queues, where mayGoOn says so.
func (t *task) process(mayGoOn func() bool) error {
	t.gate.Lock()
	defer t.gate.Unlock()
	defer t.ctx.Processing(nil, 0)
	t.ctx.SetSystemTime(time.Now().UnixMilli())
	for n := 0; ; n++ {
		t.gate.Yield()
		in, err := t.next()
		if in == nil || err != nil {
			return err
		}
		if n%confirmEvery == 0 && !mayGoOn() {
			return nil
		}
		if err := t.step(in); err != nil {
			return err
		}
	}
}

// next is the input whose first record has the lowest time, nil where all queues
// are empty or the task has to wait for one that is.
func (t *task) next() (first *input, err error) {
	if len(t.inputs) == 1 { // there is nothing to compare
		if in := t.inputs[0]; len(in.queue) > 0 {
			return in, nil
		}
		return nil, nil
	}
	complete := true
	for _, in := range t.inputs {
		if len(in.queue) == 0 {
			complete = false
			continue
		}
		if err := in.look(); err != nil {
			return nil, err
		}
		if first == nil || in.head < first.head {
			first = in
		}
	}
	if first != nil && !complete && t.waits() {
		return nil, nil
	}
	return first, nil
}

// queued says whether there are records left to process.
func (t *task) queued() bool {
	for _, in := range t.inputs {
		if len(in.queue) > 0 {
			return true
		}
	}
	return false
}

// noRecord stands for the record where a punctuation met an error.
var noRecord = &kgo.Record{Partition: -1, Offset: -1}

// punctuate makes the calls that are scheduled and due.
func (t *task) punctuate() error {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.ctx.SetSystemTime(time.Now().UnixMilli())
	for _, by := range []PunctuationType{StreamTime, WallClockTime} {
		any, err := t.ctx.Punctuate(by)
		t.touched = t.touched || any
		if err != nil {
			if err := t.handle(noRecord, err); err != nil {
				return t.fail(err)
			}
		}
	}
	return nil
}

// handle asks what to do about a record that could not be processed. It returns
// nil to go on with the next one.
func (t *task) handle(rec *kgo.Record, err error) error {
	var produce *ProduceError
	var store *state.Error
	if t.onError == nil || errors.As(err, &produce) || errors.As(err, &store) {
		return err
	}
	return t.onError(t.id, rec, err, t.ctx.Out)
}

// dirty says whether there is something to commit.
func (t *task) dirty() bool {
	if t.touched {
		return true
	}
	for _, in := range t.inputs {
		if in.dirty {
			return true
		}
	}
	return false
}

// flush passes on what the stores' caches hold, before a commit. Processor metadata
// that has changed is committed with every partition.
func (t *task) flush() error {
	t.gate.Lock()
	defer t.gate.Unlock()
	if err := FlushStores(t.stores); err != nil {
		return t.fail(err)
	}
	if t.ctx.metadataChanged {
		t.ctx.metadataChanged = false
		for _, in := range t.inputs {
			in.dirty = in.dirty || in.next >= 0
		}
	}
	return nil
}

// FlushStores passes on what the caches of a task's stores hold. That may change
// stores again, as those of tables that are made of other tables.
func FlushStores[S state.Store](stores []S) error {
	for dirty := true; dirty; {
		dirty = false
		for _, s := range stores {
			if err := s.Flush(); err != nil {
				return err
			}
		}
		for _, s := range stores {
			dirty = dirty || s.Dirty()
		}
	}
	return nil
}

// close ends the graph and the stores; nothing is committed. The task must not
// be with the updater any more. Unless it is clean, what was done since the last
// commit is thrown away.
func (t *task) close(clean bool, reason error) error {
	was := t.state
	t.state = closed
	if was == closed || was == created {
		return nil
	}
	t.withdraw()
	errs := []error{t.endGraph()}
	t.gate.Lock()
	defer t.gate.Unlock()
	switch {
	case clean && was == running && t.storage.exactlyOnce:
		// What the graph has done as it ended is not committed, all else is.
	case clean && was == running:
		t.settle()
		errs = append(errs, t.checkpoint())
	case clean:
		errs = append(errs, t.checkpoint())
	}
	for _, s := range t.stores {
		errs = append(errs, s.Close(), s.discard(reason))
	}
	for _, s := range t.views {
		errs = append(errs, s.Close())
	}
	if dir := t.storage.dir; dir != nil {
		if clean {
			errs = append(errs, t.leave())
		}
		errs = append(errs, dir.free(t.id))
	}
	return t.fail(errors.Join(errs...))
}

func (t *task) fail(err error) error {
	if err == nil {
		return nil
	}
	return &TaskError{Task: t.id, Err: err}
}
