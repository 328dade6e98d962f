package membership

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// StatusCode is a condition of the group that the coordinator reports to its
// members (KIP-1071).
type StatusCode int8

const (
	// StatusStaleTopology: this member's topology is older than the group's.
	StatusStaleTopology StatusCode = 0
	// StatusMissingSourceTopics: source topics don't exist.
	StatusMissingSourceTopics StatusCode = 1
	// StatusIncorrectlyPartitionedTopics: topics that are joined have
	// different numbers of partitions.
	StatusIncorrectlyPartitionedTopics StatusCode = 2
	// StatusMissingInternalTopics: the broker is still creating internal
	// topics.
	StatusMissingInternalTopics StatusCode = 3
	// StatusShutdownApplication: a member asked for the whole application to
	// stop.
	StatusShutdownApplication StatusCode = 4
	// StatusAssignmentDelayed: the coordinator waits for more members.
	StatusAssignmentDelayed StatusCode = 5
	// StatusMissingClientTags: the member lacks client tags that the group's
	// rack awareness needs (KIP-1071, heartbeat v1).
	StatusMissingClientTags StatusCode = 6
)

var statusNames = [...]string{
	"STALE_TOPOLOGY", "MISSING_SOURCE_TOPICS", "INCORRECTLY_PARTITIONED_TOPICS",
	"MISSING_INTERNAL_TOPICS", "SHUTDOWN_APPLICATION", "ASSIGNMENT_DELAYED",
	"MISSING_CLIENT_TAGS",
}

// String returns the protocol's name, for instance "ASSIGNMENT_DELAYED".
func (c StatusCode) String() string {
	if c >= 0 && int(c) < len(statusNames) {
		return statusNames[c]
	}
	return fmt.Sprintf("STATUS_%d", int8(c))
}

// notReady tells the codes under which the group doesn't process.
func (c StatusCode) notReady() bool {
	switch c {
	case StatusMissingSourceTopics, StatusIncorrectlyPartitionedTopics,
		StatusMissingInternalTopics, StatusAssignmentDelayed:
		return true
	}
	return false
}

// Status is one condition, with the coordinator's text for it.
type Status struct {
	Code   StatusCode
	Detail string
}

// String returns "CODE (detail)".
func (s Status) String() string {
	if s.Detail == "" {
		return s.Code.String()
	}
	return s.Code.String() + " (" + s.Detail + ")"
}

func statusesFromWire(in []kmsg.StreamsGroupHeartbeatResponseStatus) []Status {
	if len(in) == 0 {
		return nil
	}
	out := make([]Status, len(in))
	for i := range in {
		out[i] = Status{StatusCode(in[i].StatusCode), in[i].StatusDetail}
	}
	return out
}

// sameStatuses compares without converting, so that an unchanged answer costs
// nothing.
func sameStatuses(have []Status, in []kmsg.StreamsGroupHeartbeatResponseStatus) bool {
	return slices.EqualFunc(have, in, func(a Status, b kmsg.StreamsGroupHeartbeatResponseStatus) bool {
		return int8(a.Code) == b.StatusCode && a.Detail == b.StatusDetail
	})
}

func findStatus(in []Status, c StatusCode) (Status, bool) {
	for _, s := range in {
		if s.Code == c {
			return s, true
		}
	}
	return Status{}, false
}

func groupReady(in []Status) bool {
	return !slices.ContainsFunc(in, func(s Status) bool { return s.Code.notReady() })
}

func joinStatuses(in []Status) string {
	ss := make([]string, len(in))
	for i, s := range in {
		ss[i] = s.String()
	}
	return strings.Join(ss, ", ")
}

// statusLevel is how loudly conditions are logged: that the broker creates topics
// or waits for more members is the way a group begins.
func statusLevel(statuses []Status) slog.Level {
	for _, s := range statuses {
		if s.Code != StatusMissingInternalTopics && s.Code != StatusAssignmentDelayed {
			return slog.LevelWarn
		}
	}
	return slog.LevelInfo
}
