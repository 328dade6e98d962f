package state_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/state"
)

// subject is a store under test beside a naive model of it.
type subject interface {
	state.Store

	// step does a random operation on both, and compares what is read.
	step(t *rapid.T)

	// contents are the entries of the store, and want those of the model, as
	// text, in the same order.
	contents(t fataler) []string
	want() []string

	// logged is what the changelog must have, were there no cache.
	logged() []logged
}

// retention of the windowed subjects, with segments of half of it. The cached
// ones keep everything, since what expires is told at a flush only.
const retention = 200 * time.Second

var subjects = map[string]func(state.OpenEngine, bool) subject{
	"key-value":   newKeyValueSubject,
	"timestamped": newTimestampedSubject,
	"window":      newWindowSubject,
	"duplicates":  newDuplicatesSubject,
	"session":     newSessionSubject,
	"versioned":   newVersionedSubject,
	"records":     newRecordBufferSubject,

	"window by time":  newTimeOrderedSubject,
	"window indexed":  newIndexedWindowSubject,
	"session indexed": newIndexedSessionSubject,

	"timestamped with headers": withHeaders(newTimestampedSubject),
	"window with headers":      withHeaders(newWindowSubject),
	"session with headers":     withHeaders(newSessionSubject),
}

// withHeaders has a subject keep the headers of its values, of which there are none.
func withHeaders(newSubject func(state.OpenEngine, bool) subject) func(state.OpenEngine, bool) subject {
	return func(open state.OpenEngine, cached bool) subject {
		s := newSubject(open, cached)
		s.(interface{ EnableHeaders() }).EnableHeaders()
		return s
	}
}

// A run opens and closes files many times: a few are enough by default.
func init() {
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
}

// TestStoreModel runs random operations against each kind of store, with each
// engine, with and without a cache, and a naive model of it.
func TestStoreModel(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for kind, newSubject := range subjects {
		for engine, open := range engines {
			for _, cached := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/cached=%v", kind, engine, cached), func(t *testing.T) {
					rapid.Check(t, func(t *rapid.T) {
						openEngine, ctx, end := open()
						log := &changelog{}
						ctx.Changelog = log
						if cached {
							ctx.Cache = state.NewCache(rapid.SampledFrom([]int64{0, 1000, 1 << 20}).Draw(t, "cache"))
						}
						s := newSubject(openEngine, cached)
						must(t, s.Open(ctx))
						checkStore(t, s, ctx, log, engine == "persistent")
						checkLog(t, s, log, cached)
						checkRestore(t, s, newSubject(state.Memory, cached), log)
						must(t, s.Close())
						if ctx.Cache != nil && ctx.Cache.Size() != 0 {
							t.Fatalf("%d bytes are left in the cache", ctx.Cache.Size())
						}
						must(t, end())
					})
				})
			}
		}
	}
}

func checkStore(t *rapid.T, s subject, ctx state.OpenContext, log *changelog, persistent bool) {
	compare := func() {
		if got, want := s.contents(t), s.want(); !slices.Equal(got, want) {
			t.Fatalf("the store has\n%q, want\n%q", got, want)
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"step":    s.step,
		"step 2":  s.step, // twice as likely
		"compare": func(*rapid.T) { compare() },
		"flush":   func(t *rapid.T) { must(t, s.Flush()) },
		"checkpoint": func(t *rapid.T) {
			must(t, s.Flush())
			must(t, s.Checkpoint(int64(len(log.records))))
		},
		// A crash or a clean end: what is missing comes from the changelog.
		"reopen": func(t *rapid.T) {
			must(t, s.Flush())
			clean := rapid.Bool().Draw(t, "clean")
			if clean {
				must(t, s.Checkpoint(int64(len(log.records))))
			}
			must(t, s.Close())
			must(t, s.Open(ctx))
			from, ok := s.Checkpointed()
			if ok && !persistent || from > int64(len(log.records)) || persistent && clean && from != int64(len(log.records)) {
				t.Fatalf("opened at %d, %v of a changelog of %d records", from, ok, len(log.records))
			}
			if !ok {
				from = 0
			}
			for _, r := range log.records[from:] {
				key, value := r.bytes()
				must(t, s.Restore(key, value, r.timestamp))
			}
			compare()
		},
	})
	compare()
	must(t, s.Flush())
	compare()
}

// checkLog compares the changelog with the model's: record by record, or with a
// cache the last of each key.
func checkLog(t *rapid.T, s subject, log *changelog, cached bool) {
	if !cached {
		if want := s.logged(); !slices.Equal(log.records, want) {
			t.Fatalf("logged\n%+v, want\n%+v", log.records, want)
		}
		return
	}
	last := func(records []logged) map[string]logged {
		m := make(map[string]logged)
		for _, r := range records {
			m[r.key] = r
		}
		return m
	}
	if got, want := last(log.records), last(s.logged()); !maps.Equal(got, want) {
		t.Fatalf("logged at last\n%+v, want\n%+v", got, want)
	}
	if len(log.records) > len(s.logged()) {
		t.Fatalf("%d records were logged of %d changes", len(log.records), len(s.logged()))
	}
}

func checkRestore(t *rapid.T, s, fresh subject, log *changelog) {
	if v, ok := fresh.(*versionedSubject); ok { // it is asked about what the model has
		v.versions, v.observed, v.log = s.(*versionedSubject).versions, s.(*versionedSubject).observed, s.logged()
	}
	log.restore(t, fresh, state.OpenContext{})
	if got, want := fresh.contents(t), s.want(); !slices.Equal(got, want) {
		t.Fatalf("restored\n%q, want\n%q", got, want)
	}
	must(t, fresh.Close())
}

// Keys begin with each other and with bytes that times begin with.
func drawKey(t *rapid.T) string {
	return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b'}), 0, 3).Draw(t, "key"))
}

func drawBounds(t *rapid.T) (b state.Bounds[string], within func(string) bool) {
	if rapid.Bool().Draw(t, "from") {
		b.From = new(drawKey(t))
	}
	if rapid.Bool().Draw(t, "to") {
		b.To = new(drawKey(t))
	}
	return b, func(k string) bool { return (b.From == nil || k >= *b.From) && (b.To == nil || k <= *b.To) }
}

func drawValue(t *rapid.T) []byte {
	return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "value")...)
}

func drawOrder(t *rapid.T) state.Order { return state.Order(rapid.Bool().Draw(t, "backward")) }

// drawTime draws a time in milliseconds about the latest one, seldom far ahead.
func drawTime(t *rapid.T, latest int64) int64 {
	ahead := rapid.SampledFrom([]int64{20_000, 20_000, 20_000, 300_000}).Draw(t, "ahead")
	return max(0, latest) + rapid.Int64Range(-min(max(0, latest), 260_000), ahead).Draw(t, "time")
}

// ordered turns what was walked over back to the forward order.
func ordered(entries []string, order state.Order) []string {
	if order == state.Backward {
		slices.Reverse(entries)
	}
	return entries
}

func closed(t fataler, it interface {
	Err() error
	Close() error
}) {
	t.Helper()
	must(t, errors.Join(it.Err(), it.Close()))
}
