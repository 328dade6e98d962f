package simulation

import (
	"fmt"
	"testing"
	"time"
)

// crowd is a group of so many members, ten to a process, with a task for each, at a broker's default settings.
func crowd(members int) *Schedule {
	plan := &Schedule{
		Seed: 1, Stateful: members / 2, Stateless: members - members/2,
		Interval: 5 * time.Second, OtherInterval: 5 * time.Second, SessionTimeout: 45 * time.Second,
		InitialDelay: 3 * time.Second, AssignmentInterval: time.Second, OffsetInterval: time.Minute,
		RequestTimeout: 30 * time.Second, RebalanceTimeout: 5 * time.Minute,
		MaxReconcile: 200 * time.Millisecond, MaxLatency: 20 * time.Millisecond,
	}
	for range members / 10 {
		plan.Slots = append(plan.Slots, SlotPlan{Threads: 10})
	}
	return plan
}

// BenchmarkSettle starts a whole group at once, and measures what it takes until every task is processed.
func BenchmarkSettle(b *testing.B) {
	for _, members := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			for b.Loop() {
				result, err := Run(crowd(members), 0)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(result.Members), "members")
				b.ReportMetric(result.Settled.Seconds(), "simulated-s")
				b.ReportMetric(float64(result.Heartbeats), "heartbeats")
			}
		})
	}
}
