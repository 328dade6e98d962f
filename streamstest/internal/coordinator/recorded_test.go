package coordinator

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The files under testdata/recorded hold heartbeats of Java Kafka Streams 4.4.0 members and the answers of a 4.4.0
// broker, one exchange a line, in the order of the answers. Null fields are left out.

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

func readExchanges(t testing.TB, name string) []exchange {
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
