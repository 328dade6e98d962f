package streams

import (
	"fmt"
	"time"

	"github.com/odradek-go/odradek/serde"
)

// JoinWindows says how far apart in time records of two streams can be to be joined:
// records of the other stream from Before earlier to After later than a record of
// this one. Times are whole milliseconds.
type JoinWindows struct {
	// Before is how much earlier the other stream's record can be. It may be
	// negative where After makes up for it.
	Before time.Duration

	// After is how much later it can be, likewise.
	After time.Duration

	// Grace is how long after the end of a window records can still come in.
	// Results of a record alone, in left and outer joins, wait for that (KIP-633).
	Grace time.Duration
}

// TimeDifference is a JoinWindows for records that are at most so far apart, without
// grace.
func TimeDifference(d time.Duration) JoinWindows { return JoinWindows{Before: d, After: d} }

// WithGrace returns a copy with that grace period.
func (w JoinWindows) WithGrace(d time.Duration) JoinWindows { w.Grace = d; return w }

func (w JoinWindows) check() error {
	switch {
	case w.size() < 0:
		return fmt.Errorf("the windows end before they begin: Before is %v and After %v", w.Before, w.After)
	case w.Grace < 0:
		return fmt.Errorf("the grace period is %v", w.Grace)
	}
	return nil
}

func (w JoinWindows) size() time.Duration      { return w.Before + w.After }
func (w JoinWindows) retention() time.Duration { return w.size() + w.Grace }

// StreamJoined says how two streams are joined.
type StreamJoined[K, V, VOther any] struct {
	// Name is what the names of the join's processors begin with, and those of
	// its repartition topics where the join needs any; empty: generated.
	Name string

	// StoreName is what the names of its stores, and so of their changelogs,
	// begin with; empty: generated.
	StoreName string

	// ThisStoreName and OtherStoreName are the names of the stores of the first
	// and the second stream, whole ones, as those of Java's store suppliers; empty:
	// made of StoreName. As in Java, LoggingDisabled and ChangelogConfig don't
	// apply to these stores.
	ThisStoreName  string
	OtherStoreName string

	// StoreType is where the stores keep their data; the zero value: as
	// TopologyConfig.StoreType says, or else on disk.
	StoreType StoreType

	// Key, Value and OtherValue are the serdes of the stores and repartition
	// topics; nil: the streams', or else [serde.For].
	Key        serde.Serde[K]
	Value      serde.Serde[V]
	OtherValue serde.Serde[VOther]

	// LoggingDisabled leaves the stores without changelogs: what they hold is
	// lost when their task moves.
	LoggingDisabled bool

	// ChangelogConfig are topic settings of the changelogs, over the defaults.
	ChangelogConfig map[string]string
}

// StreamJoinedWith is a StreamJoined with serdes.
func StreamJoinedWith[K, V, VOther any](key serde.Serde[K], value serde.Serde[V], other serde.Serde[VOther]) StreamJoined[K, V, VOther] {
	return StreamJoined[K, V, VOther]{Key: key, Value: value, OtherValue: other}
}

// As returns a copy with that name.
func (j StreamJoined[K, V, VOther]) As(name string) StreamJoined[K, V, VOther] {
	j.Name = name
	return j
}
