package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sub is a subtopology in few words: "src a b; sink r; rep r:0; log c; together src0 rep0".
func sub(t *testing.T, id, text string) subtopology {
	t.Helper()
	s := subtopology{SubtopologyID: id}
	for _, clause := range strings.Split(text, ";") {
		words := strings.Fields(clause)
		for _, w := range words[1:] {
			switch words[0] {
			case "src":
				s.SourceTopics = append(s.SourceTopics, w)
			case "sink":
				s.RepartitionSinkTopics = append(s.RepartitionSinkTopics, w)
			case "log":
				s.StateChangelogTopics = append(s.StateChangelogTopics, kmsg.TopicInfo{Topic: w, Configs: []kmsg.TopicInfoConfig{{Key: "cleanup.policy", Value: "compact"}}})
			case "rep":
				name, count, _ := strings.Cut(w, ":")
				info := kmsg.TopicInfo{Topic: name, ReplicationFactor: 2}
				if _, err := fmt.Sscan(count, &info.NumPartitions); err != nil {
					t.Fatal(err)
				}
				s.RepartitionSourceTopics = append(s.RepartitionSourceTopics, info)
			case "together":
				if len(s.CopartitionGroups) == 0 {
					s.CopartitionGroups = []copartitionGroup{{}}
				}
				var i int16
				g := &s.CopartitionGroups[0]
				if _, err := fmt.Sscanf(w, "src%d", &i); err == nil {
					g.SourceTopics = append(g.SourceTopics, i)
				} else if _, err := fmt.Sscanf(w, "rep%d", &i); err == nil {
					g.RepartitionSourceTopics = append(g.RepartitionSourceTopics, i)
				}
			}
		}
	}
	return s
}

func TestConfigure(t *testing.T) {
	const loop = "Failed to compute number of partitions for all repartition topics. There may be loops in the topology that cannot be resolved."
	for name, test := range map[string]struct {
		subtopologies []string
		topics        map[string]int32
		tasks         []int32
		missing       map[string]int32
		status        string
		err           string
	}{
		"one source": {
			subtopologies: []string{"src in; log c"}, topics: map[string]int32{"in": 3},
			tasks: []int32{3}, missing: map[string]int32{"c": 3}, status: "3 Internal topics are missing: c",
		},
		"all there": {
			subtopologies: []string{"src in; log c"}, topics: map[string]int32{"in": 3, "c": 3}, tasks: []int32{3},
		},
		"the largest source counts": {
			subtopologies: []string{"src in more; log c"}, topics: map[string]int32{"in": 3, "more": 5, "c": 5}, tasks: []int32{5},
		},
		"a changelog that does not fit": {
			subtopologies: []string{"src in; log c"}, topics: map[string]int32{"in": 3, "c": 2},
			status: "2 Existing topic c has different number of partitions: expected 3, found 2",
		},
		"more topics missing than are named": {
			subtopologies: []string{"src a b c d e"}, status: "1 Source topics a, b, c and 2 additional topics are missing.",
		},
		"a missing source hides the rest": {
			subtopologies: []string{"src a in; log c"}, topics: map[string]int32{"in": 3, "c": 2}, status: "1 Source topics a are missing.",
		},
		"repartition topics take the count of what feeds them, through several subtopologies": {
			subtopologies: []string{"rep r2:0; log c", "rep r1:0; sink r2", "src in; sink r1"}, topics: map[string]int32{"in": 6},
			tasks: []int32{6, 6, 6}, missing: map[string]int32{"r1": 6, "r2": 6, "c": 6}, status: "3 Internal topics are missing: c, r1, r2",
		},
		"the largest of several that feed": {
			subtopologies: []string{"src in more; sink r", "rep r:0"}, topics: map[string]int32{"in": 2, "more": 7},
			tasks: []int32{7, 7}, missing: map[string]int32{"r": 7}, status: "3 Internal topics are missing: r",
		},
		"a count of its own": {
			subtopologies: []string{"src in; sink r", "rep r:9; log c"}, topics: map[string]int32{"in": 2, "r": 9, "c": 9}, tasks: []int32{2, 9},
		},
		"an existing repartition topic that does not fit": {
			subtopologies: []string{"src in; sink r", "rep r:0"}, topics: map[string]int32{"in": 2, "r": 3},
			status: "2 Existing topic r has different number of partitions: expected 2, found 3",
		},
		"repartition topics that feed each other": {
			subtopologies: []string{"rep r1:0; sink r2", "rep r2:0; sink r1"}, err: loop,
		},
		"a repartition topic that nobody feeds": {
			subtopologies: []string{"src in", "rep r:0"}, topics: map[string]int32{"in": 2},
			err: "Failed to compute number of partitions for all repartition topics, because a repartition source topic is never used as a sink topic.",
		},
		"nothing to read": {
			subtopologies: []string{"log c"}, err: "No source topics found for subtopology 0",
		},
		"copartitioned sources that match": {
			subtopologies: []string{"src a b; together src0 src1"}, topics: map[string]int32{"a": 2, "b": 2}, tasks: []int32{2},
		},
		"copartitioned sources that do not": {
			subtopologies: []string{"src a b; together src0 src1"}, topics: map[string]int32{"a": 2, "b": 3},
			status: "2 Following topics do not have the same number of partitions: [{a=2, b=3}]",
		},
		"a repartition topic follows the source that it is joined with": {
			subtopologies: []string{"src in; sink r", "src a; rep r:0; together src0 rep0; log c"}, topics: map[string]int32{"in": 2, "a": 5},
			tasks: []int32{2, 5}, missing: map[string]int32{"r": 5, "c": 5}, status: "3 Internal topics are missing: c, r",
		},
		"a repartition topic with a count of its own does not follow": {
			subtopologies: []string{"src in; sink r", "src a; rep r:4; together src0 rep0"}, topics: map[string]int32{"in": 2, "a": 5},
			status: "2 Number of partitions [4] of repartition topic [r] doesn't match number of partitions [5] of the source topic.",
		},
		"repartition topics among themselves take the largest count": {
			subtopologies: []string{"src in; sink r", "src more; sink s", "rep r:0 s:0; together rep0 rep1"}, topics: map[string]int32{"in": 2, "more": 5},
			tasks: []int32{2, 5, 5}, missing: map[string]int32{"r": 5, "s": 5}, status: "3 Internal topics are missing: r, s",
		},
		"unless one has a count of its own": {
			subtopologies: []string{"src in; sink r", "src more; sink s", "rep r:3 s:0; together rep0 rep1"}, topics: map[string]int32{"in": 2, "more": 5},
			tasks: []int32{2, 5, 3}, missing: map[string]int32{"r": 3, "s": 3}, status: "3 Internal topics are missing: r, s",
		},
		"or two have different ones": {
			subtopologies: []string{"src in; sink r s", "rep r:3 s:4; together rep0 rep1"}, topics: map[string]int32{"in": 2},
			status: "2 Following topics do not have the same number of partitions: [{r=3, s=4}]",
		},
		"a copartition group that points nowhere": {
			subtopologies: []string{"src a; together src1"}, topics: map[string]int32{"a": 2},
			err: "Copartition group of subtopology 0 refers to source topic 1 of 1.",
		},
		"also among repartition topics": {
			subtopologies: []string{"src a; sink r", "rep r:0; together rep3"}, topics: map[string]int32{"a": 2},
			err: "Copartition group of subtopology 1 refers to repartition source topic 3 of 1.",
		},
		"an empty copartition group": {
			subtopologies: []string{"src a; together none"}, topics: map[string]int32{"a": 2}, tasks: []int32{2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wire := &kmsg.StreamsGroupHeartbeatRequestTopology{}
			for i, text := range test.subtopologies {
				wire.Subtopologies = append(wire.Subtopologies, sub(t, fmt.Sprint(i), text))
			}
			slices.Reverse(wire.Subtopologies) // order does not matter
			c, err := configure(newTopology(wire), func(name string) (Topic, bool) {
				n, ok := test.topics[name]
				return Topic{Partitions: n}, ok
			})
			if test.err != "" {
				if err == nil || err.Code != kerr.StreamsInvalidTopology || err.Message != test.err {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			status := ""
			if c.problem != nil {
				status = fmt.Sprintf("%d %s", c.problem.Code, c.problem.Detail)
			}
			if status != test.status || c.ready() != (test.status == "") {
				t.Errorf("status %q, want %q", status, test.status)
			}
			var tasks []int32
			for _, s := range c.subtopologies {
				tasks = append(tasks, s.tasks)
			}
			if !slices.Equal(tasks, test.tasks) {
				t.Errorf("tasks %v, want %v", tasks, test.tasks)
			}
			missing := make(map[string]int32)
			for _, m := range c.missing {
				missing[m.Name] = m.Partitions
				if m.Name == "c" && (m.ReplicationFactor != -1 || m.Configs["cleanup.policy"] != "compact") || m.Name == "r" && m.ReplicationFactor != 2 {
					t.Errorf("%+v", m)
				}
			}
			if !maps.Equal(missing, test.missing) {
				t.Errorf("missing %v, want %v", missing, test.missing)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	topology := newTopology(&kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []subtopology{sub(t, "0", "src in; rep r:1; sink r; log c")}})
	of := func(topics map[string]Topic) string {
		return fingerprint(topology, func(name string) (Topic, bool) { topic, ok := topics[name]; return topic, ok })
	}
	seen := map[string]string{}
	for name, topics := range map[string]map[string]Topic{
		"none":           {},
		"the source":     {"in": {Partitions: 1}},
		"recreated":      {"in": {ID: [16]byte{1}, Partitions: 1}},
		"grown":          {"in": {Partitions: 2}},
		"a changelog":    {"in": {Partitions: 1}, "c": {Partitions: 1}},
		"repartitioning": {"in": {Partitions: 1}, "r": {Partitions: 1}},
	} {
		got := of(topics)
		if other, dup := seen[got]; dup {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[got] = name
	}
	if got := of(map[string]Topic{"unrelated": {Partitions: 1}}); got != "" {
		t.Errorf("a topic that is not needed counts: %q", got)
	}
}

func TestTopologyEqual(t *testing.T) {
	build := func(change func(*subtopology)) *topology {
		s := sub(t, "0", "src a b; sink r; rep q:1; log c; together src0 rep0")
		if change != nil {
			change(&s)
		}
		return newTopology(&kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []subtopology{s, sub(t, "1", "src z")}})
	}
	if !build(nil).equal(build(nil)) {
		t.Error("a topology differs from itself")
	}
	for name, change := range map[string]func(*subtopology){
		"id":                 func(s *subtopology) { s.SubtopologyID = "2" },
		"sources":            func(s *subtopology) { s.SourceTopics = []string{"b", "a"} },
		"regex":              func(s *subtopology) { s.SourceTopicRegex = []string{".*"} },
		"sinks":              func(s *subtopology) { s.RepartitionSinkTopics = nil },
		"repartition topics": func(s *subtopology) { s.RepartitionSourceTopics[0].NumPartitions = 2 },
		"changelogs":         func(s *subtopology) { s.StateChangelogTopics[0].ReplicationFactor = 2 },
		"changelog configs":  func(s *subtopology) { s.StateChangelogTopics[0].Configs[0].Value = "delete" },
		"copartition groups": func(s *subtopology) { s.CopartitionGroups[0].SourceTopics[0] = 1 },
	} {
		if build(nil).equal(build(change)) {
			t.Errorf("a change of the %s is not noticed", name)
		}
	}
}
