package mirror

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/odradek-go/odradek/internal/restart"
)

// Errors that a caller branches on, found with errors.Is.
var (
	// ErrConfig: a [Config] is wrong.
	ErrConfig = errors.New("mirror: wrong configuration")

	// ErrUnsupported: no broker announces the requests under the API keys given.
	ErrUnsupported = errors.New("the request is not among those that the broker announces")

	// ErrNoAnswer: the broker answered, but not for this partition.
	ErrNoAnswer = errors.New("the broker did not answer for it")

	// ErrUnsafe: the application can't start on the mirror; see [UnsafeError].
	ErrUnsafe = errors.New("the application can't start on the mirror")

	// ErrGroupActive: the application's group has members, so that its offsets
	// and topics must not be touched.
	ErrGroupActive = restart.ErrGroupActive
)

// PartitionError is a partition's error in an answer. Several come joined
// (errors.Join); what was answered for the other partitions is returned beside
// them.
type PartitionError struct {
	// Op is "read" or "write".
	Op     string
	Mirror string
	Topic  string
	// Partition is −1 for a topic of which nothing was answered.
	Partition int32
	// Err is Kafka's error, or [ErrNoAnswer].
	Err error
}

// Error names the partition and the error.
func (e *PartitionError) Error() string {
	what := fmt.Sprintf("%s-%d", e.Topic, e.Partition)
	if e.Partition < 0 {
		what = "topic " + e.Topic
	}
	return fmt.Sprintf("%s the mirror state of %s in mirror %q: %v", e.Op, what, e.Mirror, e.Err)
}

// Unwrap returns the error.
func (e *PartitionError) Unwrap() error { return e.Err }

// UnsafeError says why an application can't start on a mirror. errors.Is finds
// [ErrUnsafe].
type UnsafeError struct {
	// Obstacles are what is in the way of each strategy, at least one for each.
	Obstacles []Obstacle
}

// Obstacle is one thing that is in the way of a strategy.
type Obstacle struct {
	Strategy Strategy
	// Topic is empty for what concerns the application as a whole, and Partition
	// −1 for what concerns a topic as a whole.
	Topic     string
	Partition int32
	// Reason says what is wrong, and what can be done about it.
	Reason string
}

// String is the reason, with the partition.
func (o Obstacle) String() string {
	switch {
	case o.Topic == "":
		return o.Reason
	case o.Partition < 0:
		return o.Topic + ": " + o.Reason
	}
	return fmt.Sprintf("%s-%d: %s", o.Topic, o.Partition, o.Reason)
}

// Error names the first obstacle of each strategy, and how many more there are.
func (e *UnsafeError) Error() string {
	var b strings.Builder
	b.WriteString(ErrUnsafe.Error())
	for i := 0; i < len(e.Obstacles); {
		o, n := e.Obstacles[i], 0
		for ; i < len(e.Obstacles) && e.Obstacles[i].Strategy == o.Strategy; i++ {
			n++
		}
		fmt.Fprintf(&b, "; it can't %s: %s", o.Strategy, o)
		if n > 1 {
			fmt.Fprintf(&b, " (and %d more)", n-1)
		}
	}
	return b.String()
}

// Is makes errors.Is find ErrUnsafe.
func (e *UnsafeError) Is(target error) bool { return target == ErrUnsafe }

// errorForCode is kerr's error, and for a code that kerr doesn't know one that
// keeps the number.
func errorForCode(code int16) error {
	err := kerr.ErrorForCode(code)
	if err == kerr.UnknownServerError && code != kerr.UnknownServerError.Code {
		return &kerr.Error{Message: fmt.Sprintf("error code %d", code), Code: code, Description: "unknown to this version of the client"}
	}
	return err
}

// elsewhere says that another broker is the one to ask.
func elsewhere(err error) bool {
	return errors.Is(err, kerr.NotCoordinator) || errors.Is(err, kerr.NotController) || errors.Is(err, kerr.NotLeaderForPartition)
}

// passes says that the same request may go through later. That a topic is unknown
// is Kafka's retriable error too, but of a mirror's state it is an answer.
func passes(err error) bool {
	ke, ok := errors.AsType[*kerr.Error](err)
	return ok && ke.Retriable && ke != kerr.UnknownTopicOrPartition && ke != kerr.UnknownTopicID
}
