package coordinator

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestValidate(t *testing.T) {
	type request = kmsg.StreamsGroupHeartbeatRequest
	empty, blank, given := []kmsg.TaskIDs{}, " ", "i"
	some := []kmsg.TaskIDs{{SubtopologyID: "0", Partitions: []int32{0}}}
	lists := func(r *request, active, standby, warmup []kmsg.TaskIDs) {
		r.ActiveTasks, r.StandbyTasks, r.WarmupTasks = active, standby, warmup
	}
	topology := func(change func(*subtopology)) *kmsg.StreamsGroupHeartbeatRequestTopology {
		s := sub(t, "0", "src in; sink r; log c")
		change(&s)
		return &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []subtopology{s}}
	}
	plain := topology(func(*subtopology) {})
	join := func(r *request) {
		r.MemberEpoch, r.RebalanceTimeoutMillis, r.Topology = 0, 1000, plain
		lists(r, empty, empty, empty)
	}
	for name, test := range map[string]struct {
		change  func(*request)
		message string // empty: valid
	}{
		"a join":                      {join, ""},
		"a heartbeat":                 {func(*request) {}, ""},
		"an acknowledgement":          {func(r *request) { lists(r, some, empty, empty) }, ""},
		"a leave":                     {func(r *request) { r.MemberEpoch = -1 }, ""},
		"a leave of a static member":  {func(r *request) { r.MemberEpoch, r.InstanceID = -2, &given }, ""},
		"no member":                   {func(r *request) { r.MemberID = "" }, "MemberId can't be empty."},
		"no group":                    {func(r *request) { r.Group = "" }, "GroupId can't be empty."},
		"no instance":                 {func(r *request) { r.InstanceID = &blank }, "InstanceId can't be empty."},
		"no rack":                     {func(r *request) { r.RackID = &blank }, "RackId can't be empty."},
		"a dynamic member away":       {func(r *request) { r.MemberEpoch = -2 }, "InstanceId can't be null."},
		"below all epochs":            {func(r *request) { r.MemberEpoch = -3 }, "MemberEpoch is -3, but must be greater than or equal to -2."},
		"active only":                 {func(r *request) { lists(r, some, nil, nil) }, "If one task-type is non-null, all must be non-null."},
		"no warm-ups":                 {func(r *request) { lists(r, some, empty, nil) }, "If one task-type is non-null, all must be non-null."},
		"topology later":              {func(r *request) { r.Topology = plain }, "Topology can only be provided when (re-)joining."},
		"join without time-out":       {func(r *request) { join(r); r.RebalanceTimeoutMillis = -1 }, "RebalanceTimeoutMs must be provided in first request."},
		"join with active tasks":      {func(r *request) { join(r); lists(r, some, empty, empty) }, "ActiveTasks must be empty when (re-)joining."},
		"join with null active tasks": {func(r *request) { join(r); lists(r, nil, empty, empty) }, "ActiveTasks must be empty when (re-)joining."},
		"join with standbys":          {func(r *request) { join(r); lists(r, empty, some, empty) }, "StandbyTasks must be empty when (re-)joining."},
		"join with warm-ups":          {func(r *request) { join(r); lists(r, empty, empty, some) }, "WarmupTasks must be empty when (re-)joining."},
		"join without topology":       {func(r *request) { join(r); r.Topology = nil }, "Topology must be non-null when (re-)joining."},
		"regex": {func(r *request) {
			join(r)
			r.Topology = topology(func(s *subtopology) { s.SourceTopicRegex = []string{".*"} })
		}, "Regular expressions for source topics are not supported yet."},
		"changelog with partitions": {func(r *request) {
			join(r)
			r.Topology = topology(func(s *subtopology) { s.StateChangelogTopics[0].NumPartitions = 3 })
		}, "Changelog topic c must have an undefined partition count, but it is set to 3."},
		"Kafka's own topic": {func(r *request) {
			join(r)
			r.Topology = topology(func(s *subtopology) { s.SourceTopics = []string{"__consumer_offsets", "in"} })
		}, "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited."},
		"no topic names": {func(r *request) {
			join(r)
			r.Topology = topology(func(s *subtopology) {
				s.RepartitionSinkTopics = []string{"a b", ".", strings.Repeat("x", 249), strings.Repeat("y", 250), "ä", ""}
			})
		}, "Topic names a b,.," + strings.Repeat("y", 250) + ",ä, are not valid topic names."},
	} {
		t.Run(name, func(t *testing.T) {
			r := kmsg.NewPtrStreamsGroupHeartbeatRequest()
			r.Group, r.MemberID, r.MemberEpoch = "g", "m", 3
			test.change(r)
			err := validate(r, false)
			if (err == nil) != (test.message == "") || err != nil && err.Message != test.message {
				t.Errorf("got %v, want %q", err, test.message)
			}
			topologyError := strings.Contains(test.message, "Changelog") || strings.Contains(test.message, "opic names") || strings.Contains(test.message, "internal topics")
			if err != nil && (err.Code == kerr.StreamsInvalidTopology) != topologyError {
				t.Errorf("code %v", err.Code)
			}
		})
	}
}
