package state_test

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// versionedSubject is modelled by all versions that were ever accepted.
type versionedSubject struct {
	*state.Versioned[string, []byte]
	versions map[string][]version // by rising time
	observed int64
	log      []logged
}

type version struct {
	time      int64
	value     string
	tombstone bool
}

func newVersionedSubject(open state.OpenEngine, _ bool) subject {
	return &versionedSubject{
		Versioned: state.NewVersioned("s", raw, serde.Bytes, retention, open),
		versions:  make(map[string][]version), observed: -1,
	}
}

func (s *versionedSubject) step(t *rapid.T) {
	k, at := drawKey(t), drawTime(t, s.observed)
	if vs := s.versions[k]; len(vs) > 0 && rapid.Bool().Draw(t, "there") {
		at = rapid.SampledFrom(vs).Draw(t, "version").time
	}
	switch rapid.SampledFrom([]string{"put", "put", "tombstone", "delete", "get", "as of", "as of"}).Draw(t, "op") {
	case "put":
		v := drawValue(t)
		got, err := s.Put(k, v, at)
		must(t, err)
		if want := s.add(k, version{at, string(v), false}); got != want {
			t.Fatalf("put at %d is valid to %d, want %d", at, got, want)
		}
	case "tombstone":
		got, err := s.Put(k, nil, at)
		must(t, err)
		if want := s.add(k, version{at, "", true}); got != want {
			t.Fatalf("tombstone at %d is valid to %d, want %d", at, got, want)
		}
	case "delete":
		want := ""
		if at >= s.observed-retention.Milliseconds() {
			want = s.asOf(k, at)
		}
		got, ok, err := s.Delete(k, at)
		must(t, err)
		s.add(k, version{at, "", true})
		if versionText(got, ok) != want {
			t.Fatalf("deleted %s, want %s", versionText(got, ok), want)
		}
	case "get":
		got, ok, err := s.Get(k)
		must(t, err)
		if want := s.latest(k); versionText(got, ok) != want {
			t.Fatalf("%q is %s, want %s", k, versionText(got, ok), want)
		}
	case "as of":
		got, ok, err := s.GetAsOf(k, at)
		must(t, err)
		if want := s.asOf(k, at); versionText(got, ok) != want {
			t.Fatalf("%q at %d is %s, want %s", k, at, versionText(got, ok), want)
		}
	}
}

func versionText(v state.VersionedRecord[[]byte], ok bool) string {
	if !ok {
		return ""
	}
	return version{v.Timestamp, string(v.Value), false}.String()
}

func (v version) String() string {
	if v.tombstone {
		return ""
	}
	return fmt.Sprintf("%q@%d", v.value, v.time)
}

func (s *versionedSubject) add(k string, v version) (validTo int64) {
	s.log = append(s.log, logged{key: k, value: v.value, tombstone: v.tombstone, timestamp: v.time})
	if v.time < s.observed-retention.Milliseconds() {
		return state.NotPut
	}
	s.observed = max(s.observed, v.time)
	vs := slices.DeleteFunc(s.versions[k], func(o version) bool { return o.time == v.time })
	i := 0
	for i < len(vs) && vs[i].time < v.time {
		i++
	}
	s.versions[k] = slices.Insert(vs, i, v)
	if i == len(vs) {
		return state.ValidToUndefined
	}
	return s.versions[k][i+1].time
}

func (s *versionedSubject) latest(k string) string {
	if vs := s.versions[k]; len(vs) > 0 {
		return vs[len(vs)-1].String()
	}
	return ""
}

func (s *versionedSubject) asOf(k string, at int64) string {
	vs := s.versions[k]
	for i, v := range slices.Backward(vs) {
		if v.time <= at {
			if i < len(vs)-1 && at < s.observed-retention.Milliseconds() {
				return ""
			}
			return v.String()
		}
	}
	return ""
}

// moments are the times at which something may differ.
func (s *versionedSubject) moments() (all []int64) {
	for _, vs := range s.versions {
		for _, v := range vs {
			all = append(all, v.time-1, v.time)
		}
	}
	all = append(all, s.observed-retention.Milliseconds())
	slices.Sort(all)
	return slices.Compact(all)
}

func (s *versionedSubject) contents(t fataler) (got []string) {
	for _, k := range slices.Sorted(maps.Keys(s.versions)) {
		v, ok, err := s.Get(k)
		must(t, err)
		got = append(got, fmt.Sprintf("%q: %s", k, versionText(v, ok)))
		for _, at := range s.moments() {
			v, ok, err := s.GetAsOf(k, at)
			must(t, err)
			got = append(got, fmt.Sprintf("%q at %d: %s", k, at, versionText(v, ok)))
		}
	}
	return got
}

func (s *versionedSubject) want() (want []string) {
	for _, k := range slices.Sorted(maps.Keys(s.versions)) {
		want = append(want, fmt.Sprintf("%q: %s", k, s.latest(k)))
		for _, at := range s.moments() {
			want = append(want, fmt.Sprintf("%q at %d: %s", k, at, s.asOf(k, at)))
		}
	}
	return want
}

func (s *versionedSubject) logged() []logged { return s.log }
