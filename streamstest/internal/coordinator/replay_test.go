package coordinator

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The files under testdata/recorded hold heartbeats of Java Kafka Streams 4.4.0 members and the answers of a 4.4.0
// broker, one exchange a line, in the order of the answers; null fields are left out. TestReplay puts the requests to
// the coordinator and expects the same answers, apart from the order of things that Kafka keeps in hash maps.

type (
	exchange struct {
		T      int64     `json:"t"` // ms since the start
		Client string    `json:"client"`
		Mark   string    `json:"mark"` // what was done at that time, instead of a request
		Req    *jRequest `json:"req"`
		Rsp    jResponse `json:"rsp"`
	}
	jRequest struct {
		GroupID                  string      `json:"groupId"`
		MemberID                 string      `json:"memberId"`
		MemberEpoch              int32       `json:"memberEpoch"`
		EndpointInformationEpoch int32       `json:"endpointInformationEpoch"`
		InstanceID               *string     `json:"instanceId"`
		RackID                   *string     `json:"rackId"`
		RebalanceTimeoutMs       int32       `json:"rebalanceTimeoutMs"`
		Topology                 *jTopology  `json:"topology"`
		ActiveTasks              []jTasks    `json:"activeTasks"`
		StandbyTasks             []jTasks    `json:"standbyTasks"`
		WarmupTasks              []jTasks    `json:"warmupTasks"`
		ProcessID                *string     `json:"processId"`
		UserEndpoint             *jEndpoint  `json:"userEndpoint"`
		ClientTags               []jKeyValue `json:"clientTags"`
		TaskOffsets              []jOffset   `json:"taskOffsets"`
		TaskEndOffsets           []jOffset   `json:"taskEndOffsets"`
		ShutdownApplication      bool        `json:"shutdownApplication"`
	}
	jTopology struct {
		Epoch         int32 `json:"epoch"`
		Subtopologies []struct {
			SubtopologyID           string   `json:"subtopologyId"`
			SourceTopics            []string `json:"sourceTopics"`
			RepartitionSinkTopics   []string `json:"repartitionSinkTopics"`
			RepartitionSourceTopics []jTopic `json:"repartitionSourceTopics"`
			StateChangelogTopics    []jTopic `json:"stateChangelogTopics"`
			CopartitionGroups       []struct {
				SourceTopics            []int16 `json:"sourceTopics"`
				RepartitionSourceTopics []int16 `json:"repartitionSourceTopics"`
			} `json:"copartitionGroups"`
		} `json:"subtopologies"`
	}
	jTopic struct {
		Name              string      `json:"name"`
		Partitions        int32       `json:"partitions"`
		ReplicationFactor int16       `json:"replicationFactor"`
		TopicConfigs      []jKeyValue `json:"topicConfigs"`
	}
	jKeyValue struct{ Key, Value string }
	jTasks    struct {
		SubtopologyID string  `json:"subtopologyId"`
		Partitions    []int32 `json:"partitions"`
	}
	jEndpoint struct {
		Host string
		Port uint16
	}
	jOffset struct {
		SubtopologyID string `json:"subtopologyId"`
		Partition     int32
		Offset        int64
	}
	jResponse struct {
		ErrorCode                   int16
		ErrorMessage                string
		MemberID                    string `json:"memberId"`
		MemberEpoch                 int32
		HeartbeatIntervalMs         int32
		TaskOffsetIntervalMs        int32
		AcceptableRecoveryLag       int64
		Status                      []jStatus
		ActiveTasks                 []jTasks
		StandbyTasks                []jTasks
		WarmupTasks                 []jTasks
		TopologyDescriptionRequired bool
		EndpointInformationEpoch    int32
		PartitionsByUserEndpoint    []jServed
	}
	jStatus struct {
		StatusCode   int8
		StatusDetail string
	}
	jServed struct {
		UserEndpoint                        jEndpoint
		ActivePartitions, StandbyPartitions []jPartitions
	}
	jPartitions struct {
		Topic      string
		Partitions []int32
	}
)

func wireTasks(in []jTasks) []kmsg.TaskIDs {
	if in == nil {
		return nil
	}
	out := []kmsg.TaskIDs{}
	for _, t := range in {
		out = append(out, kmsg.TaskIDs{SubtopologyID: t.SubtopologyID, Partitions: t.Partitions})
	}
	return out
}

func wireOffsets(in []jOffset) []kmsg.TaskOffset {
	if in == nil {
		return nil
	}
	out := []kmsg.TaskOffset{}
	for _, o := range in {
		out = append(out, kmsg.TaskOffset{SubtopologyID: o.SubtopologyID, Partition: o.Partition, Offset: o.Offset})
	}
	return out
}

func wireTopics(in []jTopic) []kmsg.TopicInfo {
	var out []kmsg.TopicInfo
	for _, t := range in {
		info := kmsg.TopicInfo{Topic: t.Name, NumPartitions: t.Partitions, ReplicationFactor: t.ReplicationFactor}
		for _, c := range t.TopicConfigs {
			info.Configs = append(info.Configs, kmsg.TopicInfoConfig{Key: c.Key, Value: c.Value})
		}
		out = append(out, info)
	}
	return out
}

func (r *jRequest) wire() *kmsg.StreamsGroupHeartbeatRequest {
	out := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	out.Version = 1
	out.Group = r.GroupID
	out.MemberID = r.MemberID
	out.MemberEpoch = r.MemberEpoch
	out.EndpointInformationEpoch = r.EndpointInformationEpoch
	out.InstanceID = r.InstanceID
	out.RackID = r.RackID
	out.RebalanceTimeoutMillis = r.RebalanceTimeoutMs
	out.ActiveTasks, out.StandbyTasks, out.WarmupTasks = wireTasks(r.ActiveTasks), wireTasks(r.StandbyTasks), wireTasks(r.WarmupTasks)
	out.ProcessID = r.ProcessID
	if r.UserEndpoint != nil {
		out.UserEndpoint = &kmsg.StreamsGroupHeartbeatRequestUserEndpoint{Host: r.UserEndpoint.Host, Port: r.UserEndpoint.Port}
	}
	if r.ClientTags != nil {
		out.ClientTags = []kmsg.StreamsGroupHeartbeatRequestClientTag{}
		for _, t := range r.ClientTags {
			out.ClientTags = append(out.ClientTags, kmsg.StreamsGroupHeartbeatRequestClientTag{Key: t.Key, Value: t.Value})
		}
	}
	out.TaskOffsets, out.TaskEndOffsets = wireOffsets(r.TaskOffsets), wireOffsets(r.TaskEndOffsets)
	out.ShutdownApplication = r.ShutdownApplication
	if r.Topology != nil {
		out.Topology = &kmsg.StreamsGroupHeartbeatRequestTopology{Epoch: r.Topology.Epoch}
		for _, s := range r.Topology.Subtopologies {
			sub := subtopology{
				SubtopologyID:           s.SubtopologyID,
				SourceTopics:            s.SourceTopics,
				RepartitionSinkTopics:   s.RepartitionSinkTopics,
				RepartitionSourceTopics: wireTopics(s.RepartitionSourceTopics),
				StateChangelogTopics:    wireTopics(s.StateChangelogTopics),
			}
			for _, g := range s.CopartitionGroups {
				sub.CopartitionGroups = append(sub.CopartitionGroups, copartitionGroup{
					SourceTopics: g.SourceTopics, RepartitionSourceTopics: g.RepartitionSourceTopics,
				})
			}
			out.Topology.Subtopologies = append(out.Topology.Subtopologies, sub)
		}
	}
	return out
}

// describeAnswer writes an answer as text, in an order of its own.
func describeAnswer(r jResponse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "error %d %s member %s epoch %d every %d offsets %d lag %d endpoints %d description %v",
		r.ErrorCode, r.ErrorMessage, r.MemberID, r.MemberEpoch, r.HeartbeatIntervalMs, r.TaskOffsetIntervalMs,
		r.AcceptableRecoveryLag, r.EndpointInformationEpoch, r.TopologyDescriptionRequired)
	tasks := func(role string, in []jTasks) {
		if in == nil {
			fmt.Fprintf(&b, "\n%s unchanged", role)
			return
		}
		fmt.Fprintf(&b, "\n%s %v", role, setFromWire(wireTasks(in)).Sorted())
	}
	tasks("active", r.ActiveTasks)
	tasks("standby", r.StandbyTasks)
	tasks("warmup", r.WarmupTasks)
	for _, s := range r.Status {
		// The names of missing topics come in hash order.
		prefix, names, listed := strings.Cut(s.StatusDetail, "Internal topics are missing: ")
		if listed {
			l := strings.Split(names, ", ")
			slices.Sort(l)
			s.StatusDetail = prefix + "Internal topics are missing: " + strings.Join(l, ", ")
		}
		fmt.Fprintf(&b, "\nstatus %d %s", s.StatusCode, s.StatusDetail)
	}
	if r.PartitionsByUserEndpoint == nil {
		fmt.Fprintf(&b, "\nmap unchanged")
		return b.String()
	}
	var entries []string
	for _, e := range r.PartitionsByUserEndpoint {
		partitions := func(in []jPartitions) string {
			var out []string
			for _, p := range in {
				out = append(out, fmt.Sprintf("%s%v", p.Topic, p.Partitions))
			}
			slices.Sort(out)
			return strings.Join(out, " ")
		}
		entries = append(entries, fmt.Sprintf("\nmap %s:%d active %s standby %s", e.UserEndpoint.Host, e.UserEndpoint.Port,
			partitions(e.ActivePartitions), partitions(e.StandbyPartitions)))
	}
	slices.Sort(entries)
	fmt.Fprintf(&b, "\nmap of %d%s", len(entries), strings.Join(entries, ""))
	return b.String()
}

func jsonResponse(t *testing.T, r *kmsg.StreamsGroupHeartbeatResponse) jResponse {
	t.Helper()
	out := jResponse{
		ErrorCode: r.ErrorCode, MemberID: r.MemberID, MemberEpoch: r.MemberEpoch,
		HeartbeatIntervalMs: r.HeartbeatIntervalMillis, TaskOffsetIntervalMs: r.TaskOffsetIntervalMillis,
		AcceptableRecoveryLag: r.AcceptableRecoveryLag, TopologyDescriptionRequired: r.TopologyDescriptionRequired,
		EndpointInformationEpoch: r.EndpointInformationEpoch,
	}
	if r.ErrorMessage != nil {
		out.ErrorMessage = *r.ErrorMessage
	}
	tasks := func(in []kmsg.TaskIDs) []jTasks {
		if in == nil {
			return nil
		}
		out := []jTasks{}
		for _, ids := range in {
			out = append(out, jTasks{ids.SubtopologyID, ids.Partitions})
		}
		return out
	}
	out.ActiveTasks, out.StandbyTasks, out.WarmupTasks = tasks(r.ActiveTasks), tasks(r.StandbyTasks), tasks(r.WarmupTasks)
	if r.Status == nil {
		t.Error("the answer has no status list")
	}
	for _, s := range r.Status {
		out.Status = append(out.Status, jStatus{s.StatusCode, s.StatusDetail})
	}
	if r.PartitionsByUserEndpoint != nil {
		out.PartitionsByUserEndpoint = []jServed{}
	}
	for _, e := range r.PartitionsByUserEndpoint {
		entry := jServed{UserEndpoint: jEndpoint{e.UserEndpoint.Host, e.UserEndpoint.Port}}
		for _, p := range e.ActivePartitions {
			entry.ActivePartitions = append(entry.ActivePartitions, jPartitions{p.Topic, p.Partitions})
		}
		for _, p := range e.StandbyPartitions {
			entry.StandbyPartitions = append(entry.StandbyPartitions, jPartitions{p.Topic, p.Partitions})
		}
		out.PartitionsByUserEndpoint = append(out.PartitionsByUserEndpoint, entry)
	}
	return out
}

func readExchanges(t *testing.T, name string) []exchange {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "recorded", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []exchange
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e exchange
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s line %d: %v", name, len(out)+1, err)
		}
		out = append(out, e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

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
