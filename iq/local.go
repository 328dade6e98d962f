package iq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/odradek-go/odradek/state"
)

// local reads the stores that are on this instance.
type local struct {
	registry *state.Registry
	lags     *lags
	host     string
}

// opened is a store that is being read.
type opened struct {
	*state.View
	of   *state.Readable
	meta Meta
}

// begin begins the view that a request needs.
func (o *opened) begin(ctx context.Context, req *Request) (*state.View, error) {
	if req.single() {
		return o.of.Views.Look(ctx)
	}
	return o.of.Views.Begin(ctx)
}

// open begins a view of a partition of a store, if that is here and no staler than
// the request accepts. The view holds the store.
func (l *local) open(ctx context.Context, req *Request, partition int32) (o opened, err error) {
	o.meta = Meta{Host: l.host, Partition: partition}
	if o.of = l.registry.Of(req.Store).Get(partition); o.of == nil {
		return o, l.fail(ErrMigrated, req, partition, nil)
	}
	if o.View, err = o.begin(ctx, req); err != nil {
		return o, l.storeError(ctx, req, partition, err)
	}
	if !o.of.Owner.Active() {
		o.Close()
		if !req.Accept.copies() {
			return o, l.fail(ErrMigrated, req, partition, nil)
		}
		return l.openCopy(ctx, req, o)
	}
	o.meta.Active = true
	if err := satisfies(&req.Accept, o.of); err != nil {
		o.Close()
		return o, l.fail(ErrBehind, req, partition, err)
	}
	return o, nil
}

// briefLook bounds a look at how far behind a copy is that is accepted in any case.
const briefLook = 100 * time.Millisecond

// openCopy is open for a copy, after a look at how far it is behind.
func (l *local) openCopy(ctx context.Context, req *Request, o opened) (_ opened, err error) {
	partition, recent := o.meta.Partition, l.lags.recent()
	for looked := false; ; looked = true {
		if o.View, err = o.begin(ctx, req); err != nil {
			return o, l.storeError(ctx, req, partition, err)
		}
		if o.of.Owner.Unconfirmed() {
			return l.openUnconfirmed(req, o)
		}
		topic, next, ok := o.of.Owner.Changelog()
		if !ok || o.of.Owner.Loading() {
			o.Close()
			return o, l.fail(ErrMigrated, req, partition, nil)
		}
		key := changelog{topic, partition}
		o.meta.Lag, o.meta.Age = l.lags.of(key, next, recent)
		admitted := req.Accept.admits(&o.meta)
		if admitted && (looked || o.meta.Lag >= 0) {
			return o, nil
		}
		o.Close()
		if looked {
			return o, l.fail(ErrTooStale, req, partition, nil)
		}
		look, cancel := ctx, context.CancelFunc(func() {})
		if admitted { // it is only to tell the caller
			look, cancel = context.WithTimeout(ctx, briefLook)
		}
		// Without an answer the lag stays unknown, which is for Accept to judge.
		_ = l.lags.refresh(look, key, recent)
		cancel()
	}
}

// openUnconfirmed is open for a store that was the truth when the brokers were last heard
// of, such as before all of them went down. Nobody knows how far behind it is.
func (l *local) openUnconfirmed(req *Request, o opened) (opened, error) {
	if o.meta.Lag, o.meta.Age = -1, -1; !req.Accept.admits(&o.meta) {
		o.Close()
		return o, l.fail(ErrTooStale, req, o.meta.Partition, errUnconfirmed)
	}
	return o, nil
}

var errUnconfirmed = errors.New("the instance has not heard from the group lately")

// satisfies says whether the store has what a position asks for, of its partition.
// It is called with the store held.
func satisfies(a *Accept, of *state.Readable) error {
	if len(a.Position) == 0 {
		return nil
	}
	is := position(of)
	for topic, partitions := range a.Position {
		for partition, want := range partitions {
			if partition != of.Partition && !of.Global {
				continue
			}
			seen, ok := is[topic][partition]
			if !ok {
				seen = -1
			}
			if seen < want {
				return &behindError{topic, partition, seen, want}
			}
		}
	}
	return nil
}

// position is how far the store's task has processed its inputs. It is called with
// the store held.
func position(of *state.Readable) Position {
	p := Position{}
	for in := range of.Owner.Inputs() {
		if p[in.Topic] == nil {
			p[in.Topic] = make(map[int32]int64, 1)
		}
		p[in.Topic][in.Partition] = in.Offset
	}
	return p
}

func (l *local) fail(kind error, req *Request, partition int32, err error) error {
	e := fail(kind, req, err)
	e.Partition = partition
	return e
}

// storeError is the error of a store. One that is closed has moved away, and one that
// was waited for until ctx ended is held by its task, which may wait for a broker.
func (l *local) storeError(ctx context.Context, req *Request, partition int32, err error) error {
	switch {
	case errors.Is(err, state.ErrClosed):
		return l.fail(ErrMigrated, req, partition, nil)
	case ctx.Err() != nil:
		return l.fail(ErrUnreachable, req, partition, fmt.Errorf("its task has the store: %w", err))
	}
	return l.fail(nil, req, partition, err)
}

// query answers a query about one partition.
func (l *local) query(ctx context.Context, req *Request, partition int32) (*Rows, error) {
	o, err := l.open(ctx, req, partition)
	if err != nil {
		return nil, err
	}
	if o.meta.Active {
		o.meta.Position = position(o.of)
	}
	if req.single() {
		defer o.Close()
		e, ok, err := getPoint(o.Store, req)
		switch {
		case err != nil:
			return nil, l.storeError(ctx, req, partition, err)
		case !ok:
			return rowsOf(o.meta), nil
		}
		e.Key, e.Value = req.Key, bytes.Clone(e.Value)
		return rowsOf(o.meta, e), nil
	}
	w, err := openWalk(o.Store, req)
	if err != nil {
		o.Close()
		return nil, l.storeError(ctx, req, partition, err)
	}
	o.Release()
	left := req.Limit
	next := func() (e Entry, err error) {
		switch {
		case req.Limit > 0 && left == 0:
			return e, io.EOF
		case w.Next():
			left--
			return w.Entry(), nil
		case w.Err() != nil:
			return e, l.storeError(ctx, req, partition, w.Err())
		}
		return e, io.EOF
	}
	return NewRows(o.meta, next, func() {
		w.Close() // of a view, which has nothing to give back
		o.Close()
	}), nil
}

// behindError says what a store has not processed yet.
type behindError struct {
	topic      string
	partition  int32
	seen, want int64
}

func (e *behindError) Error() string {
	return "it is at " + offsetText(e.topic, e.partition, e.seen) + ", not at " + offsetText(e.topic, e.partition, e.want)
}
