package iq_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/odradek-go/odradek/iq"
)

// TestBehindKey: what is left of a range or a prefix behind a key, wherever that is, is
// what a filter of all keys leaves.
func TestBehindKey(t *testing.T) {
	c := newCluster(t, 1, nil)
	in := c.instances[0]
	in.give(t, 0, true)
	c.publish()
	var keys []string
	for _, first := range []string{"a", "b", "ba", "bb", "c"} {
		for i := range 4 {
			keys = append(keys, fmt.Sprint(first, i))
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		in.tasks[0].put(t, key, 1)
	}
	afters := append([]string{"", "a", "ax", "b", "b9", "bb0x", "bc", "d"}, keys...)
	for _, kind := range []iq.Kind{iq.Range, iq.Prefix} {
		for _, prefix := range []string{"", "b", "bb", "x"} {
			for _, backward := range []bool{false, true} {
				for _, after := range afters {
					req := &iq.Request{Store: "counts", Kind: kind, Partition: 0, Key: []byte(prefix), After: []byte(after), Backward: backward}
					var want, got []string
					for _, key := range keys {
						c := bytes.Compare([]byte(key), req.After)
						if c != 0 && c < 0 == backward && (kind == iq.Range || bytes.HasPrefix([]byte(key), req.Key)) {
							want = append(want, key)
						}
					}
					if backward {
						slices.Reverse(want)
					}
					rows, err := in.Query(t.Context(), req)
					if err != nil {
						t.Fatal(err)
					}
					for e, err := range rows.All() {
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, string(e.Key))
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s %q behind %q, backward %v: %q, want %q", kind, prefix, after, backward, got, want)
					}
				}
			}
		}
	}
}
