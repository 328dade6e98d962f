package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/odradek-go/odradek/iq"
)

// question is a query, and what was known when it was asked.
type question struct {
	iq.Request
	since since // empty: no position is asked for
}

// acceptance is how a question accepts its answer to be.
func (q *question) acceptance() string {
	switch a := &q.Accept; {
	case len(a.Position) > 0:
		return "position"
	case a.Lag == iq.AnyLag:
		return "any copy"
	case a.Lag > 0 && a.Age > 0:
		return "lag and age"
	case a.Lag > 0:
		return "lag"
	case a.Age > 0:
		return "age"
	}
	return "active"
}

// draw makes up a question.
func (t *truth) draw(r *rand.Rand) (q question) {
	t.mu.RLock()
	key := t.names[r.IntN(len(t.names))]
	from, to := t.names[r.IntN(len(t.names))], t.names[r.IntN(len(t.names))]
	times := t.keys[key].times
	at := times[r.IntN(len(times))]
	t.mu.RUnlock()
	at -= at % windowSize.Milliseconds()

	q.Partition, q.Store = iq.AllPartitions, stores[r.IntN(len(stores))]
	windows := q.Store == windowsStore
	switch n := r.IntN(20); {
	case n < 15 && windows:
		q.Kind, q.Key, q.Earliest = iq.GetWindow, []byte(key), at
	case n < 15:
		q.Kind, q.Key = iq.Get, []byte(key)
	case n < 18 && windows:
		q.Kind, q.Key, q.Earliest, q.Latest = iq.Fetch, []byte(key), at-r.Int64N(20_000), iq.Forever
		if r.IntN(2) == 0 {
			q.Latest = at + r.Int64N(20_000)
		}
	case n < 18:
		q.Kind, q.Key = iq.Prefix, []byte(key[:len(key)-1])
	case windows:
		q.Kind, q.Earliest, q.Latest = iq.FetchRange, at, at+windowSize.Milliseconds()
	default:
		q.Kind = iq.Range
	}
	if q.Kind == iq.Range || q.Kind == iq.FetchRange {
		if r.IntN(2) == 0 {
			q.From = []byte(min(from, to))
		}
		if r.IntN(2) == 0 {
			q.To = []byte(max(from, to))
		}
	}
	if !isPoint(q.Kind) {
		q.Backward = r.IntN(2) == 0
		if r.IntN(3) == 0 {
			q.Limit = 1 + r.IntN(100)
		}
	}
	switch r.IntN(10) {
	case 0, 1:
		q.Accept.Lag = 1 + r.Int64N(200)
	case 2, 3:
		q.Accept.Age = time.Duration(1+r.IntN(3000)) * time.Millisecond
	case 4:
		q.Accept.Lag, q.Accept.Age = 1+r.Int64N(200), time.Duration(1+r.IntN(3000))*time.Millisecond
	case 5:
		q.Accept.Lag = iq.AnyLag
	case 6, 7:
		if q.Key != nil && q.Kind != iq.Prefix {
			q.askSince(t.of(key))
		} else {
			q.askSince(t.all())
		}
	}
	return q
}

func (q *question) askSince(s since) { q.since, q.Accept = s, iq.Accept{Position: s.position} }

// isPoint says whether a query is about one value.
func isPoint(k iq.Kind) bool { return k == iq.Get || k == iq.GetWindow }

func (q *question) String() string {
	s := fmt.Sprintf("%s %s key=%s from=%s to=%s earliest=%d latest=%d accepting %s %+v", q.Store, q.Kind, q.Key, q.From, q.To, q.Earliest, q.Latest, q.acceptance(), q.Accept)
	if q.Backward {
		s += " backward"
	}
	if q.Limit > 0 {
		s += fmt.Sprintf(" limit %d", q.Limit)
	}
	return s
}
