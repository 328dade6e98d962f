package streams

import "fmt"

// FixedKeyProcessor is a [Processor] that sends on what it makes of a record under
// the record's key (KIP-820).
type FixedKeyProcessor[K, V, VOut any] interface {
	// Init is called once, before the first record; stores are restored.
	Init(ctx *FixedKeyProcessorContext[K, VOut]) error

	// Process takes one record. It sends on what it wants to with
	// FixedKeyProcessorContext.Forward.
	Process(r FixedKeyRecord[K, V]) error

	// Close is called once, when the task ends or moves to another member.
	Close() error
}

// FixedKeyRecord is a [Record] whose key can't be changed. [WithValue] makes one
// of another.
type FixedKeyRecord[K, V any] struct {
	Value     V
	ValueNull bool
	Timestamp int64    // in milliseconds since the Unix epoch
	Headers   []Header // shared, as a Record's

	key     K
	keyNull bool
}

// Key is the record's key, the type's zero value where it is null.
func (r FixedKeyRecord[K, V]) Key() K { return r.key }

// KeyNull says whether the key is null.
func (r FixedKeyRecord[K, V]) KeyNull() bool { return r.keyNull }

// WithValue is the record with another value. Nil is null.
func WithValue[K, V, VOut any](r FixedKeyRecord[K, V], v VOut) FixedKeyRecord[K, VOut] {
	isNil := nilCheck[VOut]()
	return FixedKeyRecord[K, VOut]{
		Value: v, ValueNull: isNil != nil && isNil(v),
		Timestamp: r.Timestamp, Headers: r.Headers, key: r.key, keyNull: r.keyNull,
	}
}

// FixedKeyProcessorContext is what a processor knows of its task, and how it sends
// on.
type FixedKeyProcessorContext[K, V any] struct {
	TaskContext
	out *emitter[K, V]
}

// Forward sends a record to all children.
func (c *FixedKeyProcessorContext[K, V]) Forward(r FixedKeyRecord[K, V]) error {
	return c.out.forward(r.record())
}

// ForwardTo sends a record to the child of that name.
func (c *FixedKeyProcessorContext[K, V]) ForwardTo(child string, r FixedKeyRecord[K, V]) error {
	return c.out.forwardTo(c.node, child, r.record())
}

func (r FixedKeyRecord[K, V]) record() Record[K, V] {
	return Record[K, V]{
		Key: r.key, KeyNull: r.keyNull, Value: r.Value, ValueNull: r.ValueNull,
		Timestamp: r.Timestamp, Headers: r.Headers,
	}
}

func addFixedKeyProcessor[K, V, VOut any](t *Topology, name string, newProcessor func() FixedKeyProcessor[K, V, VOut], parents []string) {
	n := addNode[K, V, K, VOut](t, name, parents, nil)
	if newProcessor == nil {
		t.errorf("processor %q: there is no function that makes it", name)
	}
	n.make = func(ctx *taskContext) (running, error) {
		p := &fixedKeyNode[K, V, VOut]{processor: newProcessor()}
		if p.processor == nil {
			return nil, fmt.Errorf("streams: processor %q: the function that makes it returned nil", name)
		}
		p.ctx = &FixedKeyProcessorContext[K, VOut]{ctx.taskContext(name, n.stores), &p.emitter}
		return p, nil
	}
}

// fixedKeyNode runs a FixedKeyProcessor.
type fixedKeyNode[K, V, VOut any] struct {
	emitter[K, VOut]
	processor FixedKeyProcessor[K, V, VOut]
	ctx       *FixedKeyProcessorContext[K, VOut]
}

func (n *fixedKeyNode[K, V, VOut]) open() error  { return n.processor.Init(n.ctx) }
func (n *fixedKeyNode[K, V, VOut]) close() error { return n.processor.Close() }

func (n *fixedKeyNode[K, V, VOut]) receive(r Record[K, V]) error {
	return processorError(n.ctx.node, n.processor.Process(FixedKeyRecord[K, V]{
		Value: r.Value, ValueNull: r.ValueNull, Timestamp: r.Timestamp, Headers: r.Headers,
		key: r.Key, keyNull: r.KeyNull,
	}))
}
