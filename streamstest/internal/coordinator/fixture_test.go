package coordinator

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fixture is a coordinator with one group, a clock and topics.
type fixture struct {
	t        *testing.T
	c        *Coordinator
	now      time.Time
	topics   map[string]Topic
	topology *kmsg.StreamsGroupHeartbeatRequestTopology
	create   bool // internal topics come to be when they are missing
	missing  []NewTopic
}

const app = "app"

func newFixture(t *testing.T, change func(*Config)) *fixture {
	config := Config{
		SessionTimeout: 45 * time.Second, HeartbeatInterval: 5 * time.Second, TaskOffsetInterval: time.Minute,
		AcceptableRecoveryLag: 10, MaxSize: 100, TopologyDescriptions: true,
	}
	if change != nil {
		change(&config)
	}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	return &fixture{
		t: t, c: New(config, slog.New(slog.DiscardHandler)), now: time.UnixMilli(1_700_000_000_000),
		topics: map[string]Topic{"in": {ID: [16]byte{1}, Partitions: 4}},
		topology: &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []subtopology{{
			SubtopologyID: "0", SourceTopics: []string{"in"}, StateChangelogTopics: []kmsg.TopicInfo{{Topic: "changelog"}},
		}}},
		create: true,
	}
}

func (f *fixture) send(id string, epoch int32, changes ...func(*kmsg.StreamsGroupHeartbeatRequest)) *kmsg.StreamsGroupHeartbeatResponse {
	f.t.Helper()
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Version = 1
	req.Group, req.MemberID, req.MemberEpoch, req.EndpointInformationEpoch = app, id, epoch, -1
	if epoch == joinEpoch {
		req.Topology, req.RebalanceTimeoutMillis, req.ProcessID = f.topology, 10_000, kmsg.StringPtr("process of "+id)
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
	}
	for _, change := range changes {
		change(req)
	}
	resp, missing := f.c.Heartbeat(f.now, req, Client{}, Cluster{
		Topics:     func(name string) (Topic, bool) { t, ok := f.topics[name]; return t, ok },
		TopicNames: slices.Sorted(maps.Keys(f.topics)),
		OtherGroup: func(string) OtherGroup { return NoOtherGroup },
	})
	f.missing = missing
	for _, m := range missing {
		if f.create {
			f.topics[m.Name] = Topic{ID: [16]byte{9}, Partitions: m.Partitions}
		}
	}
	return resp
}

// owns makes a heartbeat one that acknowledges active tasks of subtopology 0.
func owns(partitions ...int32) func(*kmsg.StreamsGroupHeartbeatRequest) {
	return func(req *kmsg.StreamsGroupHeartbeatRequest) {
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		if len(partitions) > 0 {
			req.ActiveTasks = []kmsg.TaskIDs{{SubtopologyID: "0", Partitions: partitions}}
		}
	}
}

func instance(id string) func(*kmsg.StreamsGroupHeartbeatRequest) {
	return func(req *kmsg.StreamsGroupHeartbeatRequest) { req.InstanceID = &id }
}

func ofProcess(id string) func(*kmsg.StreamsGroupHeartbeatRequest) {
	return func(req *kmsg.StreamsGroupHeartbeatRequest) { req.ProcessID = &id }
}

func endpoint(host string) func(*kmsg.StreamsGroupHeartbeatRequest) {
	return func(req *kmsg.StreamsGroupHeartbeatRequest) {
		req.UserEndpoint = &kmsg.StreamsGroupHeartbeatRequestUserEndpoint{Host: host, Port: 1}
	}
}

// offsetsOf reports positions of tasks of subtopology 0: partition, position, end.
func offsetsOf(tasks ...[3]int64) func(*kmsg.StreamsGroupHeartbeatRequest) {
	return func(req *kmsg.StreamsGroupHeartbeatRequest) {
		req.TaskOffsets, req.TaskEndOffsets = []kmsg.TaskOffset{}, []kmsg.TaskOffset{}
		for _, t := range tasks {
			req.TaskOffsets = append(req.TaskOffsets, kmsg.TaskOffset{SubtopologyID: "0", Partition: int32(t[0]), Offset: t[1]})
			req.TaskEndOffsets = append(req.TaskEndOffsets, kmsg.TaskOffset{SubtopologyID: "0", Partition: int32(t[0]), Offset: t[2]})
		}
	}
}

// expect checks an answer: its error, or the member's epoch and its active tasks of subtopology 0, nil for unchanged.
func (f *fixture) expect(what string, resp *kmsg.StreamsGroupHeartbeatResponse, code int16, epoch int32, active []int32) {
	f.t.Helper()
	if resp.ErrorCode != code {
		message := ""
		if resp.ErrorMessage != nil {
			message = *resp.ErrorMessage
		}
		f.t.Fatalf("%s: error %d %s, want %d", what, resp.ErrorCode, message, code)
	}
	if code != 0 {
		return
	}
	var got []int32
	if resp.ActiveTasks != nil {
		got = []int32{}
	}
	for _, t := range resp.ActiveTasks {
		got = append(got, t.Partitions...)
	}
	if resp.MemberEpoch != epoch || (got == nil) != (active == nil) || !slices.Equal(got, active) {
		f.t.Fatalf("%s: epoch %d and tasks %v (unchanged: %v), want %d and %v", what, resp.MemberEpoch, got, got == nil, epoch, active)
	}
}

// alone makes a group in which member a runs all four tasks, at epoch 3.
func (f *fixture) alone() {
	f.t.Helper()
	f.expect("a joins", f.send("a", 0), 0, 2, []int32{})
	f.expect("a is told", f.send("a", 2), 0, 3, []int32{0, 1, 2, 3})
	f.expect("a acknowledges", f.send("a", 3, owns(0, 1, 2, 3)), 0, 3, nil)
}

func hasStatus(resp *kmsg.StreamsGroupHeartbeatResponse, code int8) bool {
	return slices.ContainsFunc(resp.Status, func(s kmsg.StreamsGroupHeartbeatResponseStatus) bool { return s.StatusCode == code })
}
