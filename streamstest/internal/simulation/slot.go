package simulation

import (
	"fmt"
	"time"

	"github.com/odradek-go/odradek/membership"
)

// slot is a place for an instance of the application: one process at a time, with the state directory that outlives it.
type slot struct {
	s       *sim
	number  int
	plan    SlotPlan
	process string // the id that the state directory keeps
	disk    map[membership.TaskID]int64

	up       bool    // it is meant to run
	threads  []*host // of the process; nil: none
	paused   bool
	backlog  []func() // what a paused process will find when it wakes
	cutUntil time.Duration
	cutFast  bool // connections are refused, not left hanging
}

func newSlot(s *sim, number int, plan SlotPlan) *slot {
	return &slot{
		s: s, number: number, plan: plan, process: fmt.Sprintf("p%d", number),
		disk: make(map[membership.TaskID]int64), threads: make([]*host, plan.Threads),
	}
}

func (l *slot) name() string { return l.process }

// empty tells whether nothing of an earlier process runs.
func (l *slot) empty() bool {
	for _, h := range l.threads {
		if h != nil {
			return false
		}
	}
	return true
}

// start starts what should run and doesn't.
func (l *slot) start() {
	l.up = true
	for i, h := range l.threads {
		if h == nil {
			l.startThread(i)
		}
	}
}

func (l *slot) startThread(i int) {
	if !l.up || l.threads[i] != nil {
		return
	}
	h := newHost(l, i)
	if h == nil {
		return
	}
	l.threads[i] = h
	h.say("starts as %s of %s %s", h.id, l.process, h.instance)
	h.m.Join(l.s.time())
	h.pump()
}

// stop lets all threads leave.
func (l *slot) stop(how membership.LeaveMode) {
	l.up = false
	for _, h := range l.threads {
		if h != nil {
			h.stop(how)
		}
	}
}

// crash ends the process; nobody hears of it.
func (l *slot) crash() {
	l.up, l.paused, l.backlog = false, false, nil
	for i, h := range l.threads {
		if h != nil {
			h.say("crashes")
			h.end()
			l.threads[i] = nil
		}
	}
}

func (l *slot) pause() {
	if !l.paused && !l.empty() {
		l.s.say(l.name(), "is stopped")
		l.paused = true
	}
}

func (l *slot) wake() {
	if !l.paused {
		return
	}
	l.s.say(l.name(), "goes on, with a backlog of %d", len(l.backlog))
	l.paused = false
	backlog := l.backlog
	l.backlog = nil
	for _, do := range backlog {
		l.s.checkTasks()
		do()
	}
}

func (l *slot) cut() bool { return l.s.now < l.cutUntil }
