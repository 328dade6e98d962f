package streams

import (
	"fmt"
	"slices"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/taskmgr"
)

// Processor is a node of a topology that an application writes itself (KIP-478).
// There is one instance for each task, which one goroutine uses. An error that a
// method returns stops the stream thread.
type Processor[KIn, VIn, KOut, VOut any] interface {
	// Init is called once, before the first record; stores are restored.
	Init(ctx *ProcessorContext[KOut, VOut]) error

	// Process takes one record. It sends on what it wants to with
	// ProcessorContext.Forward.
	Process(r Record[KIn, VIn]) error

	// Close is called once, when the task ends or moves to another member.
	Close() error
}

// ProcessorContext is what a processor knows of its task, and how it sends on.
type ProcessorContext[K, V any] struct {
	TaskContext
	out *emitter[K, V]
}

// Forward sends a record to all children.
func (c *ProcessorContext[K, V]) Forward(r Record[K, V]) error { return c.out.forward(r) }

// ForwardTo sends a record to the child of that name.
func (c *ProcessorContext[K, V]) ForwardTo(child string, r Record[K, V]) error {
	return c.out.forwardTo(c.node, child, r)
}

// TaskContext is what an application's code in a topology knows of its task.
type TaskContext struct {
	task   *taskmgr.Context
	node   string
	stores []string // that it is connected to
	global []string // that everyone can read
}

// TaskID is the id of the task.
func (c *TaskContext) TaskID() membership.TaskID { return c.task.Task }

// StreamTime is the highest record time that the task has seen, in milliseconds,
// and -1 before its first record.
func (c *TaskContext) StreamTime() int64 { return c.task.StreamTime() }

// RecordMetadata says which record of a source topic is being processed. ok is
// false where none is, as in Init.
func (c *TaskContext) RecordMetadata() (topic string, partition int32, offset int64, ok bool) {
	r := recordContext(c.task)
	return r.Topic, r.Partition, r.Offset, c.task.Record() != nil
}

func (c *TaskContext) store(name string) (state.Store, error) {
	if !slices.Contains(c.stores, name) && !slices.Contains(c.global, name) {
		return nil, fmt.Errorf("streams: processor %q is not connected to a state store %q, only to %q", c.node, name, c.stores)
	}
	return c.task.Store(name), nil
}

// StoreContext is a context that stores are found with: a [ProcessorContext], a
// [FixedKeyProcessorContext] or a [TaskContext].
type StoreContext interface {
	store(name string) (state.Store, error)
}

// GetStore returns a store that the processor is connected to, or a global one, which
// can only be read. S is the store's type, such as *state.TimestampedKeyValue[string, int64].
func GetStore[S state.Store](ctx StoreContext, name string) (S, error) {
	var none S
	s, err := ctx.store(name)
	if err != nil {
		return none, err
	}
	typed, ok := s.(S)
	if !ok {
		return none, fmt.Errorf("streams: state store %q is a %T, not a %T", name, s, none)
	}
	return typed, nil
}

// processorNode runs a Processor.
type processorNode[KIn, VIn, KOut, VOut any] struct {
	emitter[KOut, VOut]
	processor Processor[KIn, VIn, KOut, VOut]
	ctx       *ProcessorContext[KOut, VOut]
}

func (n *processorNode[KIn, VIn, KOut, VOut]) open() error { return n.processor.Init(n.ctx) }

func (n *processorNode[KIn, VIn, KOut, VOut]) close() error { return n.processor.Close() }

func (n *processorNode[KIn, VIn, KOut, VOut]) receive(r Record[KIn, VIn]) error {
	return processorError(n.ctx.node, n.processor.Process(r))
}
