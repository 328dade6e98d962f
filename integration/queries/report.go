package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// tally is what came of the questions that were asked in one way.
type tally struct {
	queries, requests, forwards, copies int
	errors                              map[string]int
	accepted                            map[string]int
	took                                []time.Duration
}

func (t *tally) add(q *question, a *answer, kind string) {
	t.queries++
	t.requests += a.requests
	t.took = append(t.took, a.ended.Sub(a.began))
	t.accepted[q.acceptance()]++
	switch {
	case kind != "":
		t.errors[kind]++
		return
	case !a.meta.Active:
		t.copies++
	}
	if a.meta.Host != a.asked {
		t.forwards++
	}
}

func newTally() *tally { return &tally{errors: make(map[string]int), accepted: make(map[string]int)} }

// quantile is what so many of 1000 took at most; took is sorted.
func (t *tally) quantile(of int) time.Duration {
	if len(t.took) == 0 {
		return 0
	}
	return t.took[(len(t.took)-1)*of/1000].Round(100 * time.Microsecond)
}

func counted(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprint(of[name], " ", name))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// report says what was done and what came of it.
func (l *load) report(took time.Duration) {
	l.results.Lock()
	defer l.results.Unlock()
	faults := 0
	for _, name := range slices.Sorted(maps.Keys(l.breaker.made)) {
		l.say("%5d  %s", l.breaker.made[name], name)
		faults += l.breaker.made[name]
	}
	queries, failures := 0, 0
	for _, way := range slices.Sorted(maps.Keys(l.tallies)) {
		t := l.tallies[way]
		slices.Sort(t.took)
		l.say("%d queries by way of %s: %d retries, %d forwarded, %d answered by copies, p50 %v, p99 %v, max %v",
			t.queries, way, t.requests-t.queries, t.forwards, t.copies, t.quantile(500), t.quantile(990), t.quantile(1000))
		l.say("       accepting %s", counted(t.accepted))
		l.say("       errors: %s", counted(t.errors))
		queries += t.queries
		for _, n := range t.errors {
			failures += n
		}
	}
	l.say("%d faults made, %d records written, %d queries, %d without an answer, %d wrong, in %v",
		faults, l.truth.acked, queries, failures, l.wrongs, took.Round(time.Second))
}
