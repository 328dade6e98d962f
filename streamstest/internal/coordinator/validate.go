package coordinator

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// validate checks what can be checked without knowing the group, in the order in which a broker does.
func validate(req *kmsg.StreamsGroupHeartbeatRequest, patterns bool) *Error {
	if req.Topology != nil {
		if err := validateTopics(req.Topology); err != nil {
			return err
		}
		if err := validatePatterns(req.Topology, patterns); err != nil {
			return err
		}
	}
	empty := func(s *string) bool { return s != nil && strings.TrimSpace(*s) == "" }
	switch {
	case empty(&req.MemberID):
		return invalid("MemberId can't be empty.")
	case empty(&req.Group):
		return invalid("GroupId can't be empty.")
	case empty(req.InstanceID):
		return invalid("InstanceId can't be empty.")
	case empty(req.RackID):
		return invalid("RackId can't be empty.")
	}
	switch {
	case req.MemberEpoch == joinEpoch:
		if err := validateJoin(req); err != nil {
			return err
		}
	case req.MemberEpoch == staticLeaveEpoch && req.InstanceID == nil:
		return invalid("InstanceId can't be null.")
	case req.MemberEpoch < staticLeaveEpoch:
		return errorf(kerr.InvalidRequest, "MemberEpoch is %d, but must be greater than or equal to -2.", req.MemberEpoch)
	}
	if given := ownedGiven(req); given != 0 && given != 3 {
		return invalid("If one task-type is non-null, all must be non-null.")
	}
	if req.MemberEpoch != joinEpoch && req.Topology != nil {
		return invalid("Topology can only be provided when (re-)joining.")
	}
	return nil
}

func validateJoin(req *kmsg.StreamsGroupHeartbeatRequest) *Error {
	givenEmpty := func(l []kmsg.TaskIDs) bool { return l != nil && len(l) == 0 }
	switch {
	case req.RebalanceTimeoutMillis == -1:
		return invalid("RebalanceTimeoutMs must be provided in first request.")
	case !givenEmpty(req.ActiveTasks):
		return invalid("ActiveTasks must be empty when (re-)joining.")
	case !givenEmpty(req.StandbyTasks):
		return invalid("StandbyTasks must be empty when (re-)joining.")
	case !givenEmpty(req.WarmupTasks):
		return invalid("WarmupTasks must be empty when (re-)joining.")
	case req.Topology == nil:
		return invalid("Topology must be non-null when (re-)joining.")
	}
	for _, s := range req.Topology.Subtopologies {
		for _, t := range s.StateChangelogTopics {
			if t.NumPartitions != 0 {
				return errorf(kerr.StreamsInvalidTopology, "Changelog topic %s must have an undefined partition count, but it is set to %d.", t.Topic, t.NumPartitions)
			}
		}
	}
	return nil
}

func validateTopics(t *kmsg.StreamsGroupHeartbeatRequestTopology) *Error {
	var names, prohibited, malformed []string
	for _, s := range t.Subtopologies {
		names = append(names, s.SourceTopics...)
		names = append(names, s.RepartitionSinkTopics...)
		for _, topic := range s.RepartitionSourceTopics {
			names = append(names, topic.Topic)
		}
		for _, topic := range s.StateChangelogTopics {
			names = append(names, topic.Topic)
		}
	}
	seen := make(map[string]bool)
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if slices.Contains([]string{"__consumer_offsets", "__transaction_state", "__share_group_state"}, name) {
			prohibited = append(prohibited, name)
		}
		if !validTopicName(name) {
			malformed = append(malformed, name)
		}
	}
	if len(prohibited) > 0 {
		return errorf(kerr.StreamsInvalidTopology, "Use of Kafka internal topics %s in a Kafka Streams topology is prohibited.", strings.Join(prohibited, ","))
	}
	if len(malformed) > 0 {
		return errorf(kerr.StreamsInvalidTopology, "Topic names %s are not valid topic names.", strings.Join(malformed, ","))
	}
	return nil
}

func validTopicName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > 249 {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// validateTasks checks that the tasks a member owns exist.
func validateTasks(c *configuredTopology, owned []kmsg.TaskIDs) *Error {
	for _, ids := range owned {
		s := c.subtopology(ids.SubtopologyID)
		if s == nil {
			return errorf(kerr.InvalidRequest, "Subtopology %s does not exist in the topology.", ids.SubtopologyID)
		}
		for _, p := range ids.Partitions {
			if p < 0 || p >= s.tasks {
				return errorf(kerr.InvalidRequest, "Task %d for subtopology %s is invalid. Number of tasks for this subtopology: %d", p, ids.SubtopologyID, s.tasks)
			}
		}
	}
	return nil
}

// ownedGiven is how many of the three lists of owned tasks the request has. Null means unchanged, empty means none.
func ownedGiven(req *kmsg.StreamsGroupHeartbeatRequest) int {
	n := 0
	for _, l := range [][]kmsg.TaskIDs{req.ActiveTasks, req.StandbyTasks, req.WarmupTasks} {
		if l != nil {
			n++
		}
	}
	return n
}

func invalid(message string) *Error { return &Error{Code: kerr.InvalidRequest, Message: message} }
