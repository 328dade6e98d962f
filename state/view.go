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
// Until Release nothing changes in the store, and nobody else gets at it: that is for
// reading a value. After Release a view that [Views.Begin] has returned can still be
// walked over, a run of entries at a time, each run as the store is at one moment; the
// walk needs no more memory than a run, and whoever changes the store never waits for
// long.
type View struct {
	// Store is of the same kind as the store, with keys and values as bytes:
	// *KeyValue[[]byte, []byte] and so on. It must not be written to. What a read
	// returns is valid until the next one, or Release; what a walk returns for good.
	Store Store

	view view
	pool *sync.Pool // nil: it stays where it is
}

// Views makes views of one store.
type Views struct {
	store Viewable
	gate  *Gate
	pool  sync.Pool
	look  *View // belongs to whoever has the gate; nil: it was not needed yet
}

// NewViews returns views of s, whose task has the gate.
func NewViews(s Viewable, gate *Gate) *Views {
	vs := &Views{store: s, gate: gate}
	vs.pool.New = func() any { return vs.newView(&vs.pool) }
	return vs
}

func (vs *Views) newView(pool *sync.Pool) *View {
	v := &View{pool: pool}
	v.view.gate = vs.gate
	v.Store = vs.store.newView(&v.view)
	return v
}

// Begin returns a view that holds the store until Release. The context bounds this
// and every later wait for the store. It is [ErrClosed] where the store is closed.
func (vs *Views) Begin(ctx context.Context) (*View, error) {
	if err := vs.gate.Enter(ctx); err != nil {
		return nil, err
	}
	v := vs.pool.Get().(*View)
	v.view.ctx = ctx
	return v.begin()
}

// Look is Begin for a view that reads values and is ended by Close, without Release before:
// it costs less, since the next one who looks gets the same.
func (vs *Views) Look(ctx context.Context) (*View, error) {
	if err := vs.gate.Enter(ctx); err != nil {
		return nil, err
	}
	return vs.hold()
}

// TryLook is Look without a wait: the view is nil where somebody has the store.
func (vs *Views) TryLook() (*View, error) {
	if !vs.gate.TryEnter() {
		return nil, nil
	}
	return vs.hold()
}

// hold returns the view of whoever has the gate, which is us.
func (vs *Views) hold() (*View, error) {
	if vs.look == nil {
		vs.look = vs.newView(nil)
	}
	return vs.look.begin()
}

// begin makes a view of a gate that was entered.
func (v *View) begin() (*View, error) {
	v.view.held = true
	if v.view.of.engine == nil {
		v.Close()
		return nil, ErrClosed
	}
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
	if v.pool != nil {
		v.view.ctx = nil
		v.pool.Put(v)
	}
}

// view is an engine that reads another store's.
type view struct {
	readOnly
	gate   *Gate
	of     *backing
	follow func() // takes over what the store knows of time; nil: nothing
	ctx    context.Context
	held   bool // the gate is
}

// read calls f with the store alone.
func (v *view) read(f func(*backing) error) error {
	if !v.held {
		if err := v.gate.Enter(v.ctx); err != nil {
			return err
		}
		defer v.gate.Leave()
		if v.of.engine == nil {
			return ErrClosed
		}
	}
	return f(v.of)
}

func (v *view) Get(key []byte) (value []byte, err error) {
	if v.held {
		return v.of.peek(key)
	}
	err = v.read(func(b *backing) error { // for a walk, which keeps it
		found, err := b.peek(key)
		value = copied(nil, found)
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
