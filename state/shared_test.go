package state_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// TestSharedReaders: what one store writes, stores on other goroutines read, whole
// and in order, and can't write.
func TestSharedReaders(t *testing.T) {
	for _, name := range []string{"memory", "persistent"} {
		t.Run(name, func(t *testing.T) {
			open, ctx, done := engines[name]()
			defer done()
			var shared state.Shared
			writer := state.NewTimestampedKeyValue("global", serde.String, serde.String, shared.Writer(open))
			if err := writer.Open(ctx); err != nil {
				t.Fatal(err)
			}
			const keys = 1000
			var readers sync.WaitGroup
			for range 3 {
				readers.Go(func() {
					reader := state.NewTimestampedKeyValue("global", serde.String, serde.String, shared.Reader())
					if err := reader.Open(state.OpenContext{}); err != nil {
						t.Error(err)
						return
					}
					for seen := 0; seen < keys; {
						seen = 0
						it := reader.Range(state.Bounds[string]{}, state.Forward)
						for last := ""; it.Next(); last = it.Key() {
							if seen++; it.Key() <= last || it.Value() != "value of "+it.Key() {
								t.Errorf("after %q comes %q with %q", last, it.Key(), it.Value())
							}
						}
						v, timestamp, ok, err := reader.Get("0500")
						if ok && (v != "value of 0500" || timestamp != 500) || err != nil {
							t.Errorf("got %q at %d (%v)", v, timestamp, err)
						}
						if err := errors.Join(it.Err(), it.Close()); err != nil {
							t.Error(err)
							return
						}
					}
					if err := reader.Put("0", "", 0); !errors.Is(err, state.ErrReadOnly) {
						t.Errorf("a reader writes: %v", err)
					}
					if err := reader.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			for i := range keys {
				key := fmt.Sprintf("%04d", i)
				if err := writer.Put(key, "value of "+key, int64(i)); err != nil {
					t.Fatal(err)
				}
			}
			readers.Wait()
			if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			reader := state.NewTimestampedKeyValue("global", serde.String, serde.String, shared.Reader())
			if err := reader.Open(state.OpenContext{}); err != nil {
				t.Fatal(err)
			}
			if _, _, _, err := reader.Get("0500"); !errors.Is(err, state.ErrClosed) {
				t.Errorf("read after the end: %v", err)
			}
		})
	}
}

// TestSharedNote: what is noted is found again with the checkpoint that it went
// with, and the store's own note too.
func TestSharedNote(t *testing.T) {
	fs := vfs.NewMem()
	for i, want := range []string{"", "first", "second, longer"} {
		disk := smallDisk(fs)
		var shared state.Shared
		s := state.NewWindow("windows", serde.String, serde.String, state.WindowOptions{Size: 10, Retention: 1000}, shared.Writer(state.Persistent))
		if err := s.Open(state.OpenContext{Dir: "d", Disk: disk}); err != nil {
			t.Fatal(err)
		}
		if got := string(shared.Note()); got != want {
			t.Errorf("the note is %q, want %q", got, want)
		}
		shared.SetNote([]byte(map[string]string{"": "first", "first": "second, longer"}[want]))
		if err := errors.Join(s.Put("a", 5, "x", 7), s.Checkpoint(int64(i)), s.Close(), disk.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
