package coordinator

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestReplay puts the recorded requests to the coordinator and expects the recorded answers, apart from the order of
// things that Kafka keeps in hash maps.
func TestReplay(t *testing.T) {
	recorded := Config{
		SessionTimeout: 6 * time.Second, HeartbeatInterval: time.Second, TaskOffsetInterval: 3 * time.Second,
		AcceptableRecoveryLag: 10000, MaxSize: 100, TopologyDescriptions: true,
	}
	stock := Config{
		SessionTimeout: 45 * time.Second, HeartbeatInterval: 5 * time.Second, InitialRebalanceDelay: 3 * time.Second,
		AssignmentInterval: time.Second, TaskOffsetInterval: time.Minute,
		AcceptableRecoveryLag: 10000, MaxSize: 100, TopologyDescriptions: true,
	}
	with := func(f func(*Config)) Config {
		c := recorded
		f(&c)
		return c
	}
	standby := with(func(c *Config) { c.NumStandbyReplicas = 1 })
	for name, config := range map[string]Config{
		"01-join-alone":                         recorded,
		"02-second-member-active-move":          recorded,
		"03-standby1":                           standby,
		"05-static-membership":                  recorded,
		"06-close-variants-dynamic":             recorded,
		"07-shutdown-application":               recorded,
		"08-missing-source":                     recorded,
		"09-wrong-copartitioning":               recorded,
		"10-topology-change":                    recorded,
		"11-fenced-sigstop":                     recorded,
		"15-iq-user-endpoint":                   standby,
		"23-restart-with-state-task-offsets":    recorded,
		"25-stock-config":                       stock,
		"27-max-poll-interval":                  recorded,
		"30-client-tags":                        with(func(c *Config) { c.NumStandbyReplicas = 1; c.RackAwareTags = []string{"zone"} }),
		"32-classic-group-in-the-way":           recorded,
		"34-classic-group-empty":                recorded,
		"35-two-stores-task-offset-sum":         standby,
		"36-source-topic-deleted":               recorded,
		"37-topology-change-after-group-delete": recorded,
		"38-static-member-fatal-error":          recorded,
	} {
		t.Run(name, func(t *testing.T) { replay(t, name, config) })
	}
}

func replay(t *testing.T, name string, config Config) {
	c := New(config, slog.New(slog.DiscardHandler))
	topics, created := make(map[string]Topic), make(map[string]Topic)
	other := NoOtherGroup
	cluster := Cluster{
		Topics:     func(name string) (Topic, bool) { topic, ok := topics[name]; return topic, ok },
		OtherGroup: func(string) OtherGroup { return other },
	}
	start := time.UnixMilli(1_700_000_000_000)
	for i, e := range readExchanges(t, name) {
		now := start.Add(time.Duration(e.T) * time.Millisecond)
		if e.Req == nil {
			if strings.HasPrefix(e.Mark, "deleteStreamsGroups") {
				for _, group := range c.Groups() {
					if err := c.Delete(now, group); err != nil {
						t.Fatal(err)
					}
				}
			}
			continue
		}
		arrangeTopics(e, topics, created)
		other = NoOtherGroup
		if e.Rsp.ErrorCode == 69 {
			other = OtherGroupInUse
		} else if strings.HasPrefix(name, "34") {
			other = EmptyClassic
		}
		resp, missing := c.Heartbeat(now, e.Req.wire(), Client{ID: e.Client, Host: "/127.0.0.1"}, cluster)
		for _, topic := range missing {
			created[topic.Name] = Topic{ID: [16]byte{1}, Partitions: topic.Partitions}
		}
		if got, want := describeAnswer(jsonResponse(t, resp)), describeAnswer(e.Rsp); got != want {
			t.Fatalf("exchange %d at %d ms, member %s epoch %d:\ngot  %s\n\nwant %s", i+1, e.T, e.Req.MemberID, e.Req.MemberEpoch, got, want)
		}
		if resp.TopologyDescriptionRequired {
			push := kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()
			push.Group, push.MemberID = e.Req.GroupID, e.Req.MemberID
			if r := c.UpdateTopologyDescription(now, push); r.ErrorCode != 0 {
				t.Fatalf("topology description: %d", r.ErrorCode)
			}
		}
	}
}

// arrangeTopics brings the topics into the state that the recorded answer tells of: internal topics appear a while
// after they were found missing, or are there from an earlier run; source topics come and go.
func arrangeTopics(e exchange, topics, created map[string]Topic) {
	source, internal := [16]byte{'s'}, [16]byte{1}
	status := make(map[int8]string)
	for _, s := range e.Rsp.Status {
		status[s.StatusCode] = s.StatusDetail
	}
	_, internalMissing := status[StatusMissingInternalTopics]
	sourceMissing := status[StatusMissingSourceTopics]
	_, wrong := status[StatusIncorrectlyPartitionedTopics]
	usable := !internalMissing && sourceMissing == "" && !wrong && e.Rsp.ErrorCode == 0
	if e.Req.Topology != nil {
		for _, s := range e.Req.Topology.Subtopologies {
			for _, name := range s.SourceTopics {
				partitions := int32(4)
				if strings.HasSuffix(name, "-table") {
					partitions = 3
				}
				created[name] = Topic{ID: source, Partitions: partitions}
			}
			for _, topic := range slices.Concat(s.RepartitionSourceTopics, s.StateChangelogTopics) {
				if usable {
					created[topic.Name] = Topic{ID: internal, Partitions: 4}
				}
			}
		}
	}
	for name, topic := range created {
		switch {
		case strings.Contains(sourceMissing, name):
			delete(topics, name)
		case topic.ID == source || usable:
			topics[name] = topic
		}
	}
}
