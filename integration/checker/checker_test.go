package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streams"
)

func TestMain(m *testing.M) {
	if isChild() {
		if err := runChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestChecker is a short check of both guarantees.
func TestChecker(t *testing.T) {
	kafkatest.Require(t)
	for _, guarantee := range []streams.ProcessingGuarantee{streams.ExactlyOnceV2, streams.AtLeastOnce} {
		t.Run(guarantee.String(), func(t *testing.T) {
			err := check(t.Context(), options{
				records: 20_000, faults: 15, keys: 200, processes: 2, guarantee: guarantee, seed: 1, say: t.Logf,
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
