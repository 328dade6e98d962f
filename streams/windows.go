package streams

import (
	"fmt"
	"time"
)

// TimeWindows are windows of a fixed size, from 1970 on: tumbling windows, of which
// each begins where the one before it ends, or with Advance hopping windows, which
// overlap. A record is in each window that its timestamp is in; the end of a window
// is not in it.
type TimeWindows struct {
	// Size is the size of the windows, in whole milliseconds. It is required.
	Size time.Duration

	// Advance is from the start of one window to the start of the next, in whole
	// milliseconds, no more than the size; 0: the size.
	Advance time.Duration

	// Grace is how long a window takes late records, by stream time, after its
	// end (KIP-633); 0: not at all.
	Grace time.Duration
}

// SlidingWindows are the windows of all records that are no farther apart than a
// time difference (KIP-450): with each record a window ends, and another one begins
// right after it. Both ends are in the window.
type SlidingWindows struct {
	// TimeDifference is from the first to the last moment of a window, in whole
	// milliseconds. It is required.
	TimeDifference time.Duration

	// Grace is how long a window takes late records, by stream time, after its
	// end; 0: not at all.
	Grace time.Duration
}

// SessionWindows are the windows of a key's activity (KIP-94): a session goes on
// while the next record comes within the gap. A record between two sessions can make
// one of them. Both ends are in the session.
type SessionWindows struct {
	// InactivityGap is the time without records after which a session has
	// ended, in whole milliseconds. It is required.
	InactivityGap time.Duration

	// Grace is how long a session takes late records, by stream time, after it
	// has ended; 0: not at all.
	Grace time.Duration
}

// Windows are the windows of [WindowedBy]: [TimeWindows] or
// [SlidingWindows].
type Windows interface {
	windowing() (windowing, error)
}

// windowing is a definition of windows of any kind, in milliseconds.
type windowing struct {
	kind    windowKind
	size    int64 // of time windows; the time difference; the inactivity gap
	advance int64 // of time windows
	grace   int64
}

type windowKind int8

const (
	timeWindows windowKind = iota
	slidingWindows
	sessionWindows
)

func (w TimeWindows) windowing() (windowing, error) {
	if w.Advance == 0 {
		w.Advance = w.Size
	}
	of := windowing{timeWindows, w.Size.Milliseconds(), w.Advance.Milliseconds(), w.Grace.Milliseconds()}
	switch {
	case of.size <= 0:
		return of, fmt.Errorf("TimeWindows have the Size %v: it must be at least 1 ms", w.Size)
	case of.advance <= 0 || of.advance > of.size:
		return of, fmt.Errorf("TimeWindows have the Advance %v: it must be at least 1 ms and no more than the Size %v", w.Advance, w.Size)
	}
	return of, of.check("TimeWindows")
}

func (w SlidingWindows) windowing() (windowing, error) {
	of := windowing{kind: slidingWindows, size: w.TimeDifference.Milliseconds(), grace: w.Grace.Milliseconds()}
	if of.size <= 0 {
		return of, fmt.Errorf("SlidingWindows have the TimeDifference %v: it must be at least 1 ms", w.TimeDifference)
	}
	return of, of.check("SlidingWindows")
}

func (w SessionWindows) windowing() (windowing, error) {
	of := windowing{kind: sessionWindows, size: w.InactivityGap.Milliseconds(), grace: w.Grace.Milliseconds()}
	if of.size <= 0 {
		return of, fmt.Errorf("SessionWindows have the InactivityGap %v: it must be at least 1 ms", w.InactivityGap)
	}
	return of, of.check("SessionWindows")
}

func (w windowing) check(kind string) error {
	if w.grace < 0 {
		return fmt.Errorf("%s have the Grace %v: it must not be negative", kind, time.Duration(w.grace)*time.Millisecond)
	}
	return nil
}

// retention is how long windows must be kept: as long as records change them, and
// sliding windows as long as others are made of them.
func (w windowing) retention() int64 {
	if w.kind == slidingWindows {
		return 2*w.size + w.grace
	}
	return w.size + w.grace
}

// closing is how long after its end a window takes records.
func (w windowing) closing() int64 {
	if w.kind == sessionWindows {
		return w.size + w.grace
	}
	return w.grace
}

// first is the start of the first time window that a time is in. The others follow
// in advances, up to the time itself.
func (w windowing) first(time int64) int64 {
	return max(0, time-w.size+w.advance) / w.advance * w.advance
}

// sameWindows says whether two times, not negative, are in the same time windows.
func (w windowing) sameWindows(a, b int64) bool {
	return w.first(a) == w.first(b) && a/w.advance == b/w.advance
}
