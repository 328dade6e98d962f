package state_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// headered is a store with headers in the eyes of these tests, of one key.
type headered interface {
	state.HeaderRestorer
	state.Viewable
	EnableCache()
	put(v string, headers []state.Header) error
	headers() ([]state.Header, error)
	walked() []state.Header // by a walk
}

type headeredKeyValue struct {
	*state.TimestampedKeyValue[string, string]
}

func (s headeredKeyValue) put(v string, h []state.Header) error { return s.PutHeaders("k", v, 1, h) }
func (s headeredKeyValue) headers() ([]state.Header, error)     { return s.Headers("k") }
func (s headeredKeyValue) walked() (h []state.Header) {
	it := s.Range(state.Bounds[string]{}, state.Forward)
	defer it.Close()
	it.Next()
	return it.Headers()
}

type headeredWindow struct{ *state.Window[string, string] }

func (s headeredWindow) put(v string, h []state.Header) error { return s.PutHeaders("k", 5, v, 1, h) }
func (s headeredWindow) headers() ([]state.Header, error)     { return s.Headers("k", 5) }
func (s headeredWindow) walked() []state.Header               { return walkedHeaders(s.All(state.Forward)) }

type headeredSession struct{ *state.Session[string, string] }

var session = serde.Windowed[string]{Key: "k", Start: 1, End: 5}

func (s headeredSession) put(v string, h []state.Header) error { return s.PutHeaders(session, v, 1, h) }
func (s headeredSession) headers() ([]state.Header, error)     { return s.Headers(session) }
func (s headeredSession) walked() []state.Header {
	return walkedHeaders(s.Fetch("k", state.Forward))
}

func walkedHeaders(it *state.WindowIterator[string, string]) []state.Header {
	defer it.Close()
	it.Next()
	return it.Headers()
}

// headeredStores make stores of each kind.
var headeredStores = map[string]func(open state.OpenEngine, headers bool) headered{
	"timestamped": func(open state.OpenEngine, headers bool) headered {
		s := state.NewTimestampedKeyValue("s", serde.String, serde.String, open)
		if headers {
			s.EnableHeaders()
		}
		return headeredKeyValue{s}
	},
	"window": func(open state.OpenEngine, headers bool) headered {
		return newHeaderedWindow(open, headers, false)
	},
	"duplicates": func(open state.OpenEngine, headers bool) headered {
		return newHeaderedWindow(open, headers, true)
	},
	"session": func(open state.OpenEngine, headers bool) headered {
		s := state.NewSession("s", serde.String, serde.String, 1e9, open)
		if headers {
			s.EnableHeaders()
		}
		return headeredSession{s}
	},
}

func newHeaderedWindow(open state.OpenEngine, headers, many bool) headered {
	s := state.NewWindow("s", serde.String, serde.String, state.WindowOptions{Size: 1e7, Retention: 1e9, RetainDuplicates: many}, open)
	if headers {
		s.EnableHeaders()
	}
	return headeredWindow{s}
}

// drawHeaders draws headers of all kinds: none, null, empty, long.
func drawHeaders(t *rapid.T) (headers []state.Header) {
	for range rapid.SampledFrom([]int{0, 1, 2, 100}).Draw(t, "headers") {
		h := state.Header{Key: rapid.SampledFrom([]string{"", "h", "ключ"}).Draw(t, "header")}
		if n := rapid.SampledFrom([]int{-1, 0, 1, 63, 64, 9000}).Draw(t, "length"); n >= 0 {
			h.Value = make([]byte, n)
		}
		headers = append(headers, h)
	}
	return headers
}

// TestHeaders: what was put with headers is found with them, by key, by a walk, in a
// cache, and after a restoration; without, the store has none.
func TestHeaders(t *testing.T) {
	for kind, newStore := range headeredStores {
		t.Run(kind, rapid.MakeCheck(func(t *rapid.T) {
			keeps, cached := rapid.IntRange(0, 9).Draw(t, "keeps") > 0, rapid.Bool().Draw(t, "cached")
			s, restored, log := newStore(state.Memory, keeps), newStore(state.Memory, keeps), &headerLog{}
			ctx := state.OpenContext{Changelog: log}
			if cached {
				s.EnableCache()
				ctx.Cache = state.NewCache(1 << 20)
			}
			must(t, s.Open(ctx))
			must(t, restored.Open(state.OpenContext{}))
			value, headers := rapid.SampledFrom([]string{"", "v"}).Draw(t, "value"), drawHeaders(t)
			must(t, s.put(value, headers))
			want := headers
			if !keeps {
				want = nil
			}
			check := func(s headered, when string) {
				got, err := s.headers()
				must(t, err)
				if walked := s.walked(); !sameHeaders(got, want) || !sameHeaders(walked, want) {
					t.Fatalf("%s: headers are %q, in a walk %q, want %q", when, got, walked, want)
				}
			}
			check(s, "put")
			must(t, s.Flush())
			check(s, "flushed")
			if len(log.values) != 1 || string(log.values[0]) != value || !sameHeaders(log.headers[0], headers) {
				t.Fatalf("logged %q %q", log.values, log.headers)
			}
			must(t, restored.RestoreHeaders(log.keys[0], log.values[0], 1, log.headers[0]))
			check(restored, "restored")
			must(t, s.Close())
			must(t, restored.Close())
		}))
	}
}

func sameHeaders(a, b []state.Header) bool {
	return slices.EqualFunc(a, b, func(a, b state.Header) bool {
		return a.Key == b.Key && (a.Value == nil) == (b.Value == nil) && slices.Equal(a.Value, b.Value)
	})
}

// TestHeadersView: a view finds values behind their headers.
func TestHeadersView(t *testing.T) {
	for kind, newStore := range headeredStores {
		t.Run(kind, func(t *testing.T) {
			s, gate := newStore(state.Memory, true), new(state.Gate)
			must(t, s.Open(state.OpenContext{}))
			must(t, s.put("v", []state.Header{{Key: "h", Value: []byte("x")}}))
			v, err := state.NewViews(s, gate).Begin(context.Background())
			must(t, err)
			var got []byte
			switch of := v.Store.(type) {
			case *state.TimestampedKeyValue[[]byte, []byte]:
				got, _, _, err = of.Get([]byte("k"))
			case *state.Window[[]byte, []byte]:
				got, _, _, err = of.Get([]byte("k"), 5)
			case *state.Session[[]byte, []byte]:
				got, _, err = of.Get(serde.Windowed[[]byte]{Key: []byte("k"), Start: 1, End: 5})
			}
			must(t, err)
			if string(got) != "v" {
				t.Errorf("the view has %q", got)
			}
			v.Close()
			must(t, s.Close())
		})
	}
}

// TestHeadersAreLaidOut: data on disk is found again with its headers, and isn't
// mistaken for data without headers, or the other way around.
func TestHeadersAreLaidOut(t *testing.T) {
	for kind, newStore := range headeredStores {
		for _, before := range []bool{false, true} {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v to %v", kind, before, after), func(t *testing.T) {
					disk := state.NewDisk(state.DiskOptions{FS: vfs.NewMem()})
					defer disk.Close()
					ctx := state.OpenContext{Dir: "dir", Disk: disk, Changelog: &headerLog{}}
					s := newStore(state.Persistent, before)
					must(t, s.Open(ctx))
					headers := []state.Header{{Key: "h", Value: []byte("x")}}
					must(t, s.put("v", headers))
					must(t, s.Flush())
					must(t, s.Checkpoint(1))
					must(t, s.Close())

					s = newStore(state.Persistent, after)
					must(t, s.Open(ctx))
					if _, ok := s.Checkpointed(); ok != (before == after) {
						t.Errorf("found at a checkpoint: %v", ok)
					}
					got, err := s.headers()
					must(t, err)
					if !before || !after {
						headers = nil
					}
					if !sameHeaders(got, headers) {
						t.Errorf("headers are %q, want %q", got, headers)
					}
					must(t, s.Close())
				})
			}
		}
	}
}
