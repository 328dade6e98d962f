package state_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/state"
)

// TestLRUModel: what is kept are the entries that were used last, whatever is done.
func TestLRUModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "most")
		e, err := state.LRU(most)(state.OpenContext{})
		if err != nil {
			t.Fatal(err)
		}
		var used []string // keys, the one that was used last at the end
		forget := func(key string) bool {
			i := slices.Index(used, key)
			if i >= 0 {
				used = slices.Delete(used, i, i+1)
			}
			return i >= 0
		}
		key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				v, err := e.Get([]byte(k))
				known := forget(k)
				if known {
					used = append(used, k)
				}
				if err != nil || known != (v != nil) || known && string(v) != k {
					t.Fatalf("%s is %q, %v; it is there: %v", k, v, err, known)
				}
			},
			"put": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if err := e.Put([]byte(k), []byte(k)); err != nil {
					t.Fatal(err)
				}
				forget(k)
				if used = append(used, k); len(used) > most {
					used = used[1:]
				}
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if err := e.Put([]byte(k), nil); err != nil {
					t.Fatal(err)
				}
				forget(k)
			},
			"drop": func(t *rapid.T) {
				k := key.Draw(t, "key")
				if err := e.DropBefore([]byte(k)); err != nil {
					t.Fatal(err)
				}
				used = slices.DeleteFunc(used, func(other string) bool { return other < k })
			},
			"": func(t *rapid.T) {
				want := slices.Sorted(slices.Values(used))
				for i, k := range want {
					want[i] = k + "=" + k
				}
				if got := scanned(t, e.Scan(nil, nil, state.Forward)); !slices.Equal(got, want) {
					t.Fatalf("has %s, want %s", strings.Join(got, " "), strings.Join(want, " "))
				}
				if n, err := e.Len(); err != nil || n != len(used) {
					t.Fatalf("has %d entries, %v", n, err)
				}
			},
		})
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
