package simulation

import (
	"fmt"
	"slices"
	"time"
)

// transcript keeps the last lines of what happened. A nil one keeps nothing and costs nothing: a schedule first runs
// without, and is replayed with one if it fails.
type transcript struct {
	lines []string
	next  int
}

func newTranscript(keep int) *transcript {
	if keep <= 0 {
		return nil
	}
	return &transcript{lines: make([]string, 0, keep)}
}

func (t *transcript) add(at time.Duration, who, format string, args ...any) {
	line := fmt.Sprintf("%10.3f %-8s %s", at.Seconds(), who, fmt.Sprintf(format, args...))
	if len(t.lines) < cap(t.lines) {
		t.lines = append(t.lines, line)
		return
	}
	t.lines[t.next] = line
	t.next = (t.next + 1) % len(t.lines)
}

// all returns the lines in order.
func (t *transcript) all() []string {
	if t == nil {
		return nil
	}
	return slices.Concat(t.lines[t.next:], t.lines[:t.next])
}
