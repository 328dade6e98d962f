package iq

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/odradek-go/odradek/serde"
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

// open begins a view of a partition of a store, if that is here and no staler than
// the request accepts. The view holds the store.
func (l *local) open(ctx context.Context, req *Request, partition int32) (o opened, err error) {
	o.meta = Meta{Host: l.host, Partition: partition}
	if o.of = l.registry.Get(req.Store, partition); o.of == nil {
		return o, l.fail(ErrMigrated, req, partition, nil)
	}
	if o.View, err = o.of.Views.Begin(ctx); err != nil {
		return o, l.storeError(req, partition, err)
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

// openCopy is open for a copy, after a look at how far it is behind.
func (l *local) openCopy(ctx context.Context, req *Request, o opened) (_ opened, err error) {
	partition := o.meta.Partition
	for looked := false; ; looked = true {
		if o.View, err = o.of.Views.Begin(ctx); err != nil {
			return o, l.storeError(req, partition, err)
		}
		topic, next, ok := o.of.Owner.Changelog()
		if !ok || o.of.Owner.Loading() {
			o.Close()
			return o, l.fail(ErrMigrated, req, partition, nil)
		}
		key := changelog{topic, partition}
		o.meta.Lag, o.meta.Age = l.lags.of(key, next)
		if looked && req.Accept.admits(&o.meta) {
			return o, nil
		}
		o.Close()
		if looked {
			return o, l.fail(ErrTooStale, req, partition, nil)
		}
		// Without an answer the lag stays unknown, which is for Accept to judge.
		_ = l.lags.refresh(ctx, key)
	}
}

// satisfies says whether the store has what a position asks for, of its partition.
// It is called with the store held.
func satisfies(a *Accept, of *state.Readable) error {
	for topic, partitions := range a.Position {
		want, ok := partitions[of.Partition]
		if !ok {
			continue
		}
		seen := int64(-1)
		for input, offset := range of.Owner.Inputs() {
			if input == topic {
				seen = offset
			}
		}
		if seen < want {
			return &behindError{topic, of.Partition, seen, want}
		}
	}
	return nil
}

// position is how far the store's task has processed its inputs. It is called with
// the store held.
func position(of *state.Readable) Position {
	p := Position{}
	for topic, offset := range of.Owner.Inputs() {
		p[topic] = map[int32]int64{of.Partition: offset}
	}
	return p
}

func (l *local) fail(kind error, req *Request, partition int32, err error) error {
	e := fail(kind, req, err)
	e.Partition = partition
	return e
}

// storeError is the error of a store. One that is closed has moved away.
func (l *local) storeError(req *Request, partition int32, err error) error {
	if errors.Is(err, state.ErrClosed) {
		return l.fail(ErrMigrated, req, partition, nil)
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
	if req.point() && req.Kind != Fetch {
		defer o.Close()
		e, ok, err := getPoint(o.Store, req)
		switch {
		case err != nil:
			return nil, l.storeError(req, partition, err)
		case !ok:
			return rowsOf(o.meta), nil
		}
		e.Key, e.Value = req.Key, bytes.Clone(e.Value)
		return rowsOf(o.meta, e), nil
	}
	w, err := openWalk(o.Store, req)
	if err != nil {
		o.Close()
		return nil, l.storeError(req, partition, err)
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
			return e, l.storeError(req, partition, w.Err())
		}
		return e, io.EOF
	}
	return NewRows(o.meta, next, func() {
		w.Close() // of a view, which has nothing to give back
		o.Close()
	}), nil
}

// The kinds of stores, as views show them.
type (
	kvView        = state.KeyValue[[]byte, []byte]
	timestamped   = state.TimestampedKeyValue[[]byte, []byte]
	versionedView = state.Versioned[[]byte, []byte]
	windowView    = state.Window[[]byte, []byte]
	sessionView   = state.Session[[]byte, []byte]
)

// getPoint reads one value, which is valid until the view's next read.
func getPoint(s state.Store, req *Request) (e Entry, ok bool, err error) {
	e.Timestamp = -1
	switch s := s.(type) {
	case *timestamped:
		if req.Kind == Get {
			e.Value, e.Timestamp, ok, err = s.Get(req.Key)
			return e, ok, err
		}
	case *kvView:
		if req.Kind == Get {
			e.Value, ok, err = s.Get(req.Key)
			return e, ok, err
		}
	case *versionedView:
		var v state.VersionedRecord[[]byte]
		switch req.Kind {
		case Get:
			v, ok, err = s.Get(req.Key)
		case GetAsOf:
			v, ok, err = s.GetAsOf(req.Key, req.Latest)
		default:
			return e, false, ErrStoreType
		}
		e.Value, e.Timestamp = v.Value, v.Timestamp
		return e, ok, err
	case *windowView:
		if req.Kind == GetWindow {
			e.Start, e.End = req.Earliest, s.WindowEnd(req.Earliest)
			e.Value, e.Timestamp, ok, err = s.Get(req.Key, req.Earliest)
			return e, ok, err
		}
	case *sessionView:
		if req.Kind == GetWindow {
			e.Start, e.End = req.Earliest, req.Latest
			e.Value, ok, err = s.Get(serde.Windowed[[]byte]{Key: req.Key, Start: req.Earliest, End: req.Latest})
			return e, ok, err
		}
	}
	return e, false, ErrStoreType
}

// walk is a walk over a store of any kind.
type walk interface {
	Next() bool
	Entry() Entry
	Err() error
	Close() error
}

// openWalk walks over what a request asks for.
func openWalk(s state.Store, req *Request) (walk, error) {
	order := state.Order(req.Backward)
	switch s := s.(type) {
	case *timestamped:
		switch req.Kind {
		case Range:
			return timestampedWalk{s.Range(resumed(req), order), skip(req)}, nil
		case Prefix:
			return timestampedWalk{s.Prefix(req.Key, order), skip(req)}, nil
		}
	case *kvView:
		switch req.Kind {
		case Range:
			return keyValueWalk{s.Range(resumed(req), order), skip(req)}, nil
		case Prefix:
			return keyValueWalk{s.Prefix(req.Key, order), skip(req)}, nil
		}
	case *windowView:
		switch req.Kind {
		case Fetch:
			return windowWalk{s.Fetch(req.Key, req.Earliest, req.Latest, order)}, nil
		case FetchRange:
			return windowWalk{s.FetchRange(bounds(req), req.Earliest, req.Latest, order)}, nil
		}
	case *sessionView:
		switch req.Kind {
		case Fetch:
			return windowWalk{s.Find(req.Key, req.Earliest, req.Latest, order)}, nil
		case FetchRange:
			return windowWalk{s.FindRange(bounds(req), req.Earliest, req.Latest, order)}, nil
		}
	}
	return nil, ErrStoreType
}

func bounds(req *Request) (b state.Bounds[[]byte]) {
	if req.From != nil {
		b.From = &req.From
	}
	if req.To != nil {
		b.To = &req.To
	}
	return b
}

// resumed are the bounds of what is left of a range.
func resumed(req *Request) state.Bounds[[]byte] {
	b := bounds(req)
	if req.After != nil && req.Backward {
		b.To = &req.After
	} else if req.After != nil {
		b.From = &req.After
	}
	return b
}

// skip says which entries are before what is left of a walk.
func skip(req *Request) func(key []byte) bool {
	if req.After == nil {
		return nil
	}
	return func(key []byte) bool {
		c := bytes.Compare(key, req.After)
		return c == 0 || c < 0 != req.Backward
	}
}

type keyValueWalk struct {
	*state.KeyValueIterator[[]byte, []byte]
	skip func(key []byte) bool
}

func (w keyValueWalk) Next() bool {
	for w.KeyValueIterator.Next() {
		if w.skip == nil || !w.skip(w.Key()) {
			return true
		}
	}
	return false
}

func (w keyValueWalk) Entry() Entry { return Entry{Key: w.Key(), Value: w.Value(), Timestamp: -1} }

type timestampedWalk struct {
	*state.TimestampedIterator[[]byte, []byte]
	skip func(key []byte) bool
}

func (w timestampedWalk) Next() bool {
	for w.TimestampedIterator.Next() {
		if w.skip == nil || !w.skip(w.Key()) {
			return true
		}
	}
	return false
}

func (w timestampedWalk) Entry() Entry {
	return Entry{Key: w.Key(), Value: w.Value(), Timestamp: w.Timestamp()}
}

type windowWalk struct {
	*state.WindowIterator[[]byte, []byte]
}

func (w windowWalk) Entry() Entry {
	k := w.Key()
	return Entry{Key: k.Key, Value: w.Value(), Timestamp: w.Timestamp(), Start: k.Start, End: k.End}
}

// kindOf says whether a store of a kind can answer a request at all.
func kindOf(s state.Store, req *Request) error {
	ok := false
	switch s.(type) {
	case state.KeyValueReader:
		ok = req.Kind == Get || req.Kind == Range || req.Kind == Prefix
	case state.VersionedReader:
		ok = req.Kind == Get || req.Kind == GetAsOf
	case state.WindowReader:
		ok = req.Kind == GetWindow || req.Kind == Fetch || req.Kind == FetchRange
	}
	if !ok {
		return fail(ErrStoreType, req, nil)
	}
	return nil
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
