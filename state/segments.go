package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"time"
)

// segments divides a window or session store into segments of time, in which the
// engine has the keys in order. It knows how far time has come and what has
// expired. The time of an entry is its window's start or its session's end.
//
// As in Java, an entry expires when time, as the store has seen it, is the
// retention past the entry's. Segments end as a whole. Expired entries that are
// still there aren't shown.
//
// A store can be laid out by time: then each millisecond is a segment. Or it can
// have an index by time beside: see timeindex.go.
type segments struct {
	segmentLayout
	observed int64 // the highest time that was stored yet, −1 before the first
	ahead    int64 // likewise, with what is in the cache
	first    int64 // the segments before are gone
	sequence uint32
	bound    [segmentSize]byte
	index    []byte // reused
}

// segmentLayout is what never changes once the store is in use, so that any goroutine
// may read it.
type segmentLayout struct {
	suffixSize int
	retention  int64 // ms
	interval   int64 // ms, the length of a segment
	indexed    bool  // there is an index by time
	slack      int64 // ms, how much longer than the retention entries are shown
}

func newSegments(retention time.Duration, suffixSize int) *segments {
	ms := retention.Milliseconds()
	return (&segmentLayout{suffixSize: suffixSize, retention: ms, interval: max(ms/2, 60_000)}).segments()
}

// segments are those of a store to which no time has come yet.
func (l *segmentLayout) segments() *segments {
	return &segments{segmentLayout: *l, observed: -1, ahead: -1}
}

// follow takes over how far time has come elsewhere.
func (s *segments) follow(of *segments) {
	s.observed, s.ahead, s.first = of.observed, of.ahead, of.first
}

// note is what must be remembered with a checkpoint.
func (s *segments) note() []byte {
	b := make([]byte, 0, 28)
	b = binary.BigEndian.AppendUint64(b, uint64(s.observed))
	b = binary.BigEndian.AppendUint64(b, uint64(s.layout()))
	return binary.BigEndian.AppendUint32(b, s.sequence)
}

// layout tells how the data is laid out.
func (s *segments) layout() int64 {
	if s.indexed {
		return -s.interval
	}
	return s.interval
}

// recall begins where a note was taken, or anew where there is none. It is false
// for a note that doesn't fit: the data is laid out in other segments.
func (s *segments) recall(note []byte) bool {
	s.observed, s.ahead, s.first, s.sequence = -1, -1, 0, 0
	if len(note) != 20 || int64(binary.BigEndian.Uint64(note[8:])) != s.layout() {
		return false
	}
	s.observed = int64(binary.BigEndian.Uint64(note))
	s.ahead, s.sequence = s.observed, binary.BigEndian.Uint32(note[16:])
	s.first = s.segment(s.expired())
	return true
}

// segment is the number of the segment that a time is in.
func (s *segments) segment(time int64) int64 { return max(time, 0) / s.interval }

// expired is the highest time that has expired.
func (s *segments) expired() int64 { return s.observed - s.retention - s.slack }

// appendPrefix begins a key of the engine.
func (s *segments) appendPrefix(dst []byte, time int64) []byte {
	return binary.BigEndian.AppendUint64(dst, s.prefix(s.segment(time)))
}

// prefix is what the keys of a segment begin with. With an index every second one
// is the index's.
func (s *segments) prefix(segment int64) uint64 {
	if s.indexed {
		return 2 * uint64(segment)
	}
	return uint64(segment)
}

// time is the time of an entry by its key in the engine.
func (s *segments) time(key []byte) int64 {
	return int64(binary.BigEndian.Uint64(key[len(key)-s.suffixSize:]))
}

// admit moves time on to a new entry's. live is false for one that has expired.
// What is before the key before, unless that is nil, is of no use any more.
func (s *segments) admit(key []byte) (live bool, before []byte) {
	time := s.time(key)
	if time > s.observed {
		s.observed, s.ahead = time, max(s.ahead, time)
		if first := s.segment(s.expired()); first > s.first {
			s.first = first
			binary.BigEndian.PutUint64(s.bound[:], s.prefix(first))
			before = s.bound[:]
		}
	}
	return time > s.expired() || s.indexed && s.segment(time) >= s.first, before
}

// cached hears of an entry that goes to the cache first.
func (s *segments) cached(key []byte) { s.ahead = max(s.ahead, s.time(key)) }

// span is what a fetch looks for.
type span struct {
	key      []byte // this key alone, or
	from, to []byte // keys in this range, both included; nil is open
	earliest int64  // by the time of the entry, included
	latest   int64  // included
	order    Order

	// gone has what has expired shown too, as long as it is there.
	gone bool
}

// windowScan walks over the entries of a span, segment by segment.
type windowScan struct {
	b       *backing
	s       *segments
	span    span
	next    int64 // the segment to open next
	last    int64 // and the last one
	done    bool  // it is open, or was
	it      Iterator
	lo, hi  []byte
	keep    func(key []byte) bool // nil: all
	err     error
	current []byte
	value   []byte
	byTime  bool   // by the index
	entry   []byte // reused
}

func (b *backing) scanWindows(sp span, keep func([]byte) bool) *windowScan {
	s := b.windows
	if !sp.gone {
		sp.earliest = max(sp.earliest, s.expired()+1)
	}
	sp.earliest = max(sp.earliest, s.first*s.interval, 0)
	sp.latest = min(sp.latest, s.ahead)
	w := &windowScan{b: b, s: s, keep: keep, span: sp, next: s.segment(sp.earliest), last: s.segment(sp.latest)}
	room := segmentSize + max(len(sp.key), len(sp.from), len(sp.to)) + s.suffixSize + 1
	w.lo, w.hi = make([]byte, 0, room), make([]byte, 0, room)
	w.byTime = s.indexed && sp.key == nil && sp.from == nil && sp.to == nil
	switch {
	case s.interval == 1:
		w.next = w.last // one walk over all segments, which have little in them
	case sp.order == Backward:
		w.next, w.last = w.last, w.next
	}
	w.done = sp.latest < sp.earliest || sp.from != nil && sp.to != nil && bytes.Compare(sp.from, sp.to) > 0
	return w
}

func (w *windowScan) Next() bool {
	for w.err == nil {
		if w.it == nil && !w.openSegment() {
			return false
		}
		for w.err == nil && w.it.Next() {
			if w.take() {
				return true
			}
		}
		w.err = cmp.Or(w.err, w.it.Err())
		w.err = cmp.Or(w.err, w.it.Close())
		w.it = nil
	}
	return false
}

func (w *windowScan) openSegment() bool {
	if w.done {
		return false
	}
	w.bounds(w.next)
	w.it = w.b.scan(w.lo, w.hi, w.span.order)
	switch w.done = w.next == w.last; w.span.order {
	case Forward:
		w.next++
	case Backward:
		w.next--
	}
	return true
}

// take makes the entry that the iterator is at the current one, if it is of the
// span.
func (w *windowScan) take() bool {
	if w.current = w.it.Key(); w.byTime {
		w.entry = w.s.appendIndexed(w.entry[:0], w.current)
		w.current = w.entry
	}
	if !w.matches(w.current) {
		return false
	}
	if w.value = w.it.Value(); w.byTime {
		w.value, w.err = w.b.engine.Get(w.current)
	}
	return w.err == nil
}

// bounds are those between which a segment's entries of the span are; there may
// be others among them, since a longer key can begin with another's bytes.
func (w *windowScan) bounds(segment int64) {
	sp := &w.span
	w.lo = binary.BigEndian.AppendUint64(w.lo[:0], w.s.prefix(segment))
	w.hi = append(w.hi[:0], w.lo...)
	switch {
	case w.byTime:
		w.lo, w.hi = w.s.indexBounds(w.lo[:0], w.hi[:0], segment, sp)
		return
	case w.s.interval == 1:
		w.lo = binary.BigEndian.AppendUint64(w.lo[:0], w.s.prefix(w.s.segment(sp.earliest)))
		w.hi = binary.BigEndian.AppendUint64(w.hi[:0], w.s.prefix(segment)+1)
		return
	case sp.key != nil:
		w.lo = binary.BigEndian.AppendUint64(append(w.lo, sp.key...), uint64(sp.earliest))
		w.hi = binary.BigEndian.AppendUint64(append(w.hi, sp.key...), uint64(sp.latest))
	case sp.to != nil:
		w.lo = append(w.lo, sp.from...)
		w.hi = append(w.hi, highest(sp.to, sp.latest)...)
	default:
		w.lo = append(w.lo, sp.from...)
		w.hi = binary.BigEndian.AppendUint64(w.hi[:0], w.s.prefix(segment)+1)
		return
	}
	for range w.s.suffixSize - 8 {
		w.hi = append(w.hi, 0xff)
	}
	w.hi = append(w.hi, 0) // what is next after it
}

// highest is what no key up to key, with the time latest behind it, is beyond.
func highest(key []byte, latest int64) []byte {
	suffix := binary.BigEndian.AppendUint64(nil, uint64(latest))
	best := append(bytes.Clone(key), suffix...)
	for n := range key {
		// A key that is a part of key's beginning is before it, and yet with
		// its time it may be behind.
		if shorter := append(key[:n:n], suffix...); bytes.Compare(shorter, best) > 0 {
			best = shorter
		}
	}
	return best
}

func (w *windowScan) matches(entry []byte) bool {
	sp := &w.span
	n := len(entry) - w.s.suffixSize
	if n < segmentSize {
		return false
	}
	key := entry[segmentSize:n]
	if time := w.s.time(entry); time < sp.earliest || time > sp.latest {
		return false
	}
	switch {
	case sp.key != nil && !bytes.Equal(key, sp.key),
		sp.from != nil && bytes.Compare(key, sp.from) < 0,
		sp.to != nil && bytes.Compare(key, sp.to) > 0:
		return false
	}
	return w.keep == nil || w.keep(entry)
}

func (w *windowScan) Key() []byte   { return w.current }
func (w *windowScan) Value() []byte { return w.value }
func (w *windowScan) Err() error    { return w.err }

func (w *windowScan) Close() error {
	w.done = true
	if w.it == nil {
		return nil
	}
	err := w.it.Close()
	w.it = nil
	return err
}

// forever is the latest time there is.
const forever = math.MaxInt64
