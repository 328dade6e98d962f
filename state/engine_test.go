package state_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/state"
)

// engines are the ways to open an engine. The persistent one writes to its files
// often and lives in a file system in memory.
var engines = map[string]func() (state.OpenEngine, state.OpenContext, func() error){
	"memory": func() (state.OpenEngine, state.OpenContext, func() error) {
		return state.Memory, state.OpenContext{}, func() error { return nil }
	},
	"least recently used": func() (state.OpenEngine, state.OpenContext, func() error) {
		return state.LRU(1 << 30), state.OpenContext{}, func() error { return nil }
	},
	"persistent, in memory": func() (state.OpenEngine, state.OpenContext, func() error) {
		disk := state.NewDisk(state.DiskOptions{InMemory: true})
		return state.Persistent, state.OpenContext{Dir: "task/store", Disk: disk}, disk.Close
	},
	"persistent": func() (state.OpenEngine, state.OpenContext, func() error) {
		disk := smallDisk(vfs.NewMem())
		return state.Persistent, state.OpenContext{Dir: "task/store", Disk: disk}, disk.Close
	},
}

func smallDisk(fs vfs.FS) *state.Disk {
	return state.NewDisk(state.DiskOptions{BlockCache: 1 << 20, WriteBuffer: 64 << 10, LoadBuffer: 32 << 10, MaxOpenFiles: 100, FS: fs})
}

// modelEngine is what an engine must be like.
type modelEngine struct {
	entries map[string]string
	floor   string // before which nothing is used any more
}

func (m *modelEngine) scan(from, to []byte, order state.Order) []string {
	var keys []string
	for k := range m.entries {
		if (from == nil || k >= string(from)) && (to == nil || k < string(to)) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	if order == state.Backward {
		slices.Reverse(keys)
	}
	for i, k := range keys {
		keys[i] = k + "=" + m.entries[k]
	}
	return keys
}

func scanned(t *rapid.T, it state.Iterator) []string {
	var got []string
	for it.Next() {
		got = append(got, string(it.Key())+"="+string(it.Value()))
	}
	if it.Next() {
		t.Fatal("an iterator goes on after its end")
	}
	if err := errors.Join(it.Err(), it.Close(), it.Close()); err != nil {
		t.Fatal(err)
	}
	return got
}

// TestEngineModel runs random operations against an engine and a plain map.
func TestEngineModel(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				openEngine, ctx, end := open()
				e, err := openEngine(ctx)
				if err != nil {
					t.Fatal(err)
				}
				checkEngine(t, &e, func() (state.Engine, error) { return openEngine(ctx) }, name == "persistent")
				if err := errors.Join(e.Close(), end()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func checkEngine(t *rapid.T, at *state.Engine, reopen func() (state.Engine, error), persistent bool) {
	model := modelEngine{entries: make(map[string]string)}
	saved, offset, dirty := map[string]string{}, int64(0), false
	key := rapid.SliceOfN(rapid.ByteRange('a', 'd'), 0, 3)
	bound := rapid.OneOf(rapid.Just([]byte(nil)), key)
	value := rapid.SliceOfN(rapid.Byte(), 0, 5)
	if persistent {
		value = rapid.OneOf(value, rapid.Just(bytes.Repeat([]byte("x"), 30_000)))
	}
	t.Repeat(map[string]func(*rapid.T){
		"put": func(t *rapid.T) {
			k, v := key.Draw(t, "key"), append([]byte{}, value.Draw(t, "value")...)
			if string(k) < model.floor {
				t.Skip("too late")
			}
			dirty = true
			if err := (*at).Put(k, v); err != nil {
				t.Fatal(err)
			}
			model.entries[string(k)] = string(v)
			clear(v) // the engine must have a copy
		},
		"delete": func(t *rapid.T) {
			k := key.Draw(t, "key")
			if string(k) < model.floor {
				t.Skip("too late")
			}
			dirty = true
			if err := (*at).Put(k, nil); err != nil {
				t.Fatal(err)
			}
			delete(model.entries, string(k))
		},
		"drop": func(t *rapid.T) {
			k := key.Draw(t, "key")
			if string(k) < model.floor {
				t.Skip("too late")
			}
			dirty = true
			if err := (*at).DropBefore(k); err != nil {
				t.Fatal(err)
			}
			model.floor = string(k)
			maps.DeleteFunc(model.entries, func(have, _ string) bool { return have < model.floor })
		},
		"get": func(t *rapid.T) {
			k := key.Draw(t, "key")
			if string(k) < model.floor {
				t.Skip("too late")
			}
			got, err := (*at).Get(k)
			want, ok := model.entries[string(k)]
			if err != nil || (got != nil) != ok || string(got) != want {
				t.Fatalf("get %q: %q, %v; want %q, %v", k, got, err, want, ok)
			}
		},
		"scan": func(t *rapid.T) {
			from, to := bound.Draw(t, "from"), bound.Draw(t, "to")
			order := state.Order(rapid.Bool().Draw(t, "backward"))
			from = []byte(max(string(from), model.floor))
			if got, want := scanned(t, (*at).Scan(from, to, order)), model.scan(from, to, order); !slices.Equal(got, want) {
				t.Fatalf("scan %q to %q, backward %v: %q, want %q", from, to, order, got, want)
			}
		},
		"write under an iterator": func(t *rapid.T) {
			it := (*at).Scan([]byte(model.floor), nil, state.Forward)
			for n := 0; it.Next(); n++ {
				if k, v := string(it.Key()), string(it.Value()); model.entries[k] != v {
					t.Fatalf("walked over %q=%q, want %q", k, v, model.entries[k])
				}
				if n%2 == 0 {
					dirty = true
					k := bytes.Clone(it.Key())
					if err := (*at).Put(k, nil); err != nil {
						t.Fatal(err)
					}
					delete(model.entries, string(k))
				}
			}
			if err := errors.Join(it.Err(), it.Close()); err != nil {
				t.Fatal(err)
			}
		},
		"bulk load": func(t *rapid.T) {
			on := rapid.Bool().Draw(t, "on")
			if e, ok := (*at).(state.BulkLoader); ok {
				if err := e.BulkLoad(on); err != nil {
					t.Fatal(err)
				}
			}
		},
		"checkpoint": func(t *rapid.T) {
			offset++
			if err := (*at).Checkpoint(state.Checkpoint{Offset: offset, Note: []byte(model.floor)}); err != nil {
				t.Fatal(err)
			}
			saved, dirty = maps.Clone(model.entries), false
		},
		"reopen": func(t *rapid.T) {
			if !persistent {
				t.Skip("nothing to find")
			}
			err := (*at).Close()
			if err == nil {
				*at, err = reopen()
			}
			if err != nil {
				t.Fatal(err)
			}
			c, ok := (*at).Checkpointed()
			switch {
			case ok && c.Offset > offset, ok && !dirty && c.Offset != offset:
				t.Fatalf("found the checkpoint %d after %d", c.Offset, offset)
			case ok && c.Offset == offset:
				model = modelEngine{maps.Clone(saved), string(c.Note)}
			default: // an earlier one, or none: only restoring goes on from there
				entries := scanned(t, (*at).Scan(c.Note, nil, state.Forward))
				if !ok && len(entries) > 0 {
					t.Fatalf("there is no checkpoint but %q", entries)
				}
				model = modelEngine{make(map[string]string), string(c.Note)}
				for _, e := range entries {
					k, v, _ := bytes.Cut([]byte(e), []byte("="))
					model.entries[string(k)] = string(v)
				}
			}
			saved, offset, dirty = maps.Clone(model.entries), c.Offset, false
			if !ok {
				offset = 0
			}
		},
		"": func(t *rapid.T) {
			if n, err := (*at).Len(); err != nil || !persistent && n != len(model.entries) {
				t.Fatalf("%d keys (%v), want %d", n, err, len(model.entries))
			}
		},
	})
}
