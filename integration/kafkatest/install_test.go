//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package kafkatest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestBuildHappensOnceAndWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "built")
	var fills atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			err := build(t.Context(), dir, func(temp string) error {
				fills.Add(1)
				for _, name := range []string{"a", "b"} {
					if err := os.WriteFile(filepath.Join(temp, name), nil, 0o644); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if entries, err := os.ReadDir(dir); len(entries) != 2 {
				t.Errorf("found %v, %v; want both files", entries, err)
			}
		})
	}
	group.Wait()
	if got := fills.Load(); got != 1 {
		t.Errorf("built %d times, want once", got)
	}
}

func TestBuildFailureLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "built")
	broken := errors.New("broken")
	if err := build(t.Context(), dir, func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error is %v, want %v", err, broken)
	}
	if left, err := filepath.Glob(filepath.Join(parent, "*built*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := build(t.Context(), dir, func(string) error { return nil }); err != nil {
		t.Errorf("building after a failure: %v", err)
	}
}

func TestBuildWaitsNoLongerThanItsContext(t *testing.T) {
	parent := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	err := build(t.Context(), filepath.Join(parent, "slow"), func(string) error {
		cancel()
		return build(ctx, filepath.Join(parent, "other"), func(string) error { return nil })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
}
