package main

import (
	"os"
	"testing"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streams"
)

func TestMain(m *testing.M) {
	kafkatest.BeChild(runChild)
	os.Exit(m.Run())
}

// TestChecker is a short check of both guarantees, and of stores with caches.
func TestChecker(t *testing.T) {
	kafkatest.Require(t)
	for name, o := range map[string]options{
		"exactly once":             {guarantee: streams.ExactlyOnceV2, seed: 1},
		"exactly once with caches": {guarantee: streams.ExactlyOnceV2, cache: true, seed: 2},
		"at least once":            {guarantee: streams.AtLeastOnce, seed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o.records, o.faults, o.keys, o.processes, o.say = 20_000, 15, 200, 2, t.Logf
			if err := check(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
}
