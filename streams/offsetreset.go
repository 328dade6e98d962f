package streams

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// OffsetReset is where a partition begins that has no committed offset: [ResetEarliest],
// [ResetLatest], [ResetByDuration], or not at all: [ResetNone]. The zero value leaves it
// to a default.
type OffsetReset struct {
	kind resetKind
	ago  time.Duration
}

type resetKind int8

const (
	resetEarliest resetKind = iota + 1
	resetLatest
	resetByDuration
	resetNone
)

// The ways to begin.
var (
	ResetEarliest = OffsetReset{kind: resetEarliest} // at the partition's start
	ResetLatest   = OffsetReset{kind: resetLatest}   // at its end

	// ResetNone has the application fail with a [taskmgr.NoOffsetError], so that it
	// begins only where somebody has said it should, by committing offsets of its
	// group. As in Java, repartition topics need committed offsets too where it is
	// Config.AutoOffsetReset.
	ResetNone = OffsetReset{kind: resetNone}
)

// ResetByDuration begins with the first record whose timestamp is no longer ago than
// that when the partition begins, and at the partition's end where there is none
// (KIP-1106).
func ResetByDuration(ago time.Duration) OffsetReset {
	return OffsetReset{kind: resetByDuration, ago: ago}
}

func (r OffsetReset) check() error {
	if r.ago < 0 {
		return fmt.Errorf("the offset reset by duration is negative: %v", r.ago)
	}
	return nil
}

// offset is where a partition begins that does so at the time of now; ok is false for
// none.
func (r OffsetReset) offset(now time.Time) (from kgo.Offset, ok bool) {
	switch r.kind {
	case resetLatest:
		return kgo.NewOffset().AtEnd(), true
	case resetByDuration:
		return kgo.NewOffset().AfterMilli(now.Add(-r.ago).UnixMilli()), true
	case resetNone:
		return from, false
	}
	return kgo.NewOffset().AtStart(), true
}
