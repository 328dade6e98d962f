package state_test

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

type keyValueSubject struct {
	*state.KeyValue[string, []byte]
	model map[string]string
	log   []logged
	clock int64
}

// raw is a serde of strings that leaves bytes as they are.
var raw = serde.New(
	func(s string) ([]byte, error) { return []byte(s), nil },
	func(b []byte) (string, error) { return string(b), nil },
)

func newKeyValueSubject(open state.OpenEngine, cached bool) subject {
	s := &keyValueSubject{KeyValue: state.NewKeyValue("s", raw, serde.Bytes, open), model: make(map[string]string)}
	if cached {
		s.EnableCache()
	}
	return s
}

func (s *keyValueSubject) step(t *rapid.T) {
	s.clock++
	k := drawKey(t)
	switch rapid.SampledFrom([]string{"put", "delete", "get", "range", "prefix"}).Draw(t, "op") {
	case "put":
		v := drawValue(t)
		must(t, s.Put(k, v, s.clock))
		s.model[k] = string(v)
		s.log = append(s.log, logged{key: k, value: string(v), timestamp: s.clock})
	case "delete":
		must(t, s.Delete(k, s.clock))
		delete(s.model, k)
		s.log = append(s.log, logged{key: k, tombstone: true, timestamp: s.clock})
	case "get":
		got, ok, err := s.Get(k)
		must(t, err)
		if want, there := s.model[k]; ok != there || string(got) != want {
			t.Fatalf("%q is %q, %v, want %q, %v", k, got, ok, want, there)
		}
	case "range":
		bounds, within := drawBounds(t)
		order := drawOrder(t)
		if got, want := ordered(s.walk(t, s.Range(bounds, order)), order), s.filter(within); !slices.Equal(got, want) {
			t.Fatalf("range is %q, want %q", got, want)
		}
	case "prefix":
		order := drawOrder(t)
		got := ordered(s.walk(t, s.Prefix([]byte(k), order)), order)
		if want := s.filter(func(have string) bool { return len(have) >= len(k) && have[:len(k)] == k }); !slices.Equal(got, want) {
			t.Fatalf("prefix %q is %q, want %q", k, got, want)
		}
	}
}

func (s *keyValueSubject) walk(t fataler, it *state.KeyValueIterator[string, []byte]) (got []string) {
	for it.Next() {
		got = append(got, fmt.Sprintf("%q=%q", it.Key(), it.Value()))
	}
	closed(t, it)
	return got
}

func (s *keyValueSubject) filter(within func(string) bool) (want []string) {
	for _, k := range slices.Sorted(maps.Keys(s.model)) {
		if within(k) {
			want = append(want, fmt.Sprintf("%q=%q", k, s.model[k]))
		}
	}
	return want
}

func (s *keyValueSubject) contents(t fataler) []string {
	return s.walk(t, s.Range(state.Bounds[string]{}, state.Forward))
}
func (s *keyValueSubject) want() []string   { return s.filter(func(string) bool { return true }) }
func (s *keyValueSubject) logged() []logged { return s.log }

type timestampedSubject struct {
	*state.TimestampedKeyValue[string, []byte]
	model map[string]string
	log   []logged
}

func newTimestampedSubject(open state.OpenEngine, cached bool) subject {
	s := &timestampedSubject{TimestampedKeyValue: state.NewTimestampedKeyValue("s", raw, serde.Bytes, open), model: make(map[string]string)}
	if cached {
		s.EnableCache()
	}
	return s
}

func stamped(v []byte, ts int64) string { return fmt.Sprintf("%q@%d", v, ts) }

func (s *timestampedSubject) step(t *rapid.T) {
	k, ts := drawKey(t), rapid.Int64().Draw(t, "timestamp")
	switch rapid.SampledFrom([]string{"put", "delete", "get"}).Draw(t, "op") {
	case "put":
		v := drawValue(t)
		must(t, s.Put(k, v, ts))
		s.model[k] = stamped(v, ts)
		s.log = append(s.log, logged{key: k, value: string(v), timestamp: ts})
	case "delete":
		must(t, s.Delete(k, ts))
		delete(s.model, k)
		s.log = append(s.log, logged{key: k, tombstone: true, timestamp: ts})
	case "get":
		v, ts, ok, err := s.Get(k)
		must(t, err)
		if want, there := s.model[k]; ok != there || ok && stamped(v, ts) != want {
			t.Fatalf("%q is %s, %v, want %q, %v", k, stamped(v, ts), ok, want, there)
		}
	}
}

func (s *timestampedSubject) contents(t fataler) (got []string) {
	must(t, s.All(func(k string, v []byte, ts int64) bool {
		got = append(got, fmt.Sprintf("%q=%s", k, stamped(v, ts)))
		return true
	}))
	return got
}

func (s *timestampedSubject) want() (want []string) {
	for _, k := range slices.Sorted(maps.Keys(s.model)) {
		want = append(want, fmt.Sprintf("%q=%s", k, s.model[k]))
	}
	return want
}
func (s *timestampedSubject) logged() []logged { return s.log }
