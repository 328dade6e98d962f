package iq

import (
	"errors"
	"time"
)

// Kind is what a query asks of a store.
type Kind string

// The kinds of queries.
const (
	// Get asks for the value of Key, in a key-value, timestamped or versioned store.
	Get Kind = "get"

	// GetAsOf asks for the value of Key that was valid at Latest, in a versioned
	// store (KIP-914).
	GetAsOf Kind = "as-of"

	// Range asks for the entries from key From to key To, both included, nil for
	// open, in a key-value or timestamped store.
	Range Kind = "range"

	// Prefix asks for the entries whose encoded keys begin with Key, in a key-value
	// or timestamped store.
	Prefix Kind = "prefix"

	// GetWindow asks for the value of Key in the window that starts at Earliest, in
	// a window store; in a session store, in the session from Earliest to Latest.
	GetWindow Kind = "window"

	// Fetch asks for the windows of Key that start from Earliest to Latest; in a
	// session store for the sessions of Key that end at Earliest or later and start
	// at Latest or earlier.
	Fetch Kind = "fetch"

	// FetchRange is Fetch for the keys from From to To, both included, nil for open.
	FetchRange Kind = "fetch-range"
)

// Forever is the latest time, for queries of windows without an end.
const Forever = 1<<63 - 1

// AllPartitions is the Request.Partition of a query that is about no single one.
const AllPartitions = -1

// Request is a query. Keys are as the store's serde encodes them; times are in
// milliseconds.
type Request struct {
	Store     string `json:"store"`
	Kind      Kind   `json:"kind"`
	Key       []byte `json:"key"`
	From      []byte `json:"from"`
	To        []byte `json:"to"`
	Earliest  int64  `json:"earliest"`
	Latest    int64  `json:"latest"`
	Backward  bool   `json:"backward,omitempty"` // by falling key or time
	Limit     int    `json:"limit,omitempty"`    // of entries; 0: none
	Partition int32  `json:"partition"`          // AllPartitions: the key's, or all

	// After goes on behind a key, for Range and Prefix: with what follows it, in the
	// order asked for. Nil: from the beginning.
	After []byte `json:"after"`

	Accept Accept `json:"accept"`
}

// point says whether the query is about one key, and so about one partition.
func (r *Request) point() bool {
	switch r.Kind {
	case Range, Prefix, FetchRange:
		return false
	}
	return true
}

// single says whether the query is about one value.
func (r *Request) single() bool { return r.point() && r.Kind != Fetch }

// resumable says whether the query can be gone on with behind a key.
func (r *Request) resumable() bool { return r.Kind == Range || r.Kind == Prefix }

var errOutOfRange = errors.New("the store has no such partition")

func (r *Request) check() error {
	switch r.Kind {
	case Get, GetAsOf, Prefix, GetWindow, Fetch:
		if r.Key == nil {
			return fail(ErrInvalidQuery, r, errors.New("no key"))
		}
	case Range, FetchRange:
	default:
		return fail(ErrInvalidQuery, r, errors.New("unknown kind "+string(r.Kind)))
	}
	err := r.Accept.check()
	if r.Limit < 0 {
		err = errors.New("the limit is negative")
	}
	if err != nil {
		return fail(ErrInvalidQuery, r, err)
	}
	return nil
}

// Accept is how stale an answer may be. The zero value accepts the active instance's
// alone, which is the truth. Standbys, warm-ups and active tasks that are still being
// restored may answer where Lag or Age say so, and any that Lag and Age admit both;
// how far behind an answer is, is in its [Meta].
type Accept struct {
	// Lag accepts copies that are at most so many records of the store's changelog
	// behind where that ended when the query came, or a quarter of a second before;
	// AnyLag: any, and stores of instances too that have not heard from the brokers.
	Lag int64 `json:"lag,omitempty"`

	// Age accepts copies that have all that was in the changelog at a moment that is
	// at most so long ago.
	Age time.Duration `json:"age,omitempty"`

	// Position asks for at least these records to be in the store (KIP-796): to read
	// one's own writes. Only an active instance knows that of itself; it is waited
	// for until the deadline. A topic that the store is not made of is waited for in
	// vain.
	Position Position `json:"position,omitempty"`
}

var errNegative = errors.New("what is accepted is negative")

func (a *Accept) check() error {
	if a.Lag < AnyLag || a.Age < 0 {
		return errNegative
	}
	return nil
}

// AnyLag is the Accept.Lag that accepts any copy.
const AnyLag = -1

// copies says whether an answer may come from a copy.
func (a *Accept) copies() bool { return (a.Lag != 0 || a.Age > 0) && len(a.Position) == 0 }

// admits says whether an answer may come from a copy that is so far behind.
func (a *Accept) admits(m *Meta) bool {
	return (a.Lag <= 0 || m.Lag >= 0 && m.Lag <= a.Lag) && (a.Age <= 0 || m.Age >= 0 && m.Age <= a.Age)
}

// Position is how far input topics were processed: by topic and partition the offset
// of the last record (KIP-796).
type Position map[string]map[int32]int64

// With returns a copy of the position with that partition at an offset, or higher if
// it was.
func (p Position) With(topic string, partition int32, offset int64) Position {
	merged := make(Position, len(p)+1)
	merged.merge(p)
	merged.merge(Position{topic: {partition: offset}})
	return merged
}

// merge raises p to what other has.
func (p Position) merge(other Position) {
	for topic, partitions := range other {
		if p[topic] == nil {
			p[topic] = make(map[int32]int64, len(partitions))
		}
		for partition, offset := range partitions {
			if at, ok := p[topic][partition]; !ok || offset > at {
				p[topic][partition] = offset
			}
		}
	}
}

// Meta says where an answer comes from.
type Meta struct {
	// Host is the endpoint of the instance that answered, host:port; empty: it has
	// none.
	Host string `json:"host,omitempty"`

	Partition int32 `json:"partition"`

	// Active says that the answer is the truth; otherwise it comes from a copy.
	Active bool `json:"active"`

	// Lag is how many records of the changelog a copy is behind; −1: not known.
	Lag int64 `json:"lag"`

	// Age is how long ago the copy is known to have had everything, −1: not known.
	Age time.Duration `json:"age"`

	// Position is how far the instance has processed its inputs; nil for a copy.
	Position Position `json:"position,omitempty"`
}

// Entry is an entry of a store.
type Entry struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`

	// Timestamp is the value's, in milliseconds, −1 where the store has none.
	Timestamp int64 `json:"timestamp"`

	// Start and End are the window's, in milliseconds; 0 in stores without windows.
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
}
