package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// TestCrash cuts a store off at random moments, with all or some or none of what
// was not synced. It must be found at one of its checkpoints, and be equal to
// what the changelog had then.
func TestCrash(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			fs := vfs.NewCrashableMem()
			log := &changelog{}
			for range 5 {
				disk := smallDisk(fs)
				ctx := state.OpenContext{Dir: "s", Disk: disk, Changelog: log}
				s := state.NewTimestampedKeyValue("s", serde.String, serde.Bytes, state.Persistent)
				must(t, s.Open(ctx))
				checkFound(t, s, log)
				for range rng.IntN(400) {
					if rng.IntN(30) == 0 {
						must(t, s.BulkLoad(rng.IntN(2) == 0))
					}
					key := fmt.Sprint(rng.IntN(50))
					if rng.IntN(5) == 0 {
						must(t, s.Delete(key, 1))
					} else {
						must(t, s.Put(key, bytes.Repeat([]byte{byte(rng.Int())}, rng.IntN(2000)), rng.Int64()))
					}
					if rng.IntN(20) == 0 {
						must(t, s.Flush())
						must(t, s.Checkpoint(int64(len(log.records))))
					}
				}
				fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(3) * 50, RNG: rng})
				must(t, errors.Join(s.Close(), disk.Close()))
			}
		})
	}
}

// checkFound compares a store as it was opened with the beginning of the
// changelog, and then has it restored from the rest.
func checkFound(t *testing.T, s *state.TimestampedKeyValue[string, []byte], log *changelog) {
	t.Helper()
	from, ok := s.Checkpointed()
	if !ok {
		from = 0
	}
	compare := func(records []logged) {
		t.Helper()
		like := state.NewTimestampedKeyValue("s", serde.String, serde.Bytes, state.Memory)
		(&changelog{records: records}).restore(t, like, state.OpenContext{})
		if got, want := dump(t, s), dump(t, like); !slices.Equal(got, want) {
			t.Fatalf("after %d records the store has\n%.300q\nwant\n%.300q", len(records), got, want)
		}
	}
	compare(log.records[:from])
	for _, r := range log.records[from:] {
		key, value := r.bytes()
		must(t, s.Restore(key, value, r.timestamp))
	}
	compare(log.records)
}

func dump(t *testing.T, s *state.TimestampedKeyValue[string, []byte]) (all []string) {
	must(t, s.All(func(k string, v []byte, ts int64) bool {
		all = append(all, fmt.Sprintf("%s=%x@%d", k, v, ts))
		return true
	}))
	return all
}

// TestDiskFull fails every write from some point on. The store must say so and
// end, and go on from a checkpoint when there is room again.
func TestDiskFull(t *testing.T) {
	for _, after := range []int64{0, 20, 200} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			mem := vfs.NewMem()
			var full atomic.Bool
			var writes atomic.Int64
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && full.Load() && writes.Add(1) > after {
					return syscall.ENOSPC
				}
				return nil
			}))
			disk := smallDisk(fs)
			log := &changelog{}
			ctx := state.OpenContext{Dir: "s", Disk: disk, Changelog: log}
			s := state.NewTimestampedKeyValue("s", serde.String, serde.Bytes, state.Persistent)
			must(t, s.Open(ctx))
			fill := func() error {
				for i := range 3000 {
					if err := s.Put(fmt.Sprint(i%1000), bytes.Repeat([]byte{byte(i)}, 1000), int64(i)); err != nil {
						return err
					}
					if i%100 == 0 {
						if err := s.Checkpoint(int64(len(log.records))); err != nil {
							return err
						}
					}
				}
				return nil
			}
			must(t, fill())
			must(t, s.BulkLoad(after == 20))
			full.Store(true)
			err := errors.Join(fill(), fill(), s.Close())
			var de *state.DiskError
			if !errors.Is(err, state.ErrDiskFull) || !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &de) || de.Dir != "s" {
				t.Fatalf("the disk is full: %v", err)
			}
			full.Store(false)
			must(t, s.Open(ctx))
			checkFound(t, s, log)
			must(t, fill())
			must(t, errors.Join(s.Close(), disk.Close()))
		})
	}
}

// TestCorrupt damages each kind of file in turn.
func TestCorrupt(t *testing.T) {
	for _, kind := range []string{".sst", "MANIFEST", "OPTIONS", "marker.manifest"} {
		for name, damage := range map[string]func(vfs.FS, string) error{
			"removed":   func(fs vfs.FS, path string) error { return fs.Remove(path) },
			"garbled":   garble,
			"truncated": truncate,
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				fs := vfs.NewMem()
				disk := smallDisk(fs)
				ctx := state.OpenContext{Dir: "s", Disk: disk, Changelog: &changelog{}}
				s := state.NewKeyValue("s", serde.String, serde.Bytes, state.Persistent)
				must(t, s.Open(ctx))
				for i := range 1000 {
					must(t, s.Put(fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, 100), 1))
				}
				must(t, s.Checkpoint(1000))
				must(t, s.Close())
				must(t, disk.Close())

				names, err := fs.List("s")
				must(t, err)
				for _, file := range names {
					if strings.Contains(file, kind) {
						must(t, damage(fs, fs.PathJoin("s", file)))
					}
				}
				disk = smallDisk(fs) // with nothing in its cache
				ctx.Disk = disk
				err = s.Open(ctx)
				if err == nil {
					n := 0
					it := s.Range(state.Bounds[string]{}, state.Forward)
					for it.Next() {
						n++
					}
					_, ok := s.Checkpointed()
					err = errors.Join(it.Err(), it.Close(), s.Close())
					if err == nil && n != 1000 && (n > 0 || ok) {
						t.Errorf("%d entries were found, and nothing wrong", n)
					}
				}
				var de *state.DiskError
				if err != nil && (!errors.Is(err, state.ErrCorrupt) || !errors.As(err, &de) || de.Dir != "s") {
					t.Errorf("not said to be corrupt: %v", err)
				}
				ctx.Fresh = true // as after the directory was deleted
				must(t, s.Open(ctx))
				if n, err := s.Len(); n != 0 || err != nil {
					t.Errorf("%d entries (%v) in a fresh store", n, err)
				}
				must(t, errors.Join(s.Close(), disk.Close()))
			})
		}
	}
}

func garble(fs vfs.FS, path string) error {
	return rewrite(fs, path, func(b []byte) []byte {
		for i := range b {
			b[i] ^= 0x55
		}
		return b
	})
}

func truncate(fs vfs.FS, path string) error {
	return rewrite(fs, path, func(b []byte) []byte { return b[:len(b)/2] })
}

func rewrite(fs vfs.FS, path string, change func([]byte) []byte) error {
	f, err := fs.Open(path)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	f, err = fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(change(data))
	return errors.Join(err, f.Close())
}

func TestLockedDirectory(t *testing.T) {
	disk := state.NewDisk(state.DiskOptions{})
	ctx := state.OpenContext{Dir: t.TempDir(), Disk: disk}
	a := state.NewKeyValue("a", serde.String, serde.String, state.Persistent)
	b := state.NewKeyValue("s", serde.String, serde.String, state.Persistent)
	must(t, a.Open(ctx))
	if err := b.Open(ctx); !isErr(err, state.ErrLocked) {
		t.Errorf("opened a directory that is in use: %v", err)
	}
	must(t, a.Put("k", "v", 1))
	must(t, a.Flush()) // it isn't logged: nothing else tells what it has
	must(t, a.Close())
	must(t, b.Open(ctx))
	if v, ok, err := b.Get("k"); v != "v" || !ok || err != nil {
		t.Errorf("found %q, %v, %v", v, ok, err)
	}
	must(t, errors.Join(b.Close(), disk.Close()))

	own := state.NewKeyValue("own", serde.String, serde.String, state.Persistent)
	must(t, own.Open(state.OpenContext{Dir: ctx.Dir})) // with a Disk of its own
	must(t, own.Close())
}

// TestCrashOfFewKeys checks that a store whose few keys change all the time is
// not found far behind its changelog.
func TestCrashOfFewKeys(t *testing.T) {
	fs := vfs.NewCrashableMem()
	disk := smallDisk(fs)
	ctx := state.OpenContext{Dir: "s", Disk: disk, Changelog: &changelog{}}
	s := state.NewKeyValue("s", serde.String, serde.Int64, state.Persistent)
	must(t, s.Open(ctx))
	const changes, size = 50_000, 100 // about what one counts for
	for i := range int64(changes) {
		must(t, s.Put(fmt.Sprint(i%10), i, i))
		if i%100 == 0 {
			must(t, s.Checkpoint(i))
		}
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	must(t, errors.Join(s.Close(), disk.Close()))

	disk = smallDisk(crashed)
	ctx.Disk = disk
	must(t, s.Open(ctx))
	if from, ok := s.Checkpointed(); !ok || changes-from > 10*(64<<10)/size {
		t.Errorf("found at %d of %d, %v", from, changes, ok)
	}
	must(t, errors.Join(s.Close(), disk.Close()))
}
