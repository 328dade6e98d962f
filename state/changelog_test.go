package state_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// logged is a record of a changelog.
type logged struct {
	key, value string
	tombstone  bool
	timestamp  int64
	headers    string
}

func (r logged) bytes() (key, value []byte) {
	if r.tombstone {
		return []byte(r.key), nil
	}
	return []byte(r.key), append([]byte{}, r.value...)
}

// changelog keeps what stores log.
type changelog struct {
	records []logged
	err     error
}

func (c *changelog) Append(key, value []byte, timestamp int64, headers []state.Header) error {
	r := logged{key: string(key), value: string(value), tombstone: value == nil, timestamp: timestamp}
	for _, h := range headers {
		r.headers += h.Key + "=" + string(h.Value) + ";"
	}
	c.records = append(c.records, r)
	return c.err
}

// restore applies a changelog's records to a store, whose own log must stay empty.
func (c *changelog) restore(t fataler, s state.Store, ctx state.OpenContext) {
	t.Helper()
	quiet := &changelog{}
	ctx.Changelog = quiet
	must(t, s.Open(ctx))
	for _, r := range c.records {
		key, value := r.bytes()
		must(t, s.Restore(key, value, r.timestamp))
	}
	if len(quiet.records) > 0 {
		t.Fatalf("restoring was logged: %+v", quiet.records)
	}
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestChangelogBytes checks what each kind of store logs: the bytes of Java Kafka
// Streams.
func TestChangelogBytes(t *testing.T) {
	w := func(key string, start, end int64) serde.Windowed[string] {
		return serde.Windowed[string]{Key: key, Start: start, End: end}
	}
	headers := []state.Header{{Key: "h", Value: []byte("v")}}
	for name, c := range map[string]struct {
		run  func(t *testing.T, ctx state.OpenContext) state.Store
		want []logged
	}{
		"key-value": {func(t *testing.T, ctx state.OpenContext) state.Store {
			s := state.NewKeyValue("s", serde.String, serde.Int64, state.Memory)
			must(t, s.Open(ctx))
			must(t, s.Put("a", 1, 100))
			must(t, s.Put("", 2, 101))
			must(t, s.Delete("a", 102))
			return s
		}, []logged{
			{key: "a", value: "\x00\x00\x00\x00\x00\x00\x00\x01", timestamp: 100},
			{key: "", value: "\x00\x00\x00\x00\x00\x00\x00\x02", timestamp: 101},
			{key: "a", tombstone: true, timestamp: 102},
		}},
		"timestamped": {func(t *testing.T, ctx state.OpenContext) state.Store {
			s := state.NewTimestampedKeyValue("s", serde.String, serde.Bytes, state.Memory)
			must(t, s.Open(ctx))
			must(t, s.Put("a", []byte("x"), 100))
			must(t, s.Put("b", []byte{}, 200))
			must(t, s.Put("a", nil, 150)) // what the serde makes null deletes
			must(t, s.PutHeaders("c", []byte("y"), 160, headers))
			must(t, s.DeleteHeaders("c", 170, headers))
			return s
		}, []logged{
			{key: "a", value: "x", timestamp: 100},
			{key: "b", value: "", timestamp: 200},
			{key: "a", tombstone: true, timestamp: 150},
			{key: "c", value: "y", timestamp: 160, headers: "h=v;"},
			{key: "c", tombstone: true, timestamp: 170, headers: "h=v;"},
		}},
		"window": {func(t *testing.T, ctx state.OpenContext) state.Store {
			s := state.NewWindow("s", serde.String, serde.String, state.WindowOptions{Size: 10e6, Retention: 1e9}, state.Memory)
			must(t, s.Open(ctx))
			must(t, s.Put("k", 258, "v", 300))
			must(t, s.Put("k", 5000, "v", 5001))
			must(t, s.Put("k", 3000, "late", 5002)) // isn't stored
			must(t, s.Delete("k", 5000, 5003))
			return s
		}, []logged{
			{key: "k\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00", value: "v", timestamp: 300},
			{key: "k\x00\x00\x00\x00\x00\x00\x13\x88\x00\x00\x00\x00", value: "v", timestamp: 5001},
			{key: "k\x00\x00\x00\x00\x00\x00\x0b\xb8\x00\x00\x00\x00", value: "late", timestamp: 5002},
			{key: "k\x00\x00\x00\x00\x00\x00\x13\x88\x00\x00\x00\x00", tombstone: true, timestamp: 5003},
		}},
		"duplicates": {func(t *testing.T, ctx state.OpenContext) state.Store {
			s := state.NewWindow("s", serde.String, serde.Bytes, state.WindowOptions{Size: 10e6, Retention: 1e9, RetainDuplicates: true}, state.Memory)
			must(t, s.Open(ctx))
			must(t, s.Put("k", 1, []byte("v"), 1))
			must(t, s.PutHeaders("k", 1, nil, 2, headers))
			must(t, s.Put("k", 1, []byte("w"), 3))
			return s
		}, []logged{
			{key: "k\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01", value: "v", timestamp: 1},
			{key: "k\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02", tombstone: true, timestamp: 2, headers: "h=v;"},
			{key: "k\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x03", value: "w", timestamp: 3},
		}},
		"session": {func(t *testing.T, ctx state.OpenContext) state.Store {
			s := state.NewSession("s", serde.String, serde.String, 1e9, state.Memory)
			must(t, s.Open(ctx))
			must(t, s.Put(w("k", 1, 2), "v", 7))
			must(t, s.Remove(w("k", 1, 2), 8))
			return s
		}, []logged{
			{key: "k\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01", value: "v", timestamp: 7},
			{key: "k\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01", tombstone: true, timestamp: 8},
		}},
		"versioned": {func(t *testing.T, ctx state.OpenContext) state.Store {
			s := state.NewVersioned("s", serde.String, serde.Bytes, 50e6, state.Memory)
			must(t, s.Open(ctx))
			for _, put := range []struct {
				value     []byte
				timestamp int64
			}{{[]byte("v"), 100}, {nil, 120}, {[]byte("late"), 69}} {
				if _, err := s.Put("k", put.value, put.timestamp); err != nil {
					t.Fatal(err)
				}
			}
			return s
		}, []logged{
			{key: "k", value: "v", timestamp: 100},
			{key: "k", tombstone: true, timestamp: 120},
			{key: "k", value: "late", timestamp: 69},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			log := &changelog{}
			s := c.run(t, state.OpenContext{Changelog: log})
			if !slices.Equal(log.records, c.want) {
				t.Errorf("logged %+v, want %+v", log.records, c.want)
			}
			must(t, s.Close())
		})
	}
}

func TestMalformedChangelogKeys(t *testing.T) {
	window := state.NewWindow("s", serde.String, serde.String, state.WindowOptions{Retention: 1e9}, state.Memory)
	session := state.NewSession("s", serde.String, serde.String, 1e9, state.Memory)
	for _, s := range []state.Store{window, session} {
		must(t, s.Open(state.OpenContext{}))
		for _, key := range [][]byte{{}, []byte("short"), bytes.Repeat([]byte{0xff}, 20)} {
			if err := s.Restore(key, []byte("v"), 1); !isErr(err, state.ErrMalformedKey) {
				t.Errorf("%T restored the key %q: %v", s, key, err)
			}
		}
		must(t, s.Close())
	}
}
