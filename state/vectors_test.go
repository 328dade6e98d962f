package state_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

type recordedRecord struct {
	Key       []byte
	Value     *string
	Timestamp int64
}

func (r recordedRecord) value(t *testing.T) []byte {
	if r.Value == nil {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(*r.Value)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{}, b...)
}

type recordedEntry struct {
	Key        string
	Start, End int64
	Value      any // a string, or a number for an int64
	Timestamp  *int64
}

func (e recordedEntry) String() string {
	s := fmt.Sprintf("%s %d-%d: %v", e.Key, e.Start, e.End, e.Value)
	if e.Timestamp != nil {
		s += fmt.Sprintf(" at %d", *e.Timestamp)
	}
	return s
}

type recordedStore struct {
	Vector, Store, Kind string
	RetentionMs         int64 `json:"retention_ms"`
	Records             []recordedRecord
	Entries             []recordedEntry

	// Cached says that the entries were read through a cache, which in Java
	// shows windows that have expired in the store below.
	Cached bool
}

// live is what is left without the entries that have expired.
func (s recordedStore) live() []recordedEntry {
	if !s.Cached {
		return s.Entries
	}
	time := func(e recordedEntry) int64 {
		if s.Kind == "session" {
			return e.End
		}
		return e.Start
	}
	latest := int64(-1)
	for _, e := range s.Entries {
		latest = max(latest, time(e))
	}
	return slices.DeleteFunc(slices.Clone(s.Entries), func(e recordedEntry) bool { return time(e) <= latest-s.RetentionMs })
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// entry is an entry as it would have been recorded. Numbers are told by what was.
func (s recordedStore) entry(key string, start, end int64, value []byte, timestamp int64) string {
	e := recordedEntry{Key: key, Start: start, End: end, Value: string(value)}
	for _, like := range s.Entries {
		if _, number := like.Value.(float64); number && len(value) == 8 {
			e.Value = float64(binary.BigEndian.Uint64(value))
		}
		if like.Timestamp != nil {
			e.Timestamp = &timestamp
		}
	}
	return e.String()
}

// TestRestoresJavasChangelogs restores changelogs recorded from Java Kafka Streams
// 4.4.0 and compares with what was in Java's stores at the end.
func TestRestoresJavasChangelogs(t *testing.T) {
	var recorded struct{ Stores []recordedStore }
	readJSON(t, "stores.json", &recorded)
	if len(recorded.Stores) < 30 {
		t.Fatalf("%d stores", len(recorded.Stores))
	}
	for _, r := range recorded.Stores {
		for engine, open := range engines {
			t.Run(r.Vector+"/"+r.Store+"/"+engine, func(t *testing.T) {
				openEngine, ctx, end := open()
				got := restoredEntries(t, r, openEngine, ctx)
				var want []string
				for _, e := range r.live() {
					want = append(want, e.String())
				}
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("restored\n%s\nin Java\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				must(t, end())
			})
		}
	}
}

func restoredEntries(t *testing.T, r recordedStore, open state.OpenEngine, ctx state.OpenContext) (got []string) {
	restore := func(s state.Store) {
		must(t, s.Open(ctx))
		for _, rec := range r.Records {
			must(t, s.Restore(rec.Key, rec.value(t), rec.Timestamp))
		}
	}
	retention := time.Duration(r.RetentionMs) * time.Millisecond
	walk := func(it *state.WindowIterator[string, []byte]) {
		for it.Next() {
			k := it.Key()
			end := k.End
			if r.Kind == "window" { // the size isn't recorded
				end = k.Start + r.size()
			}
			got = append(got, r.entry(k.Key, k.Start, end, it.Value(), it.Timestamp()))
		}
		must(t, it.Err())
		must(t, it.Close())
	}
	switch r.Kind {
	case "kv":
		s := state.NewTimestampedKeyValue(r.Store, serde.String, serde.Bytes, open)
		restore(s)
		must(t, s.All(func(k string, v []byte, ts int64) bool {
			got = append(got, r.entry(k, 0, 0, v, ts))
			return true
		}))
		must(t, s.Close())
	case "window":
		s := state.NewWindow(r.Store, serde.String, serde.Bytes, state.WindowOptions{Retention: retention}, open)
		restore(s)
		walk(s.All(state.Forward))
		must(t, s.Close())
	case "session":
		s := state.NewSession(r.Store, serde.String, serde.Bytes, retention, open)
		restore(s)
		walk(s.FetchRange(state.Bounds[string]{}, state.Backward))
		must(t, s.Close())
	}
	return got
}

func (s recordedStore) size() int64 {
	if len(s.Entries) == 0 {
		return 0
	}
	return s.Entries[0].End - s.Entries[0].Start
}

// TestVersionedEqualsJava puts what was put in Java, and asks what was asked.
func TestVersionedEqualsJava(t *testing.T) {
	var recorded struct {
		Versioned []struct {
			Store       string
			RetentionMs int64 `json:"retention_ms"`
			Records     []recordedRecord
			Puts        []string
			Queries     []struct {
				Query  string
				Result *string
			}
		}
	}
	readJSON(t, "stores.json", &recorded)
	for _, r := range recorded.Versioned {
		for engine, open := range engines {
			t.Run(r.Store+"/"+engine, func(t *testing.T) {
				openEngine, ctx, end := open()
				made := state.NewVersioned(r.Store, serde.String, serde.Bytes, time.Duration(r.RetentionMs)*time.Millisecond, openEngine)
				log := &changelog{}
				ctx.Changelog = log
				must(t, made.Open(ctx))
				for i, rec := range r.Records {
					validTo, err := made.Put(string(rec.Key), rec.value(t), rec.Timestamp)
					must(t, err)
					if len(r.Puts) > 0 && fmt.Sprintf("put=%d", validTo) != r.Puts[i] {
						t.Errorf("put %d returned %d, in Java %s", i, validTo, r.Puts[i])
					}
					if key, value := log.records[i].bytes(); string(key) != string(rec.Key) || string(value) != string(rec.value(t)) || log.records[i].timestamp != rec.Timestamp {
						t.Errorf("put %d was logged as %+v", i, log.records[i])
					}
				}
				restored := state.NewVersioned(r.Store, serde.String, serde.Bytes, time.Duration(r.RetentionMs)*time.Millisecond, state.Memory)
				log.restore(t, restored, state.OpenContext{})
				for _, s := range []*state.Versioned[string, []byte]{made, restored} {
					for _, q := range r.Queries {
						if got, want := ask(t, s, q.Query), q.Result; (want == nil) != (got == "") || want != nil && got != *want {
							t.Errorf("%s is %q, in Java %v", q.Query, got, want)
						}
					}
					must(t, s.Close())
				}
				must(t, end())
			})
		}
	}
}

// ask answers get(key) or get(key,time) in the form that was recorded.
func ask(t *testing.T, s *state.Versioned[string, []byte], query string) string {
	key, at, asOf := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(query, "get("), ")"), ",")
	v, ok, err := s.Get(key)
	if asOf {
		time, parseErr := strconv.ParseInt(at, 10, 64)
		must(t, parseErr)
		v, ok, err = s.GetAsOf(key, time)
	}
	must(t, err)
	if !ok {
		return ""
	}
	return fmt.Sprintf("<%s,%d,Optional.empty>", v.Value, v.Timestamp)
}
