package iq

import (
	"bytes"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

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
		if req.resumable() {
			return walkKeys(s, req, func(it *state.TimestampedIterator[[]byte, []byte]) walk { return timestampedWalk{it} }), nil
		}
	case *kvView:
		if req.resumable() {
			return walkKeys(s, req, func(it *state.KeyValueIterator[[]byte, []byte]) walk { return keyValueWalk{it} }), nil
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

// walkKeys walks over what is left of a Range or a Prefix.
func walkKeys[I any](s interface {
	Range(state.Bounds[[]byte], state.Order) I
	Prefix([]byte, state.Order) I
}, req *Request, walked func(I) walk) walk {
	order := state.Order(req.Backward)
	if bounded(req) {
		return restOf(walked(s.Range(rest(req), order)), req)
	}
	return restOf(walked(s.Prefix(req.Key, order)), req)
}

// bounded says whether what is left of a Range or a Prefix is a range: the rest of a
// prefix is, behind one of its keys, so that a page of it needn't pass over those before.
func bounded(req *Request) bool {
	return req.Kind == Range || req.After != nil && bytes.HasPrefix(req.After, req.Key)
}

// rest are the bounds of what is left, the key behind which it is included, and of a
// prefix only there: see restWalk.
func rest(req *Request) (b state.Bounds[[]byte]) {
	if req.Kind == Range {
		b = bounds(req)
	}
	if req.After != nil && req.Backward {
		b.To = &req.After
	} else if req.After != nil {
		b.From = &req.After
	}
	return b
}

// restOf is the part of a walk that is behind the key After, if there is one.
func restOf(w walk, req *Request) walk {
	if req.After == nil {
		return w
	}
	return restWalk{w, req}
}

type restWalk struct {
	walk
	req *Request
}

func (w restWalk) Next() bool {
	for w.walk.Next() {
		key := w.Entry().Key
		if w.req.Kind == Prefix && !bytes.HasPrefix(key, w.req.Key) {
			return false // those that have it stand together
		}
		if c := bytes.Compare(key, w.req.After); c != 0 && c < 0 == w.req.Backward {
			return true
		}
	}
	return false
}

type keyValueWalk struct {
	*state.KeyValueIterator[[]byte, []byte]
}

func (w keyValueWalk) Entry() Entry { return Entry{Key: w.Key(), Value: w.Value(), Timestamp: -1} }

type timestampedWalk struct {
	*state.TimestampedIterator[[]byte, []byte]
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
