package membership

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Errors that a caller branches on. They are found with errors.Is in what
// [Loop.Run] returns and in what the callbacks get.
var (
	// ErrShutdownRequested: a member of the group asked for the whole
	// application to stop (status SHUTDOWN_APPLICATION).
	ErrShutdownRequested = errors.New("a member of the group requested the shutdown of the application")

	// ErrNoProgress is the reason for lost tasks when they made no progress
	// for the rebalance time-out (max.poll.interval.ms).
	ErrNoProgress = errors.New("the tasks made no progress for the rebalance time-out (max.poll.interval.ms), so the member left the group; " +
		"give it more time or smaller batches")

	// ErrTopologyMismatch: the group runs another topology than this member's.
	ErrTopologyMismatch = errors.New("this topology is not the group's")

	// ErrInstanceIDInUse: another member holds this member's instance id.
	ErrInstanceIDInUse = errors.New("another member holds this instance id")

	// ErrNotStreamsGroup: the group id belongs to a group of another type that
	// still has members.
	ErrNotStreamsGroup = errors.New("the group id is used by a group of another type")

	// ErrUnsupported: the brokers don't speak the streams group protocol.
	ErrUnsupported = errors.New("needs Apache Kafka 4.1 or later (streams groups)")

	// ErrPatternsUnsupported: the broker takes no patterns of source topics.
	ErrPatternsUnsupported = errors.New("the broker takes no patterns of source topics")

	// errClientClosed: the kgo client was closed under the member.
	errClientClosed = errors.New("the Kafka client was closed while the member was running")

	// ErrRunning: Run was called twice.
	ErrRunning = errors.New("membership: Run was called before")
)

// CoordinatorError is an error code that the group coordinator answered and
// that the member can't go on after, or a reason for lost tasks. errors.Is
// finds the code (as a *kerr.Error) and, where there is one, the sentinel of
// this package.
type CoordinatorError struct {
	Group    string
	MemberID string
	// Request is what was asked, for instance "StreamsGroupHeartbeat".
	Request string
	// Code is the protocol's error.
	Code error
	// Message is the coordinator's text; it may be empty.
	Message string
	// Remedy says what to do; it may be empty.
	Remedy string

	kind error
}

// Error names the group, the request, the code, the coordinator's words and
// what to do.
func (e *CoordinatorError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "streams group %q: ", e.Group)
	if e.kind != nil {
		fmt.Fprintf(&b, "%v: ", e.kind)
	}
	name := e.Code.Error()
	if ke, ok := errors.AsType[*kerr.Error](e.Code); ok {
		name = ke.Message
	}
	fmt.Fprintf(&b, "%s answered %s", e.Request, name)
	if e.Message != "" {
		fmt.Fprintf(&b, " (%s)", e.Message)
	}
	if e.Remedy != "" {
		fmt.Fprintf(&b, "; %s", e.Remedy)
	}
	return b.String()
}

// Unwrap gives errors.Is the code and the sentinel.
func (e *CoordinatorError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.kind}
}

// MissingSourceTopicsError: source topics were missing for two heartbeat
// intervals (status MISSING_SOURCE_TOPICS).
type MissingSourceTopicsError struct {
	Group string
	// Detail is the coordinator's text; it names the topics.
	Detail string
	// After is for how long they had been missing.
	After time.Duration
}

func (e *MissingSourceTopicsError) Error() string {
	return fmt.Sprintf("streams group %q: source topics are still missing after %v: %s; "+
		"create them (they are never created by the application), or correct their names in the topology",
		e.Group, e.After.Round(time.Millisecond), e.Detail)
}

// IncorrectlyPartitionedTopicsError: topics that must have equal partition
// counts don't (status INCORRECTLY_PARTITIONED_TOPICS).
type IncorrectlyPartitionedTopicsError struct {
	Group string
	// Detail is the coordinator's text; it names the topics and their counts.
	Detail string
}

func (e *IncorrectlyPartitionedTopicsError) Error() string {
	return fmt.Sprintf("streams group %q: topics are partitioned incorrectly: %s; "+
		"give joined topics equal partition counts, or repartition one of them in the topology", e.Group, e.Detail)
}

// UnreachableError: no broker could be talked to before the first join was
// answered.
type UnreachableError struct {
	Group string
	// After is for how long it was tried.
	After time.Duration
	// Cause is the last failure, for instance "connection refused".
	Cause error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("streams group %q: no coordinator could be reached for %v: %v; "+
		"check that the brokers run, and that their addresses (bootstrap.servers, advertised.listeners) can be reached from here",
		e.Group, e.After.Round(time.Millisecond), e.Cause)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Cause }

// AnswerError: the coordinator's answer breaks the protocol.
type AnswerError struct {
	Group string
	What  string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("streams group %q: the coordinator's answer breaks the protocol: %s; check the broker's version", e.Group, e.What)
}

// action is what an error code of the coordinator leads to.
type action uint8

const (
	actFatal    action = iota
	actRetry           // back off, then resend what is owned
	actPatience        // the same, but fatal if it doesn't pass soon
	actFind            // find the coordinator again, then resend what is owned
	actFence           // all tasks lost, rejoin
	actSurface         // tell the user, stay as it is, keep on
)

// serverErrorPatience is for how long UNKNOWN_SERVER_ERROR is retried.
const serverErrorPatience = 10 * time.Second

// verdict is one line of the error table.
type verdict struct {
	act    action
	kind   error
	remedy string
}

const sameTopology = "run the same topology in all members; to change it, stop all members, reset or delete the group " +
	"(that loses its committed offsets) or choose another application id, and start again"

// heartbeatVerdicts says what each error code of a heartbeat leads to. Codes
// that aren't here are fatal without a remedy.
var heartbeatVerdicts = map[int16]verdict{
	kerr.CoordinatorLoadInProgress.Code: {act: actRetry},
	// Fatal in Java. But Kafka 4.4.0 answers it to a join with an endpoint for
	// as long as it doesn't see a source topic, which may exist in a moment.
	kerr.UnknownServerError.Code: {act: actPatience, remedy: "look into the coordinator's log; Kafka 4.4.0 answers this " +
		"to a member with an endpoint (application.server) while a source topic is missing"},
	// Fatal in Java, without need: both say "try again".
	kerr.RequestTimedOut.Code:            {act: actRetry},
	kerr.NetworkException.Code:           {act: actFind},
	kerr.CoordinatorNotAvailable.Code:    {act: actFind},
	kerr.NotCoordinator.Code:             {act: actFind},
	kerr.UnknownMemberID.Code:            {act: actFence},
	kerr.FencedMemberEpoch.Code:          {act: actFence},
	kerr.TopicAuthorizationFailed.Code:   {act: actSurface, remedy: "grant the principal Describe on the source topics, and Create on internal ones"},
	kerr.GroupAuthorizationFailed.Code:   {remedy: "grant the principal Read on the group"},
	kerr.ClusterAuthorizationFailed.Code: {remedy: "grant the principal what the broker's log says is missing on the cluster"},
	kerr.InvalidGroupID.Code:             {remedy: "correct the application id"},
	kerr.InvalidRequest.Code:             {remedy: "report this as a bug, with the broker's version"},
	kerr.GroupMaxSizeReached.Code:        {remedy: "run fewer stream threads, or raise group.streams.max.size on the brokers"},
	kerr.GroupIDNotFound.Code:            {kind: ErrNotStreamsGroup, remedy: "stop the members of that group and wait until their sessions have expired, or choose another application id"},
	kerr.UnsupportedVersion.Code:         {kind: ErrUnsupported, remedy: "upgrade the brokers, and raise the feature streams.version to 1 on an upgraded cluster"},
	// Java retries it for ever; but the member that took the id is there to stay.
	kerr.FencedInstanceID.Code:     {kind: ErrInstanceIDInUse, remedy: "give each stream thread its own instance id, and run one process for each"},
	kerr.UnreleasedInstanceID.Code: {kind: ErrInstanceIDInUse, remedy: "stop the other member, or wait until its session has expired (Config.InstanceIDWait does)"},

	kerr.StreamsInvalidTopology.Code:      {remedy: "correct the topology as the message says"},
	kerr.StreamsInvalidTopologyEpoch.Code: {kind: ErrTopologyMismatch, remedy: sameTopology},
	kerr.StreamsTopologyFenced.Code:       {kind: ErrTopologyMismatch, remedy: sameTopology},
}

// heartbeatVerdict looks a code up. message is the coordinator's text.
func heartbeatVerdict(code int16, message string) verdict {
	v := heartbeatVerdicts[code]
	// Kafka 4.2 to 4.4 answer another topology at the same epoch with
	// INVALID_REQUEST ("Topology updates are not supported yet."), later ones
	// with code 131. To the user it is the same.
	if code == kerr.InvalidRequest.Code && strings.Contains(message, "Topology updates are not supported") {
		v = verdict{kind: ErrTopologyMismatch, remedy: sameTopology}
	}
	if code == kerr.InvalidRequest.Code && strings.Contains(message, "Regular expressions for source topics are not supported") {
		v = verdict{kind: ErrPatternsUnsupported, remedy: "name the source topics one by one: Kafka up to 4.4 has no patterns in streams groups"}
	}
	return v
}

// errorForCode is kerr's error, and for a code that kerr doesn't know one that
// keeps the number.
func errorForCode(code int16) error {
	err := kerr.ErrorForCode(code)
	if err == kerr.UnknownServerError && code != kerr.UnknownServerError.Code {
		return &kerr.Error{Message: fmt.Sprintf("error code %d", code), Code: code, Description: "unknown to this version of the client"}
	}
	return err
}
