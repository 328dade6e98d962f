package state_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// large has TestLargeStore make a store of so many GB.
var large = flag.Int("large", 0, "make TestLargeStore write a store of so many GB, and see what memory it takes")

// TestLargeStore: however large a store on disk is, the memory that it takes is that
// of its caches.
func TestLargeStore(t *testing.T) {
	if *large == 0 {
		t.Skip("give -large=10 for a store of 10 GB")
	}
	s := state.NewTimestampedKeyValue("s", serde.Int64, serde.Bytes, state.Persistent)
	must(t, s.Open(state.OpenContext{Dir: t.TempDir(), Changelog: discard{}}))
	const size = 1000
	entries := int64(*large) * (1 << 30) / size
	rng := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, size)
	for n := range entries {
		for i := 0; i < size; i += 8 {
			binary.LittleEndian.PutUint64(value[i:], rng.Uint64()) // which can't be compressed
		}
		must(t, s.Put(n*2654435761%entries, value, n))
		if n%10_000 == 0 {
			must(t, s.Checkpoint(n))
		}
	}
	must(t, s.Checkpoint(entries))
	for range 100_000 {
		if _, _, ok, err := s.Get(rng.Int64N(entries)); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	peak := peakMemory(t)
	t.Logf("a store of %d GB took at most %d MB of memory", *large, peak>>20)
	if limit := int64(512 << 20); peak > limit {
		t.Errorf("it took %d MB, more than %d", peak>>20, limit>>20)
	}
	must(t, s.Close())
}

// peakMemory is the most memory that the process has had, on Linux.
func peakMemory(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(status)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	t.Fatal("the system does not say")
	return 0
}
