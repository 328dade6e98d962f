package state

import (
	"context"
	"sync"
)

// Viewable is a store that others than its task can read: all kinds but
// [ChangeBuffer].
type Viewable interface {
	Store
	newView(*view) Store
}

// View reads a store of a task, what its cache holds back included, on a goroutine
// that isn't the task's. It belongs to one goroutine at a time.
//
// Between Begin and Release nothing changes in the store, and nobody else gets at
// it: that is for reading a value. After Release the view can still be walked over,
// a run of entries at a time, each run as the store is at one moment; the walk needs
// no more memory than a run, and whoever changes the store never waits for long.
type View struct {
	// Store is of the same kind as the store, with keys and values as bytes:
	// *KeyValue[[]byte, []byte] and so on. It must not be written to. What a read
	// returns is valid until the next one, what a walk returns for good.
	Store Store

	view view
	pool *sync.Pool
}

// Views makes views of one store.
type Views struct{ pool sync.Pool }

// NewViews returns views of s, whose task has the gate.
func NewViews(s Viewable, gate *Gate) *Views {
	vs := &Views{}
	vs.pool.New = func() any {
		v := &View{pool: &vs.pool}
		v.view.gate = gate
		v.Store = s.newView(&v.view)
		return v
	}
	return vs
}

// Begin returns a view that holds the store until Release. The context bounds this
// and every later wait for the store. It is [ErrClosed] where the store is closed.
func (vs *Views) Begin(ctx context.Context) (*View, error) {
	v := vs.pool.Get().(*View)
	v.view.ctx = ctx
	return v.begin(v.view.enter())
}

// TryBegin is Begin without a wait: the view is nil where somebody has the store.
func (vs *Views) TryBegin(ctx context.Context) (*View, error) {
	v := vs.pool.Get().(*View)
	v.view.ctx = ctx
	if !v.view.gate.TryEnter() {
		v.Close()
		return nil, nil
	}
	return v.begin(v.view.check())
}

// begin makes a view of an attempt to enter.
func (v *View) begin(err error) (*View, error) {
	if err != nil {
		v.Close()
		return nil, err
	}
	v.view.held = true
	if v.view.follow != nil {
		v.view.follow()
	}
	return v, nil
}

// Release lets others at the store.
func (v *View) Release() {
	if v.view.held {
		v.view.held = false
		v.view.gate.Leave()
	}
}

// Close ends the view. What was read with it is no longer valid; what was walked
// over is.
func (v *View) Close() {
	v.Release()
	v.view.ctx = nil
	v.pool.Put(v)
}

// view is an engine that reads another store's.
type view struct {
	readOnly
	gate   *Gate
	of     *backing
	follow func() // takes over what the store knows of time; nil: nothing
	ctx    context.Context
	held   bool   // the gate is
	value  []byte // reused
}

func (v *view) enter() error {
	if err := v.gate.Enter(v.ctx); err != nil {
		return err
	}
	return v.check()
}

// check leaves a store that is closed.
func (v *view) check() error {
	if v.of.engine == nil {
		v.gate.Leave()
		return ErrClosed
	}
	return nil
}

// read calls f with the store alone.
func (v *view) read(f func(*backing) error) error {
	if !v.held {
		if err := v.enter(); err != nil {
			return err
		}
		defer v.gate.Leave()
	}
	return f(v.of)
}

func (v *view) Get(key []byte) (value []byte, err error) {
	err = v.read(func(b *backing) error {
		found, err := b.peek(key)
		if !v.held { // for a walk, which keeps it
			value = copied(nil, found)
		} else if value = copied(v.value[:0], found); value != nil {
			v.value = value
		}
		return err
	})
	return value, err
}

// peek is get without a trace in the cache, whatever has expired.
func (b *backing) peek(key []byte) ([]byte, error) {
	if b.section != nil {
		if it := b.section.items.get(key); it != nil {
			return it.value, nil
		}
	}
	return b.engine.Get(key)
}

func (v *view) Scan(from, to []byte, order Order) Iterator {
	return newRunScan(from, to, order, func(use func(scan scanFunc) error) error {
		return v.read(func(b *backing) error { return use(b.scan) })
	})
}

func (v *view) Len() (n int, err error) {
	err = v.read(func(b *backing) error { n, err = b.engine.Len(); return err })
	return n, err
}

func (v *view) Checkpointed() (c Checkpoint, ok bool) { return c, false }
