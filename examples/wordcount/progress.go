package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/streams"
)

// progress shows on a terminal how far the counts have been read from their
// changelogs: all tasks together, as one bar that is drawn over itself.
type progress struct {
	to io.Writer

	mu    sync.Mutex
	tasks map[membership.TaskID]streams.RestoreProgress
	from  map[membership.TaskID]int64 // the offsets at which they began
	drawn int                         // percent, −1 where there is no bar
}

// isTerminal says whether what is written can be drawn over.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func newProgress(to io.Writer) *progress {
	return &progress{to: to, tasks: make(map[membership.TaskID]streams.RestoreProgress), from: make(map[membership.TaskID]int64), drawn: -1}
}

// listen is a RestoreListener.
func (p *progress) listen(r streams.RestoreProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Phase {
	case streams.RestoreBegin:
		p.from[r.Task] = r.Offset
	case streams.RestoreSuspended:
		delete(p.tasks, r.Task)
		delete(p.from, r.Task)
		return
	}
	p.tasks[r.Task] = r
	p.draw()
}

const barWidth = 40

func (p *progress) draw() {
	var done, all, records int64
	var seconds float64
	for task, r := range p.tasks {
		done += r.Offset - p.from[task]
		all += r.End - p.from[task]
		records += r.Records
		seconds = max(seconds, r.Elapsed.Seconds())
	}
	if all <= 0 {
		return
	}
	percent := int(100 * done / all)
	if percent == p.drawn {
		return
	}
	p.drawn = percent
	full := barWidth * percent / 100
	fmt.Fprintf(p.to, "\rreading counts [%s%s] %3d%% %d records, %.0f a second ",
		strings.Repeat("#", full), strings.Repeat("-", barWidth-full), percent, records, float64(records)/max(seconds, 0.001))
	if percent == 100 {
		fmt.Fprintln(p.to)
		clear(p.tasks)
		clear(p.from)
		p.drawn = -1
	}
}
