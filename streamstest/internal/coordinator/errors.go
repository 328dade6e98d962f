package coordinator

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Error is an error answer: the code and the message as Kafka words it.
type Error struct {
	Code    *kerr.Error
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Code.Message + ": " + e.Message }

// Unwrap returns the Kafka error, so that errors.Is works with the errors of kerr.
func (e *Error) Unwrap() error { return e.Code }

func errorf(code *kerr.Error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Status codes of a heartbeat response.
const (
	StatusStaleTopology                int8 = 0
	StatusMissingSourceTopics          int8 = 1
	StatusIncorrectlyPartitionedTopics int8 = 2
	StatusMissingInternalTopics        int8 = 3
	StatusShutdownApplication          int8 = 4
	StatusAssignmentDelayed            int8 = 5
	StatusMissingClientTags            int8 = 6
)

// Status tells a member what is wrong with the group, or with itself.
type Status struct {
	Code   int8
	Detail string
}
