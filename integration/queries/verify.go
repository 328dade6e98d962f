package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/odradek-go/odradek/iq"
)

// verifier compares answers with the truth.
type verifier struct {
	*truth
	*changelogs
	exactly bool // once
}

// endsKnown is for how long instances take it as known where changelogs end.
const endsKnown = 250 * time.Millisecond

// answered says what is wrong with an answer that is no error.
func (v *verifier) answered(q *question, a *answer) error {
	v.truth.mu.RLock()
	defer v.truth.mu.RUnlock()
	if err := admitted(q, &a.meta); err != nil {
		return err
	}
	got := make(map[id]int64)
	for i := range a.rows {
		r := &a.rows[i]
		n, err := v.row(q, r)
		if err != nil {
			return fmt.Errorf("%s@%d: %w", r.key, r.start, err)
		}
		if _, ok := got[r.id]; ok {
			return fmt.Errorf("%s@%d comes twice", r.key, r.start)
		}
		got[r.id] = n
		if i > 0 && !inOrder(q, &a.rows[i-1], r) {
			return fmt.Errorf("%s@%d comes after %s@%d", r.key, r.start, a.rows[i-1].key, a.rows[i-1].start)
		}
	}
	if q.Limit > 0 && len(a.rows) > q.Limit {
		return fmt.Errorf("%d entries", len(a.rows))
	}
	return v.complete(q, a, got)
}

// admitted says whether an answer comes from where the question accepts it from.
func admitted(q *question, m *iq.Meta) error {
	accepts := &q.Accept
	switch {
	case m.Host == "":
		return errors.New("it doesn't say where it comes from")
	case m.Active:
	case accepts.Lag == 0 && accepts.Age == 0:
		return errors.New("it comes from a copy")
	case accepts.Lag > 0 && (m.Lag < 0 || m.Lag > accepts.Lag), accepts.Age > 0 && (m.Age < 0 || m.Age > accepts.Age):
		return fmt.Errorf("the copy is %d records and %v behind", m.Lag, m.Age)
	}
	return nil
}

// row checks an entry by itself, and returns its number.
func (v *verifier) row(q *question, r *row) (n int64, err error) {
	h := v.keys[r.key]
	if h == nil {
		return 0, errors.New("nobody has written that key")
	}
	if n = r.number; q.Store == latestStore {
		if n, err = number(r.key, r.value); err != nil {
			return 0, err
		}
	}
	if !asksFor(q, r.id) || q.Partition >= 0 && h.partition != q.Partition {
		return 0, errors.New("nobody has asked for that")
	}
	if !v.exactly && q.Store != latestStore { // may be counted again
		return n, nil
	}
	if most := h.expected(q.Store, r.id, len(h.times)); n < 1 || n > most {
		return 0, fmt.Errorf("it is %d, when %d are written", n, most)
	}
	if at := h.timeOf(q.Store, r.id, n); r.timestamp != at {
		return 0, fmt.Errorf("number %d is of %d, not of %d", n, at, r.timestamp)
	}
	return n, nil
}

// asksFor says whether a question is about an id.
func asksFor(q *question, of id) bool {
	switch q.Kind {
	case iq.Get, iq.GetWindow, iq.Fetch:
		if of.key != string(q.Key) {
			return false
		}
	case iq.Prefix:
		return strings.HasPrefix(of.key, string(q.Key))
	case iq.Range, iq.FetchRange:
		if q.From != nil && of.key < string(q.From) || q.To != nil && of.key > string(q.To) {
			return false
		}
	}
	switch q.Kind {
	case iq.GetWindow:
		return of.start == q.Earliest
	case iq.Fetch, iq.FetchRange:
		return of.start >= q.Earliest && of.start <= q.Latest && of.start%windowSize.Milliseconds() == 0
	}
	return true
}

// inOrder says whether b may come after a.
func inOrder(q *question, a, b *row) bool {
	switch q.Kind {
	case iq.Range, iq.Prefix:
		return a.key < b.key != q.Backward
	case iq.Fetch:
		return a.start < b.start != q.Backward
	}
	return true
}

// complete says what is missing, or is too old.
func (v *verifier) complete(q *question, a *answer, got map[id]int64) error {
	if q.Limit > 0 && len(a.rows) == q.Limit && q.Kind == iq.FetchRange {
		return nil // which is in an order that we don't know
	}
	keys := v.names
	if q.Key != nil && q.Kind != iq.Prefix {
		keys = []string{string(q.Key)}
	}
	for _, key := range keys {
		h := v.keys[key]
		if q.Partition >= 0 && h.partition != q.Partition {
			continue
		}
		for _, of := range h.ids(q.Store, key) {
			if !asksFor(q, of) {
				continue
			}
			if q.Limit > 0 && len(a.rows) == q.Limit && inOrder(q, &a.rows[q.Limit-1], &row{id: of}) {
				continue
			}
			if n, least := got[of], v.least(q, a, h, of); n < least {
				return fmt.Errorf("%s@%d: it is %d, and must be %d at least", of.key, of.start, n, least)
			}
		}
	}
	return nil
}

// least is the least number of an id that a question accepts.
func (v *verifier) least(q *question, a *answer, h *history, of id) (n int64) {
	if seen := q.since.records[of.key]; seen > 0 {
		n = h.expected(q.Store, of, seen)
	}
	if !v.exactly {
		return n
	}
	truth := func(at time.Time, behind int64) { n = max(n, v.number(q.Store, h.partition, of, at, behind)) }
	accepts := &q.Accept
	if accepts.Lag == 0 && accepts.Age == 0 || a.meta.Active && q.Key != nil && q.Kind != iq.Prefix {
		truth(a.began, 0)
		return n
	}
	if accepts.Age > 0 {
		truth(a.began.Add(-accepts.Age), 0)
	}
	if accepts.Lag > 0 {
		truth(a.began.Add(-endsKnown), accepts.Lag)
	}
	return n
}

// kinds are the errors that a query may have while faults are made.
var kinds = []struct {
	err  error
	code string // in what people get
	name string
}{
	{iq.ErrNotRunning, "NOT_RUNNING", "not running"},
	{iq.ErrNotReady, "NOT_READY", "not ready"},
	{iq.ErrMigrated, "MIGRATED", "migrated"},
	{iq.ErrTooStale, "TOO_STALE", "too stale"},
	{iq.ErrBehind, "BEHIND", "behind"},
	{iq.ErrUnreachable, "UNREACHABLE", "unreachable"},
	{iq.ErrInterrupted, "INTERRUPTED", "interrupted"},
	{errNoAnswer, "", "no answer to curl"},
}

// failed says of which kind an error is, or what is wrong with it.
func failed(err error) (kind string, wrong error) {
	refused := (*refusal)(nil)
	errors.As(err, &refused)
	for _, k := range kinds {
		if errors.Is(err, k.err) || refused != nil && refused.Code == k.code {
			return k.name, nil
		}
	}
	return "", fmt.Errorf("an error of a kind that must not be: %w", err)
}
