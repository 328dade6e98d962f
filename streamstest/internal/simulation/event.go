package simulation

import "time"

// event is something that happens at a moment of logical time, counted from the beginning.
type event struct {
	at  time.Duration
	seq uint64 // events of one moment happen in the order in which they were planned
	do  func()
}

// queue is a binary heap of events, the next one first.
type queue struct {
	events []event
	seq    uint64
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (q *queue) push(at time.Duration, do func()) {
	q.seq++
	q.events = append(q.events, event{at, q.seq, do})
	e := q.events
	for i := len(e) - 1; i > 0; {
		parent := (i - 1) / 2
		if !e[i].before(e[parent]) {
			return
		}
		e[i], e[parent] = e[parent], e[i]
		i = parent
	}
}

func (q *queue) pop() event {
	e := q.events
	first, last := e[0], len(e)-1
	e[0], e[last] = e[last], event{}
	e = e[:last]
	q.events = e
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if e[child].before(e[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		e[i], e[least] = e[least], e[i]
		i = least
	}
}
