package state_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// discard is a changelog that keeps nothing.
type discard struct{}

func (discard) Append([]byte, []byte, int64, []state.Header) error { return nil }

const benchKeys = 100_000

func benchStore(b *testing.B, engine string, cached bool) *state.TimestampedKeyValue[int64, int64] {
	ctx := state.OpenContext{Dir: b.TempDir(), Changelog: discard{}}
	open := state.OpenEngine(state.Memory)
	if engine == "persistent" {
		open = state.Persistent
		ctx.Disk = state.NewDisk(state.DiskOptions{})
	}
	s := state.NewTimestampedKeyValue("s", serde.Int64, serde.Int64, open)
	if cached {
		s.EnableCache()
		ctx.Cache = state.NewCache(10 << 20)
	}
	must(b, s.Open(ctx))
	b.Cleanup(func() {
		must(b, s.Close())
		if ctx.Disk != nil {
			must(b, ctx.Disk.Close())
		}
	})
	for k := range int64(benchKeys) {
		must(b, s.Put(k, k, k))
	}
	must(b, errors.Join(s.Flush(), s.Checkpoint(1)))
	return s
}

// BenchmarkCount is what counting does for each record, with a commit for each
// ten thousand.
func BenchmarkCount(b *testing.B) {
	for _, engine := range []string{"memory", "persistent"} {
		for _, cached := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/cached=%v", engine, cached), func(b *testing.B) {
				s := benchStore(b, engine, cached)
				rng := rand.New(rand.NewPCG(1, 2))
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					k := rng.Int64N(benchKeys)
					v, ts, _, err := s.Get(k)
					if err == nil {
						err = s.Put(k, v+1, ts+1)
					}
					if err == nil && n%10_000 == 0 {
						err = errors.Join(s.Flush(), s.Checkpoint(int64(n)))
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for _, engine := range []string{"memory", "persistent"} {
		b.Run(engine, func(b *testing.B) {
			s := benchStore(b, engine, false)
			rng := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, ok, err := s.Get(rng.Int64N(benchKeys)); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// BenchmarkRestore restores records with values of 100 bytes.
func BenchmarkRestore(b *testing.B) {
	for _, engine := range []string{"memory", "persistent"} {
		b.Run(engine, func(b *testing.B) {
			s := benchStore(b, engine, false)
			rng := rand.New(rand.NewPCG(1, 2))
			key, value := make([]byte, 8), make([]byte, 100)
			must(b, s.BulkLoad(true))
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				binary.BigEndian.PutUint64(key, rng.Uint64N(5_000_000))
				binary.BigEndian.PutUint64(value, rng.Uint64())
				err := s.Restore(key, value, 1)
				if err == nil && n%10_000 == 0 {
					err = s.Checkpoint(int64(n))
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFetch is what a join does for each record: a put and a fetch of one
// key's windows.
func BenchmarkFetch(b *testing.B) {
	for _, engine := range []string{"memory", "persistent"} {
		b.Run(engine, func(b *testing.B) {
			open := state.OpenEngine(state.Memory)
			if engine == "persistent" {
				open = state.Persistent
			}
			s := state.NewWindow("s", serde.Int64, serde.Int64, state.WindowOptions{Size: 1e9, Retention: 600e9, RetainDuplicates: true}, open)
			must(b, s.Open(state.OpenContext{Dir: b.TempDir(), Changelog: discard{}}))
			rng := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for now := int64(0); b.Loop(); now++ {
				k := rng.Int64N(1000)
				err := s.Put(k, now, now, now)
				it := s.Fetch(k, now-1000, now, state.Forward)
				for it.Next() {
				}
				err = errors.Join(err, it.Err(), it.Close())
				if now%10_000 == 0 {
					err = errors.Join(err, s.Checkpoint(now))
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			must(b, s.Close())
		})
	}
}
