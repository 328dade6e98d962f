package coordinator

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestPatterns: topics that match a pattern make tasks, when they are there, when they come and when they go, and are
// copartitioned.
func TestPatterns(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.SourceTopicRegex = true })
	f.topology.Subtopologies[0].SourceTopics = nil
	f.topology.Subtopologies[0].SourceTopicRegex = []string{"in-.|other"}
	f.topology.Subtopologies[0].CopartitionGroups = []copartitionGroup{{SourceTopicRegex: []int16{0}}}
	topic := func(name string, partitions int32) {
		f.topics[name] = Topic{ID: [16]byte{byte(len(f.topics))}, Partitions: partitions}
	}

	topic("in-22", 9) // does not match as a whole
	topic("__other", 9)
	resp := f.send("a", 0)
	if f.expect("without a topic", resp, 0, 2, []int32{}); len(resp.Status) > 0 {
		t.Errorf("without a topic: %+v", resp.Status)
	}
	topic("in-1", 2)
	f.expect("with a topic, but no changelog", f.send("a", 2), 0, 3, nil)
	f.expect("with a topic", f.send("a", 3), 0, 4, []int32{0, 1})
	f.expect("acknowledged", f.send("a", 4, owns(0, 1)), 0, 4, nil)
	topic("other", 2)
	f.expect("with another one", f.send("a", 4), 0, 5, nil)
	topic("in-3", 3)
	if resp := f.send("a", 5); !hasStatus(resp, StatusIncorrectlyPartitionedTopics) {
		t.Errorf("with a wider one: %+v", resp.Status)
	}
	if !f.c.Reads(f.now, app, "other") || f.c.Reads(f.now, app, "in-22") {
		t.Error("it is not known what the group reads")
	}
}

// TestPatternsMissing: how many partitions a repartition topic has is not known before a topic matches.
func TestPatternsMissing(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.SourceTopicRegex = true })
	first, second := sub(t, "0", "sink r"), sub(t, "1", "rep r:0")
	first.SourceTopicRegex = []string{"in-.", "other"}
	f.topology = &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []subtopology{first, second}}
	resp := f.send("a", 0)
	if len(resp.Status) != 1 || resp.Status[0].StatusDetail != "Source topics matching in-., matching other are missing." {
		t.Errorf("without a topic: %+v", resp.Status)
	}
	f.topics["other"] = Topic{Partitions: 3}
	f.send("a", 2)
	if len(f.missing) != 1 || f.missing[0].Partitions != 3 {
		t.Errorf("the repartition topic to be created is %+v", f.missing)
	}
}

// TestPatternsRefused: a pattern that is none is refused, and any as long as patterns are not taken.
func TestPatternsRefused(t *testing.T) {
	for pattern, want := range map[string]*kerr.Error{"in(": kerr.InvalidRegularExpression, "in": kerr.InvalidRequest} {
		f := newFixture(t, func(c *Config) { c.SourceTopicRegex = want == kerr.InvalidRegularExpression })
		f.topology = &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []subtopology{{SubtopologyID: "0", SourceTopicRegex: []string{pattern}}}}
		f.expect(pattern, f.send("a", 0), want.Code, 0, nil)
	}
}
