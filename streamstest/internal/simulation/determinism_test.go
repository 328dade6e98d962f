package simulation

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSameSeedSameEvents: a seed says all there is to a schedule, or it could not be replayed.
func TestSameSeedSameEvents(t *testing.T) {
	for seed := uint64(1); seed <= 100; seed++ {
		var before []string
		for range 2 {
			s := newSim(Draw(seed), 1000)
			s.run()
			if after := s.transcript.all(); before == nil {
				before = after
			} else if !slices.Equal(before, after) {
				i := 0
				for i < min(len(before), len(after)) && before[i] == after[i] {
					i++
				}
				t.Fatalf("schedule %d goes another way from the line %d of %d: %q", seed, i, len(before), after[i:min(i+3, len(after))])
			}
		}
	}
}

func TestQueueOrdersEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type stamp struct {
			at time.Duration
			n  int
		}
		var q queue
		var want, got []stamp
		n := 0
		pop := func() {
			e := q.pop()
			e.do()
			if last := got[len(got)-1]; last.at != e.at {
				t.Fatalf("event of %v at %v", last.at, e.at)
			}
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if len(q.events) > 0 && rapid.Bool().Draw(t, "pop") {
				// Logical time goes on: nothing is planned for before what has happened.
				slices.SortStableFunc(want, func(a, b stamp) int { return int(a.at - b.at) })
				pop()
				if got[len(got)-1] != want[0] {
					t.Fatalf("got %v, want %v", got[len(got)-1], want[0])
				}
				want = want[1:]
				continue
			}
			s := stamp{time.Duration(rapid.IntRange(0, 9).Draw(t, "at")), n}
			n++
			want = append(want, s)
			q.push(s.at, func() { got = append(got, s) })
		}
	})
}
