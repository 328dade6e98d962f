package streamstest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/odradek-go/odradek/streamstest"
)

// start starts a broker with a topic of four partitions, and a client for it.
func start(t *testing.T, opts ...streamstest.Option) (*streamstest.Broker, *kgo.Client) {
	t.Helper()
	b, err := streamstest.NewBroker(append([]streamstest.Option{
		streamstest.WithKfake(kfake.SeedTopics(4, "in")),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b, connect(t, b)
}

func connect(t *testing.T, b *streamstest.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addrs()...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// request sends a request to one node, as the streams-group requests have to be.
func request[R kmsg.Response](t *testing.T, cl *kgo.Client, node int32, req kmsg.Request) R {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	resp, err := cl.Broker(int(node)).Request(ctx, req)
	if err != nil {
		t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp.(R)
}

// counting is a topology with a store: in → count, one changelog.
func counting() *kmsg.StreamsGroupHeartbeatRequestTopology {
	s := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
	s.SubtopologyID = "0"
	s.SourceTopics = []string{"in"}
	changelog := kmsg.NewTopicInfo()
	changelog.Topic = "app-counts-changelog"
	policy := kmsg.NewTopicInfoConfig()
	policy.Key, policy.Value = "cleanup.policy", "compact"
	changelog.Configs = []kmsg.TopicInfoConfig{policy}
	s.StateChangelogTopics = []kmsg.TopicInfo{changelog}
	return &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{s}}
}

// member speaks for one member of the group app. It does at once what it is told.
type member struct {
	t       *testing.T
	b       *streamstest.Broker
	cl      *kgo.Client
	id      string
	process string
	version int16

	instance *string
	epoch    int32
	owned    kmsg.StreamsAssignment
	told     bool // owned is new to the member, and not acknowledged
}

const group = "app"

func newMember(t *testing.T, b *streamstest.Broker, cl *kgo.Client, id string) *member {
	return &member{t: t, b: b, cl: cl, id: id, process: "process of " + id, version: 1}
}

// send sends a heartbeat after the changes.
func (m *member) send(change func(*kmsg.StreamsGroupHeartbeatRequest)) *kmsg.StreamsGroupHeartbeatResponse {
	m.t.Helper()
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch, req.InstanceID = group, m.id, m.epoch, m.instance
	req.EndpointInformationEpoch = -1
	if change != nil {
		change(req)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	resp, err := m.cl.Broker(int(m.b.Cluster().CoordinatorFor(group))).Request(ctx, req)
	if err != nil {
		m.t.Fatalf("heartbeat of %s: %v", m.id, err)
	}
	answer := resp.(*kmsg.StreamsGroupHeartbeatResponse)
	if answer.ErrorCode == 0 {
		m.epoch = answer.MemberEpoch
	}
	return answer
}

// join joins, or rejoins, with the topology.
func (m *member) join(topology *kmsg.StreamsGroupHeartbeatRequestTopology) *kmsg.StreamsGroupHeartbeatResponse {
	m.t.Helper()
	m.epoch = 0
	resp := m.send(func(req *kmsg.StreamsGroupHeartbeatRequest) {
		req.Topology = topology
		req.RebalanceTimeoutMillis = 60_000
		req.ProcessID = &m.process
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		req.ClientTags = []kmsg.StreamsGroupHeartbeatRequestClientTag{}
	})
	m.take(resp)
	return resp
}

func (m *member) take(resp *kmsg.StreamsGroupHeartbeatResponse) {
	if resp.ErrorCode == 0 && resp.ActiveTasks != nil {
		m.owned = kmsg.StreamsAssignment{ActiveTasks: resp.ActiveTasks, StandbyTasks: resp.StandbyTasks, WarmupTasks: resp.WarmupTasks}
		m.told = true
	}
}

// heartbeat sends a heartbeat, returns its answer, and acknowledges what comes of it.
func (m *member) heartbeat() *kmsg.StreamsGroupHeartbeatResponse {
	m.t.Helper()
	resp := m.send(nil)
	m.take(resp)
	for last := resp; m.told && last.ErrorCode == 0; {
		last = m.acknowledge()
	}
	return resp
}

func (m *member) acknowledge() *kmsg.StreamsGroupHeartbeatResponse {
	m.t.Helper()
	m.told = false
	resp := m.send(func(req *kmsg.StreamsGroupHeartbeatRequest) {
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = m.owned.ActiveTasks, m.owned.StandbyTasks, m.owned.WarmupTasks
	})
	m.take(resp)
	return resp
}

func (m *member) leave(epoch int32) *kmsg.StreamsGroupHeartbeatResponse {
	m.t.Helper()
	resp := m.send(func(req *kmsg.StreamsGroupHeartbeatRequest) { req.MemberEpoch = epoch })
	m.epoch = 0
	return resp
}

// active are the partitions of the member's active tasks of subtopology 0.
func (m *member) active() []int32 { return partitions(m.owned.ActiveTasks) }

func partitions(tasks []kmsg.TaskIDs) []int32 {
	out := []int32{}
	for _, t := range tasks {
		if t.SubtopologyID == "0" {
			out = append(out, t.Partitions...)
		}
	}
	slices.Sort(out)
	return out
}

// settle sends heartbeats of all members until the group is stable.
func settle(t *testing.T, b *streamstest.Broker, members ...*member) streamstest.GroupInfo {
	t.Helper()
	const enough = 20
	var g streamstest.GroupInfo
	for range enough {
		for _, m := range members {
			if resp := m.heartbeat(); resp.ErrorCode != 0 {
				t.Fatalf("heartbeat of %s: error %d", m.id, resp.ErrorCode)
			}
		}
		if g, _ = b.Group(group); g.State == streamstest.StateStable {
			return g
		}
	}
	t.Fatalf("the group does not become stable: %+v", g)
	return g
}

// maxVersion limits one request key of a client.
func maxVersion(key, version int16) *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(key, version)
	return v
}
