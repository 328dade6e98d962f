package kafkatest

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// lines splits what is written to it, and keeps all of it.
type lines struct {
	mu      sync.Mutex
	rest    []byte // of a line that has no end yet
	done    []string
	read    int           // how many of done next has returned
	changed chan struct{} // closed and replaced when done grows
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.done)
	l.rest = append(l.rest, data...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			break
		}
		l.done = append(l.done, strings.TrimSuffix(string(line), "\r"))
		l.rest = rest
	}
	if len(l.done) > before {
		close(l.changed)
		l.changed = make(chan struct{})
	}
	return len(data), nil
}

// all returns all lines. What follows the last line end is a line if there will
// be no more.
func (l *lines) all(ended bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finish(ended)
	return slices.Clone(l.done)
}

// next returns the first line that it has not returned before, as all would.
// Without one, changed is closed when there may be.
func (l *lines) next(ended bool) (line string, ok bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finish(ended)
	if l.read == len(l.done) {
		return "", false, l.changed
	}
	l.read++
	return l.done[l.read-1], true, nil
}

func (l *lines) finish(ended bool) {
	if ended && len(l.rest) > 0 {
		l.done = append(l.done, string(l.rest))
		l.rest = nil
	}
}

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct {
	mu   sync.Mutex
	data []byte
}

func (b *tailBuffer) Write(data []byte) (int, error) {
	const most = 16 << 10
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, data...)
	if len(b.data) > 2*most {
		b.data = append(b.data[:0], b.data[len(b.data)-most:]...)
	}
	return len(data), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return tail(string(b.data), 40)
}
