package taskmgr

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestSourcePatterns: which topics a subtopology reads, and where it begins with them.
func TestSourcePatterns(t *testing.T) {
	prefix := func(p string) func(string) bool {
		return func(topic string) bool { return strings.HasPrefix(topic, p) }
	}
	at := func(offset int64) Reset {
		return func(time.Time) (kgo.Offset, bool) { return kgo.NewOffset().At(offset), true }
	}
	sub := Subtopology{
		SourceTopics:   []string{"z", "b"},
		Reset:          map[string]Reset{"z": at(1)},
		SourcePatterns: []SourcePattern{{Match: prefix("in-"), Reset: at(2)}, {Match: prefix("x")}},
	}
	ts := topics{"x1": {}, "in-2": {}, "other": {}, "b": {}, "in-1": {}, "z": {}}
	if got, want := sub.readOf(ts), []string{"z", "b", "in-1", "in-2", "x1"}; !slices.Equal(got, want) {
		t.Errorf("reads %v, want %v", got, want)
	}
	for topic, want := range map[string]int64{"z": 1, "in-1": 2, "b": -1, "x1": -1} { // -1: as the thread says
		reset, got := sub.reset(topic), int64(-1)
		if reset != nil {
			from, _ := reset(time.Time{})
			got = from.EpochOffset().Offset
		}
		if got != want {
			t.Errorf("%s begins at %d, want %d", topic, got, want)
		}
	}
	all := Topology{"0": sub, "1": {SourceTopics: []string{"in-1"}}, "2": {SourcePatterns: []SourcePattern{{Match: prefix("in-1")}}}}
	for topic, want := range map[string]int{"in-1": 3, "in-2": 1, "z": 1, "other": 0} {
		if got := all.readers(topic); got != want {
			t.Errorf("%s has %d readers, want %d", topic, got, want)
		}
	}
	if !all.hasPatterns() || (Topology{"1": all["1"]}).hasPatterns() {
		t.Error("it is not known whether there are patterns")
	}
}
