package mirror_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/mirror"
)

// situation is an application with two input partitions, of which one is mirrored
// further than the checkpoint, and with internal topics that end at it.
type situation struct {
	app        mirror.Application
	checkpoint mirror.Checkpoint
	on         mirror.Mirrored
}

func good() situation {
	s := situation{
		app: mirror.Application{Inputs: []string{"in"}, Repartitions: []string{"rep"}, Changelogs: []string{"log"}, Outputs: []string{"out"}},
		checkpoint: mirror.Checkpoint{
			Committed: map[string]map[int32]mirror.Commit{"in": {0: {Offset: 10, Metadata: "time"}, 1: {Offset: 20}}, "rep": {0: {Offset: 30}}},
			Ends:      map[string]map[int32]int64{"rep": {0: 30}, "log": {0: 25}},
			Exact:     true,
		},
		on: mirror.Mirrored{States: make(mirror.States), Logs: mirror.Logs{"in": {}, "rep": {}, "log": {}}},
	}
	s.mirrored("in", 0, 0, 12)
	s.mirrored("in", 1, 0, 20)
	s.mirrored("rep", 0, 28, 30)
	s.mirrored("log", 0, 0, 25)
	return s
}

// mirrored says that a partition has a log, all of which was mirrored.
func (s *situation) mirrored(topic string, partition int32, start, end int64) {
	s.on.Logs[topic][partition] = mirror.Log{Start: start, End: end}
	s.on.States.Set(topic, partition, mirror.Partition{LastMirroredOffset: end - 1, State: mirror.Stopped})
}

func (s *situation) state(topic string, partition int32, state mirror.State) {
	p, _ := s.on.States.Lookup(topic, partition)
	p.State = state
	s.on.States.Set(topic, partition, p)
}

type starts = map[string]map[int32]mirror.Commit

func TestSafe(t *testing.T) {
	resumed := starts{"in": {0: {Offset: 10, Metadata: "time"}, 1: {Offset: 20}}, "rep": {0: {Offset: 30}}}
	fromStart := starts{"in": {0: {}, 1: {}}}
	for name, test := range map[string]struct {
		change   func(*situation)
		strategy mirror.Strategy
		starts   starts
		deletes  []string
	}{
		"all agrees": {func(*situation) {}, mirror.Resume, resumed, nil},
		"new records on the mirror": {func(s *situation) {
			s.on.Logs["in"][1] = mirror.Log{End: 50}
		}, mirror.Resume, resumed, nil},
		"the last mirrored offset taken for the end": {func(s *situation) { // as a draft of the KIP has it
			s.on.States.Set("log", 0, mirror.Partition{LastMirroredOffset: 25, State: mirror.Stopped})
		}, mirror.Resume, resumed, nil},
		"nothing was ever there": {func(s *situation) {
			s.mirrored("in", 1, 0, 0)
			delete(s.checkpoint.Committed["in"], 1)
		}, mirror.Resume, starts{"in": {0: {Offset: 10, Metadata: "time"}, 1: {}}, "rep": {0: {Offset: 30}}}, nil},
		"input is behind, but there is no state": {func(s *situation) {
			s.app.Repartitions, s.app.Changelogs = nil, nil
			s.checkpoint.Exact, s.checkpoint.Ends = false, nil
			s.mirrored("in", 0, 0, 8)
		}, mirror.Resume, starts{"in": {0: {Offset: 8}, 1: {Offset: 20}}}, nil},

		"state is behind": {func(s *situation) { s.mirrored("log", 0, 0, 24) }, mirror.Rebuild, fromStart, []string{"log", "rep"}},
		"state is ahead":  {func(s *situation) { s.mirrored("log", 0, 0, 26) }, mirror.Rebuild, fromStart, []string{"log", "rep"}},
		"state is ahead of what the mirror vouches for": {func(s *situation) {
			s.on.Logs["log"][0] = mirror.Log{End: 26}
		}, mirror.Rebuild, fromStart, []string{"log", "rep"}},
		"repartition topic is ahead": {func(s *situation) { s.mirrored("rep", 0, 0, 31) }, mirror.Rebuild, fromStart, []string{"log", "rep"}},
		"input is behind":            {func(s *situation) { s.mirrored("in", 1, 0, 19) }, mirror.Rebuild, fromStart, []string{"log", "rep"}},
		"not exact":                  {func(s *situation) { s.checkpoint.Exact = false }, mirror.Rebuild, fromStart, []string{"log", "rep"}},
		"no checkpoint":              {func(s *situation) { s.checkpoint = mirror.Checkpoint{} }, mirror.Rebuild, fromStart, []string{"log", "rep"}},
		"an internal topic isn't there": {func(s *situation) {
			delete(s.on.Logs, "log")
			delete(s.on.States, "log")
		}, mirror.Rebuild, fromStart, []string{"rep"}},
		"internal topics aren't mirrored": {func(s *situation) {
			delete(s.on.States, "log")
			delete(s.on.States, "rep")
		}, mirror.Rebuild, fromStart, []string{"log", "rep"}},

		"repeats are allowed, but not needed": {func(s *situation) { s.app.AllowRepeats = true }, mirror.Resume, resumed, nil},
		"state is ahead, and may be": {func(s *situation) {
			s.app.AllowRepeats, s.checkpoint.Exact = true, false
			s.mirrored("log", 0, 0, 29)
			s.mirrored("in", 0, 5, 12)
		}, mirror.Repeat, resumed, nil},
		"input is behind, and state may be ahead": {func(s *situation) {
			s.app.AllowRepeats = true
			s.mirrored("in", 0, 5, 8)
		}, mirror.Repeat, starts{"in": {0: {Offset: 8}, 1: {Offset: 20}}, "rep": {0: {Offset: 30}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			test.change(&s)
			plan, err := mirror.Safe(s.app, s.checkpoint, s.on)
			if err != nil {
				t.Fatal(err)
			}
			if plan.Strategy != test.strategy {
				t.Errorf("the strategy is to %s", plan.Strategy)
			}
			if got := plan.Starts(); !reflect.DeepEqual(got, test.starts) {
				t.Errorf("starts at %v, want %v", got, test.starts)
			}
			if got := plan.Deletes(); !reflect.DeepEqual(got, test.deletes) {
				t.Errorf("deletes %v, want %v", got, test.deletes)
			}
		})
	}
}

// What is in the way is said for each strategy, with what can be done.
func TestUnsafe(t *testing.T) {
	noRebuild := func(s *situation) { s.app.Outputs = []string{"in"} }
	for name, test := range map[string]struct {
		change func(*situation)
		says   []string
	}{
		"mirroring": {func(s *situation) { s.state("in", 1, mirror.Mirroring) }, []string{
			"it can't resume: in-1: it is MIRRORING", "stop the mirror, and wait until it is STOPPED", "it can't rebuild its state from its inputs: in-1: it is MIRRORING"}},
		"paused changelog":       {func(s *situation) { s.state("log", 0, mirror.Paused) }, []string{"can't resume: log-0: it is PAUSED", "can't rebuild its state from its inputs: log-0: it is PAUSED"}},
		"failed":                 {func(s *situation) { s.state("in", 0, mirror.Failed) }, []string{"in-0: mirroring it has failed"}},
		"unknown":                {func(s *situation) { s.state("in", 0, mirror.StateUnknown) }, []string{"in-0: the state of the mirror is unknown; check Config.States"}},
		"not mirrored":           {func(s *situation) { delete(s.on.States["in"], 1) }, []string{"in-1: the mirror doesn't have it"}},
		"no such topic":          {func(s *situation) { delete(s.on.Logs, "in") }, []string{"in: the mirror cluster has no such topic; mirror it"}},
		"no such partition":      {func(s *situation) { delete(s.on.Logs["in"], 1) }, []string{"in-1: the topic on the mirror cluster has no such partition; it has 1"}},
		"no inputs":              {func(s *situation) { s.app.Inputs = nil }, []string{"no input topics are given"}},
		"committed gone":         {func(s *situation) { s.mirrored("in", 0, 11, 12) }, []string{"can't resume: in-0: offset 10 was committed, but the first record on the mirror has offset 11", "can't rebuild its state from its inputs: in-0: the first record on the mirror has offset 11"}},
		"never committed":        {func(s *situation) { s.mirrored("in", 0, 3, 12); delete(s.checkpoint.Committed["in"], 0) }, []string{"in-0: nothing was committed, and the first record on the mirror has offset 3"}},
		"writes to itself":       {func(s *situation) { noRebuild(s); s.checkpoint.Exact = false }, []string{"can't resume: the checkpoint isn't exact", "inputs: in: the application writes to it too"}},
		"no checkpoint":          {func(s *situation) { noRebuild(s); s.checkpoint = mirror.Checkpoint{} }, []string{"can't resume: no committed offsets are given"}},
		"no end":                 {func(s *situation) { noRebuild(s); delete(s.checkpoint.Ends["log"], 0) }, []string{"can't resume: log-0: the checkpoint doesn't say where it ended"}},
		"state behind":           {func(s *situation) { noRebuild(s); s.mirrored("log", 0, 0, 20) }, []string{"can't resume: log-0: it is mirrored up to offset 20, but ended at 25"}},
		"state ahead":            {func(s *situation) { noRebuild(s); s.mirrored("log", 0, 0, 27) }, []string{"can't resume: log-0: it has records up to offset 27, 2 more than at the checkpoint"}},
		"input behind":           {func(s *situation) { noRebuild(s); s.mirrored("in", 1, 0, 15) }, []string{"can't resume: in-1: offset 20 was committed, but it is mirrored only up to 15"}},
		"several":                {func(s *situation) { noRebuild(s); s.mirrored("log", 0, 0, 27); s.mirrored("in", 1, 0, 15) }, []string{"can't resume: in-1: ", "(and 1 more)"}},
		"repeating is wrong":     {func(s *situation) { noRebuild(s); s.app.AllowRepeats = true; s.mirrored("rep", 0, 28, 29) }, []string{"can't resume and repeat some records: rep-0: it is mirrored up to offset 29, but ended at 30"}},
		"repeats aren't allowed": {func(s *situation) { noRebuild(s); s.mirrored("log", 0, 0, 27) }, []string{"application writes to it too"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			test.change(&s)
			plan, err := mirror.Safe(s.app, s.checkpoint, s.on)
			var unsafe *mirror.UnsafeError
			if !errors.Is(err, mirror.ErrUnsafe) || !errors.As(err, &unsafe) {
				t.Fatalf("the plan is to %s: %v, %v", plan.Strategy, plan.Starts(), err)
			}
			for _, text := range test.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q isn't in %q", text, err)
				}
			}
			if strings.Contains(err.Error(), "repeat") && !s.app.AllowRepeats {
				t.Errorf("repeats aren't allowed, but spoken of: %v", err)
			}
			if len(plan.Starts()) > 0 {
				t.Errorf("starts at %v", plan.Starts())
			}
			tried := make(map[mirror.Strategy]bool)
			for _, o := range unsafe.Obstacles {
				tried[o.Strategy] = true
			}
			if !tried[mirror.Resume] || !tried[mirror.Rebuild] {
				t.Errorf("obstacles %v", unsafe.Obstacles)
			}
		})
	}
}

// A plan shows all that is known of the partitions, in order, also where there is
// nothing to start by.
func TestPlanShows(t *testing.T) {
	s := good()
	s.state("in", 0, mirror.Mirroring)
	s.checkpoint.Committed["in"][7] = mirror.Commit{Offset: 1}
	plan, err := mirror.Safe(s.app, s.checkpoint, s.on)
	if err == nil {
		t.Fatal("a mirror at work is safe")
	}
	want := []mirror.PartitionPlan{
		{Topic: "in", Partition: 0, Role: mirror.Input, Mirrored: true, State: mirror.Mirroring, LastMirroredOffset: 11, Log: mirror.Log{End: 12}, MirroredEnd: 12, Committed: 10, End: -1, Start: -1},
		{Topic: "in", Partition: 1, Role: mirror.Input, Mirrored: true, State: mirror.Stopped, LastMirroredOffset: 19, Log: mirror.Log{End: 20}, MirroredEnd: 20, Committed: 20, End: -1, Start: -1},
		{Topic: "in", Partition: 7, Role: mirror.Input, LastMirroredOffset: -1, Log: mirror.Log{Start: -1, End: -1}, MirroredEnd: -1, Committed: 1, End: -1, Start: -1},
		{Topic: "rep", Partition: 0, Role: mirror.Repartition, Mirrored: true, State: mirror.Stopped, LastMirroredOffset: 29, Log: mirror.Log{Start: 28, End: 30}, MirroredEnd: 30, Committed: 30, End: 30, Start: -1},
		{Topic: "log", Partition: 0, Role: mirror.Changelog, Mirrored: true, State: mirror.Stopped, LastMirroredOffset: 24, Log: mirror.Log{End: 25}, MirroredEnd: 25, Committed: -1, End: 25, Start: -1},
	}
	if len(plan.Partitions) != len(want) {
		t.Fatalf("%d partitions", len(plan.Partitions))
	}
	for i, p := range plan.Partitions {
		if got := visible(p); got != want[i] {
			t.Errorf("%+v, want\n%+v", got, want[i])
		}
	}
}

// visible is what a caller sees of a partition.
func visible(p mirror.PartitionPlan) mirror.PartitionPlan {
	return mirror.PartitionPlan{
		Topic: p.Topic, Partition: p.Partition, Role: p.Role, Mirrored: p.Mirrored, State: p.State, LastMirroredOffset: p.LastMirroredOffset,
		Log: p.Log, MirroredEnd: p.MirroredEnd, Committed: p.Committed, End: p.End, Start: p.Start,
	}
}

func TestApplicationOf(t *testing.T) {
	source := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
	source.SourceTopics = []string{"lines"}
	source.RepartitionSinkTopics = []string{"app-words-repartition"}
	counts := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
	counts.SourceTopics = []string{"names", "lines"}
	counts.RepartitionSourceTopics = []kmsg.TopicInfo{{Topic: "app-words-repartition"}}
	counts.StateChangelogTopics = []kmsg.TopicInfo{{Topic: "app-counts-changelog"}, {Topic: "app-a-changelog"}}
	group := kmsg.NewStreamsGroupDescribeResponseGroup()
	if got := mirror.ApplicationOf(&group); !reflect.DeepEqual(got, mirror.Application{}) {
		t.Errorf("without a topology: %+v", got)
	}
	group.Topology = &kmsg.StreamsGroupDescribeResponseGroupTopology{Subtopologies: []kmsg.StreamsGroupDescribeResponseGroupTopologySubtopology{source, counts}}
	want := mirror.Application{
		Inputs:       []string{"lines", "names"},
		Repartitions: []string{"app-words-repartition"},
		Changelogs:   []string{"app-a-changelog", "app-counts-changelog"},
	}
	if got := mirror.ApplicationOf(&group); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	group.TopologyDescription = &kmsg.StreamsGroupDescribeResponseGroupTopologyDescription{Subtopologies: []kmsg.TopologyDescriptionSubtopology{{
		Nodes: []kmsg.TopologyDescriptionNode{{SinkTopic: kmsg.StringPtr("counts")}, {SinkTopic: kmsg.StringPtr("app-words-repartition")}, {}},
	}}}
	want.Outputs = []string{"counts"}
	if got := mirror.ApplicationOf(&group); !reflect.DeepEqual(got, want) {
		t.Errorf("with the description: %+v", got)
	}
}
