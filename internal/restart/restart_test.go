package restart_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/odradek-go/odradek/internal/restart"
	"github.com/odradek-go/odradek/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const group = "app"

func start(t *testing.T) (context.Context, *streamstest.Broker, *kgo.Client) {
	t.Helper()
	b, err := streamstest.NewBroker(streamstest.WithKfake(kfake.SeedTopics(1, "in", "app-log-changelog")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	kafka, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx, b, kafka
}

func offsets(at map[string]int64) kadm.Offsets {
	o := make(kadm.Offsets)
	for topic, offset := range at {
		o.Add(kadm.Offset{Topic: topic, At: offset, LeaderEpoch: -1})
	}
	return o
}

// Topics go, with what was committed of them, and offsets are committed; once more
// does no harm.
func TestApply(t *testing.T) {
	ctx, b, kafka := start(t)
	adm := kadm.NewClient(kafka)
	if err := adm.CommitAllOffsets(ctx, group, offsets(map[string]int64{"in": 5, "app-log-changelog": 7})); err != nil {
		t.Fatal(err)
	}
	change := restart.Change{Commits: offsets(map[string]int64{"in": 3}), Deletes: []string{"app-log-changelog", "app-never-was"}}
	for range 2 {
		if err := change.Apply(ctx, kafka, group); err != nil {
			t.Fatal(err)
		}
		left, err := adm.FetchOffsets(ctx, group)
		if err != nil || len(left) != 1 || left["in"][0].At != 3 {
			t.Errorf("committed %v, %v", left, err)
		}
		if b.Cluster().TopicInfo("app-log-changelog") != nil {
			t.Error("the topic is still there")
		}
	}
	if known, err := restart.Inactive(ctx, adm, group); err != nil || !known {
		t.Errorf("known: %v, %v", known, err)
	}
	if known, err := restart.Inactive(ctx, adm, "nobody"); err != nil || known {
		t.Errorf("known: %v, %v", known, err)
	}
}

// Nothing is changed while a streams group has a member.
func TestActive(t *testing.T) {
	ctx, b, kafka := start(t)
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberID, req.RebalanceTimeoutMillis = group, "member", 1000
	sub := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
	sub.SubtopologyID, sub.SourceTopics = "0", []string{"in"}
	req.Topology = &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{sub}}
	req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
	req.ProcessID = kmsg.StringPtr("process")
	resp, err := kafka.Broker(0).Request(ctx, req)
	if err != nil || resp.(*kmsg.StreamsGroupHeartbeatResponse).ErrorCode != 0 {
		t.Fatalf("%+v, %v", resp, err)
	}
	change := restart.Change{Commits: offsets(map[string]int64{"in": 3}), Deletes: []string{"app-log-changelog"}}
	if err := change.Apply(ctx, kafka, group); !errors.Is(err, restart.ErrGroupActive) {
		t.Errorf("the error is %v", err)
	}
	if b.Cluster().TopicInfo("app-log-changelog") == nil {
		t.Error("the topic was deleted")
	}
}

// What the broker refuses is said, and nothing after it is done.
func TestRefused(t *testing.T) {
	ctx, b, kafka := start(t)
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DeleteTopics}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	change := restart.Change{Commits: offsets(map[string]int64{"in": 3}), Deletes: []string{"app-log-changelog"}}
	if err := change.Apply(ctx, kafka, group); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("the error is %v", err)
	}
	if b.Cluster().GroupInfo(group) != nil {
		t.Error("offsets were committed")
	}
}
