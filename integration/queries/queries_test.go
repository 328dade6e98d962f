package main

import (
	"os"
	"testing"
	"time"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streams"
)

func TestMain(m *testing.M) {
	kafkatest.BeChild(runChild)
	os.Exit(m.Run())
}

// TestQueries is a short check.
func TestQueries(t *testing.T) {
	kafkatest.Require(t)
	if err := check(t.Context(), options{
		duration: 30 * time.Second, rate: 200, keys: 200, askers: 8, guarantee: streams.ExactlyOnceV2, seed: 1, say: t.Logf,
	}); err != nil {
		t.Error(err)
	}
}
