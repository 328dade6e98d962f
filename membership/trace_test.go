package membership

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// line is one line of a trace; see testdata/README.md.
type line struct {
	T      int64           `json:"t"`
	Dir    string          `json:"dir"`
	Client string          `json:"client"`
	Ev     string          `json:"ev"`
	Data   json.RawMessage `json:"data"`
}

type jsonTasks []struct {
	SubtopologyID string  `json:"subtopologyId"`
	Partitions    []int32 `json:"partitions"`
}

func (j jsonTasks) wire() []kmsg.TaskIDs {
	if j == nil {
		return nil
	}
	out := []kmsg.TaskIDs{}
	for _, t := range j {
		out = append(out, kmsg.TaskIDs{SubtopologyID: t.SubtopologyID, Partitions: t.Partitions})
	}
	return out
}

type jsonOffsets []struct {
	SubtopologyID string `json:"subtopologyId"`
	Partition     int32  `json:"partition"`
	Offset        int64  `json:"offset"`
}

func (j jsonOffsets) wire() []kmsg.TaskOffset {
	if j == nil {
		return nil
	}
	out := []kmsg.TaskOffset{}
	for _, t := range j {
		out = append(out, kmsg.TaskOffset{SubtopologyID: t.SubtopologyID, Partition: t.Partition, Offset: t.Offset})
	}
	return out
}

type jsonEndpoint struct {
	Host string `json:"host"`
	Port uint16 `json:"port"`
}

type jsonKV struct{ Key, Value string }

type jsonTopic struct {
	Name              string   `json:"name"`
	Partitions        int32    `json:"partitions"`
	ReplicationFactor int16    `json:"replicationFactor"`
	TopicConfigs      []jsonKV `json:"topicConfigs"`
}

func topicsWire(in []jsonTopic) []kmsg.TopicInfo {
	out := []kmsg.TopicInfo{}
	for _, t := range in {
		ti := kmsg.TopicInfo{Topic: t.Name, NumPartitions: t.Partitions, ReplicationFactor: t.ReplicationFactor}
		for _, c := range t.TopicConfigs {
			ti.Configs = append(ti.Configs, kmsg.TopicInfoConfig{Key: c.Key, Value: c.Value})
		}
		out = append(out, ti)
	}
	return out
}

type jsonTopology struct {
	Epoch         int32 `json:"epoch"`
	Subtopologies []struct {
		SubtopologyID           string      `json:"subtopologyId"`
		SourceTopics            []string    `json:"sourceTopics"`
		StateChangelogTopics    []jsonTopic `json:"stateChangelogTopics"`
		RepartitionSinkTopics   []string    `json:"repartitionSinkTopics"`
		RepartitionSourceTopics []jsonTopic `json:"repartitionSourceTopics"`
	} `json:"subtopologies"`
}

func (j *jsonTopology) wire() *kmsg.StreamsGroupHeartbeatRequestTopology {
	if j == nil {
		return nil
	}
	out := &kmsg.StreamsGroupHeartbeatRequestTopology{Epoch: j.Epoch}
	for _, s := range j.Subtopologies {
		out.Subtopologies = append(out.Subtopologies, kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{
			SubtopologyID: s.SubtopologyID, SourceTopics: s.SourceTopics,
			StateChangelogTopics:    topicsWire(s.StateChangelogTopics),
			RepartitionSinkTopics:   s.RepartitionSinkTopics,
			RepartitionSourceTopics: topicsWire(s.RepartitionSourceTopics),
		})
	}
	return out
}

type jsonRequest struct {
	GroupID                  string        `json:"groupId"`
	MemberID                 string        `json:"memberId"`
	MemberEpoch              int32         `json:"memberEpoch"`
	EndpointInformationEpoch int32         `json:"endpointInformationEpoch"`
	InstanceID               *string       `json:"instanceId"`
	RackID                   *string       `json:"rackId"`
	RebalanceTimeoutMs       *int32        `json:"rebalanceTimeoutMs"`
	Topology                 *jsonTopology `json:"topology"`
	ActiveTasks              jsonTasks     `json:"activeTasks"`
	StandbyTasks             jsonTasks     `json:"standbyTasks"`
	WarmupTasks              jsonTasks     `json:"warmupTasks"`
	ProcessID                *string       `json:"processId"`
	UserEndpoint             *jsonEndpoint `json:"userEndpoint"`
	ClientTags               []jsonKV      `json:"clientTags"`
	TaskOffsets              jsonOffsets   `json:"taskOffsets"`
	TaskEndOffsets           jsonOffsets   `json:"taskEndOffsets"`
	ShutdownApplication      bool          `json:"shutdownApplication"`
}

func (j *jsonRequest) wire(group string) *kmsg.StreamsGroupHeartbeatRequest {
	r := &kmsg.StreamsGroupHeartbeatRequest{
		Version: 1, Group: group, MemberID: j.MemberID, MemberEpoch: j.MemberEpoch,
		EndpointInformationEpoch: j.EndpointInformationEpoch, InstanceID: j.InstanceID, RackID: j.RackID,
		RebalanceTimeoutMillis: -1, Topology: j.Topology.wire(),
		ActiveTasks: j.ActiveTasks.wire(), StandbyTasks: j.StandbyTasks.wire(), WarmupTasks: j.WarmupTasks.wire(),
		ProcessID: j.ProcessID, TaskOffsets: j.TaskOffsets.wire(), TaskEndOffsets: j.TaskEndOffsets.wire(),
		ShutdownApplication: j.ShutdownApplication,
	}
	if j.RebalanceTimeoutMs != nil {
		r.RebalanceTimeoutMillis = *j.RebalanceTimeoutMs
	}
	if j.UserEndpoint != nil {
		r.UserEndpoint = &kmsg.StreamsGroupHeartbeatRequestUserEndpoint{Host: j.UserEndpoint.Host, Port: j.UserEndpoint.Port}
	}
	if j.ClientTags != nil {
		r.ClientTags = []kmsg.StreamsGroupHeartbeatRequestClientTag{}
		for _, t := range j.ClientTags {
			r.ClientTags = append(r.ClientTags, kmsg.StreamsGroupHeartbeatRequestClientTag{Key: t.Key, Value: t.Value})
		}
	}
	return r
}

type jsonResponse struct {
	ThrottleTimeMs        int32   `json:"throttleTimeMs"`
	ErrorCode             int16   `json:"errorCode"`
	ErrorMessage          *string `json:"errorMessage"`
	MemberEpoch           int32   `json:"memberEpoch"`
	HeartbeatIntervalMs   int32   `json:"heartbeatIntervalMs"`
	TaskOffsetIntervalMs  int32   `json:"taskOffsetIntervalMs"`
	AcceptableRecoveryLag int64   `json:"acceptableRecoveryLag"`
	Status                []struct {
		StatusCode   int8   `json:"statusCode"`
		StatusDetail string `json:"statusDetail"`
	} `json:"status"`
	ActiveTasks                 jsonTasks `json:"activeTasks"`
	StandbyTasks                jsonTasks `json:"standbyTasks"`
	WarmupTasks                 jsonTasks `json:"warmupTasks"`
	TopologyDescriptionRequired bool      `json:"topologyDescriptionRequired"`
	EndpointInformationEpoch    int32     `json:"endpointInformationEpoch"`
	PartitionsByUserEndpoint    []struct {
		UserEndpoint jsonEndpoint `json:"userEndpoint"`
	} `json:"partitionsByUserEndpoint"`
}

func (j *jsonResponse) wire() *kmsg.StreamsGroupHeartbeatResponse {
	r := &kmsg.StreamsGroupHeartbeatResponse{
		Version: 1, ThrottleMillis: j.ThrottleTimeMs, ErrorCode: j.ErrorCode, ErrorMessage: j.ErrorMessage,
		MemberEpoch: j.MemberEpoch, HeartbeatIntervalMillis: j.HeartbeatIntervalMs,
		TaskOffsetIntervalMillis: j.TaskOffsetIntervalMs, AcceptableRecoveryLag: j.AcceptableRecoveryLag,
		ActiveTasks: j.ActiveTasks.wire(), StandbyTasks: j.StandbyTasks.wire(), WarmupTasks: j.WarmupTasks.wire(),
		TopologyDescriptionRequired: j.TopologyDescriptionRequired, EndpointInformationEpoch: j.EndpointInformationEpoch,
	}
	if j.Status != nil {
		r.Status = []kmsg.StreamsGroupHeartbeatResponseStatus{}
		for _, s := range j.Status {
			r.Status = append(r.Status, kmsg.StreamsGroupHeartbeatResponseStatus{StatusCode: s.StatusCode, StatusDetail: s.StatusDetail})
		}
	}
	if j.PartitionsByUserEndpoint != nil {
		r.PartitionsByUserEndpoint = []kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint{}
		for _, e := range j.PartitionsByUserEndpoint {
			r.PartitionsByUserEndpoint = append(r.PartitionsByUserEndpoint, kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint{
				UserEndpoint: kmsg.Endpoint{Host: e.UserEndpoint.Host, Port: e.UserEndpoint.Port},
			})
		}
	}
	return r
}

// step is one line of one member's life, decoded.
type step struct {
	at   time.Time
	ev   string // "sleeping", "woke", "push"
	code int16
	req  *kmsg.StreamsGroupHeartbeatRequest
	resp *kmsg.StreamsGroupHeartbeatResponse
}

var zeroTime = time.Unix(1_700_000_000, 0)

// readTrace splits a trace into the lives of its members.
func readTrace(t *testing.T, name string) map[string][]step {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "traces", name))
	if err != nil {
		t.Fatal(err)
	}
	lives := map[string][]step{}
	type last struct {
		group, member string
		req, resp     json.RawMessage
	}
	clients := map[string]*last{}
	sc := bufio.NewScanner(bytes.NewReader(raw))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var l line
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", sc.Text(), err)
		}
		c := clients[l.Client]
		if c == nil {
			c = &last{}
			clients[l.Client] = c
		}
		st := step{at: zeroTime.Add(time.Duration(l.T) * time.Millisecond)}
		switch l.Dir {
		case "REQ":
			if l.Data == nil {
				l.Data = c.req
			}
			c.req = l.Data
			var j jsonRequest
			if err := json.Unmarshal(l.Data, &j); err != nil {
				t.Fatal(err)
			}
			if j.GroupID != "" {
				c.group = j.GroupID
			}
			if j.MemberID != c.member {
				c.resp = nil
			}
			c.member = j.MemberID
			st.req = j.wire(c.group)
		case "RSP":
			if l.Data == nil {
				l.Data = c.resp
			}
			c.resp = l.Data
			var j jsonResponse
			if err := json.Unmarshal(l.Data, &j); err != nil {
				t.Fatal(err)
			}
			st.resp = j.wire()
		case "PUSH":
			var j struct{ ErrorCode int16 }
			if err := json.Unmarshal(l.Data, &j); err != nil {
				t.Fatal(err)
			}
			st.ev, st.code = "push", j.ErrorCode
		case "EV":
			// The event names the process; each of these has one thread.
			c = clients[l.Client+"-StreamThread-1"]
			st.ev = l.Ev
		}
		lives[c.member] = append(lives[c.member], st)
	}
	return lives
}
