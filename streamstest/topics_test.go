package streamstest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest"
)

func TestTopicStatuses(t *testing.T) {
	status := func(resp *kmsg.StreamsGroupHeartbeatResponse) string {
		var out []string
		for _, s := range resp.Status {
			out = append(out, fmt.Sprintf("%d %s", s.StatusCode, s.StatusDetail))
		}
		return strings.Join(out, "; ")
	}
	t.Run("a source topic is missing, appears, and is deleted", func(t *testing.T) {
		b, cl := start(t)
		topology := counting()
		topology.Subtopologies[0].SourceTopics = []string{"late"}
		a := newMember(t, b, cl, "a")
		if got := status(a.join(topology)); got != "1 Source topics late are missing." {
			t.Errorf("join: %s", got)
		}
		if err := b.Cluster().CreateTopic("late", 2, nil); err != nil {
			t.Fatal(err)
		}
		if got := status(a.heartbeat()); got != "3 Internal topics are missing: app-counts-changelog" {
			t.Errorf("with the source topic: %s", got)
		}
		settle(t, b, a)
		if !slices.Equal(a.active(), []int32{0, 1}) {
			t.Errorf("a runs %v", a.active())
		}
		if err := b.Cluster().DeleteTopic("late"); err != nil {
			t.Fatal(err)
		}
		if got := status(a.heartbeat()); got != "1 Source topics late are missing." || len(a.active()) != 0 {
			t.Errorf("without it again: %s, a runs %v", got, a.active())
		}
	})
	t.Run("partitions are added below a changelog", func(t *testing.T) {
		b, cl := start(t)
		a := newMember(t, b, cl, "a")
		a.join(counting())
		settle(t, b, a)
		more := kmsg.NewPtrCreatePartitionsRequest()
		topic := kmsg.NewCreatePartitionsRequestTopic()
		topic.Topic, topic.Count = "in", 6
		more.Topics, more.TimeoutMillis = append(more.Topics, topic), 1000
		if resp := request[*kmsg.CreatePartitionsResponse](t, cl, 0, more); resp.Topics[0].ErrorCode != 0 {
			t.Fatalf("error %d", resp.Topics[0].ErrorCode)
		}
		want := "2 Existing topic app-counts-changelog has different number of partitions: expected 6, found 4"
		if got := status(a.heartbeat()); got != want {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an internal topic cannot be created", func(t *testing.T) {
		b, cl := start(t)
		b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.PolicyViolation})
		a := newMember(t, b, cl, "a")
		got := status(a.join(counting()))
		if !strings.HasPrefix(got, "3 Internal topics are missing: app-counts-changelog; Creation failed: app-counts-changelog (") {
			t.Errorf("got %s", got)
		}
		settle(t, b, a)
	})
	t.Run("a replication factor is respected", func(t *testing.T) {
		b, cl := start(t, streamstest.WithNodes(2))
		topology := counting()
		topology.Subtopologies[0].StateChangelogTopics[0].ReplicationFactor = 3
		a := newMember(t, b, cl, "a")
		if got := status(a.join(topology)); !strings.Contains(got, "Creation failed") {
			t.Errorf("3 of 2: %s", got)
		}
		a.leave(-1)
		for node := range int32(2) {
			req := kmsg.NewPtrDeleteGroupsRequest()
			req.Groups = []string{group}
			request[*kmsg.DeleteGroupsResponse](t, cl, node, req)
		}
		topology.Subtopologies[0].StateChangelogTopics[0].ReplicationFactor = 1
		a.join(topology)
		if info := b.Cluster().TopicInfo("app-counts-changelog"); info == nil || info.NumReplicas != 1 {
			t.Errorf("1 of 2: %+v", info)
		}
	})
}
