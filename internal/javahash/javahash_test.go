package javahash

import (
	"slices"
	"testing"
)

// The expectations are recorded from Java 17.
func TestHashes(t *testing.T) {
	for s, want := range map[string]int32{"": 0, "a": 97, "polygenelubricants": -1 << 31, "ü日𝄞": 34347411} {
		if got := String(s); got != want {
			t.Errorf("String(%q) is %d, in Java %d", s, got, want)
		}
	}
	for s, want := range map[string]int32{"": 1, "a": 128, "\x00\x7f\x80\xff": 1041599} {
		if got := Bytes(s); got != want {
			t.Errorf("Bytes(%q) is %d, in Java %d", s, got, want)
		}
	}
}

func TestOrder(t *testing.T) {
	in := []string{"out", "in", "b", "a", "k407", "k0", "k74", "k37", "Aa", "BB", "KSTREAM-AGGREGATE-0000000002", "zz"}
	want := []string{"Aa", "BB", "zz", "a", "k407", "b", "in", "k0", "KSTREAM-AGGREGATE-0000000002", "k74", "k37", "out"}
	if got := Strings(in); !slices.Equal(got, want) {
		t.Errorf("a new set gives out %q, in Java %q", got, want)
	}
	// One that had 30 elements before has more buckets.
	var table Table
	Sort(&table, make([]string, 30), String)
	got := slices.Clone(in)
	Sort(&table, got, String)
	want = []string{"Aa", "BB", "zz", "k407", "k74", "k37", "out", "a", "b", "in", "k0", "KSTREAM-AGGREGATE-0000000002"}
	if !slices.Equal(got, want) {
		t.Errorf("a set that was larger gives out %q, in Java %q", got, want)
	}
}
