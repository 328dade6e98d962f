package simulation

import (
	"flag"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seed  = flag.Uint64("simulation.seed", 0, "run the schedule of this `seed` only, with a transcript")
	first = flag.Uint64("simulation.first", 1, "the first `seed`")
	count = flag.Int("simulation.count", 0, "how many schedules to run; 0: as many as the kind of run allows")
)

var transcriptLines = flag.Int("simulation.lines", 150, "how many lines of a failing schedule to keep")

func schedules() int {
	switch {
	case *count > 0:
		return *count
	case testing.Short(), raceEnabled:
		return 500
	}
	return 10_000
}

// TestSchedules runs random groups through random faults. Whatever happens, no task is processed twice, nothing is
// acknowledged that isn't owned, nothing is retried hot; and in the end the group settles and each task is processed.
func TestSchedules(t *testing.T) {
	if *seed != 0 {
		result, err := Run(Draw(*seed), *transcriptLines)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", result)
		return
	}
	var next, failed atomic.Uint64
	var mu sync.Mutex
	var total Result
	end := *first + uint64(schedules())
	next.Store(*first)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= end || failed.Load() >= 3 {
					return
				}
				result, err := Run(Draw(seed), 0)
				if err != nil {
					failed.Add(1)
					if _, again := Run(Draw(seed), *transcriptLines); again != nil {
						err = again
					}
					t.Error(err)
				}
				mu.Lock()
				total.Events += result.Events
				total.Heartbeats += result.Heartbeats
				total.Settled = max(total.Settled, result.Settled)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	t.Logf("%d events and %d heartbeats; the slowest group settled in %v", total.Events, total.Heartbeats, total.Settled)
}
