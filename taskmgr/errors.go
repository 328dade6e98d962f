package taskmgr

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/odradek-go/odradek/membership"
)

// ErrCloseTimeout says that a thread that was told to end could not commit what it
// had processed in the time that it was given. That is processed again.
var ErrCloseTimeout = errors.New("the last commit is missing, which did not get through within the close time-out")

// TaskError is a record that a task could not process, or a step in the task's
// life that failed.
type TaskError struct {
	Task membership.TaskID

	// Topic, Partition and Offset are those of the record; Topic is empty where
	// no record was being processed.
	Topic     string
	Partition int32
	Offset    int64

	Err error
}

func (e *TaskError) Error() string {
	if e.Topic == "" {
		return fmt.Sprintf("task %v: %v", e.Task, e.Err)
	}
	return fmt.Sprintf("task %v: record %s-%d@%d: %v", e.Task, e.Topic, e.Partition, e.Offset, e.Err)
}

func (e *TaskError) Unwrap() error { return e.Err }

// ProduceError is a record that the broker did not store.
type ProduceError struct {
	Topic     string
	Partition int32
	Err       error
}

func (e *ProduceError) Error() string {
	return fmt.Sprintf("produce to %s-%d: %v", e.Topic, e.Partition, e.Err)
}

func (e *ProduceError) Unwrap() error { return e.Err }

// CommitError is a partition whose offset could not be committed or fetched.
type CommitError struct {
	Op        string // "commit" or "fetch"
	Topic     string // empty where the request as a whole failed
	Partition int32
	Err       error
}

func (e *CommitError) Error() string {
	if e.Topic == "" {
		return fmt.Sprintf("%s offsets: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s the offset of %s-%d: %v", e.Op, e.Topic, e.Partition, e.Err)
}

func (e *CommitError) Unwrap() error { return e.Err }

// NoOffsetError is a partition of a source topic that has no committed offset, and no
// offset reset that says where to begin.
type NoOffsetError struct {
	Topic     string
	Partition int32
}

func (e *NoOffsetError) Error() string {
	return fmt.Sprintf("%s-%d has no committed offset, and the offset reset of its source is none: commit one, or choose another offset reset", e.Topic, e.Partition)
}

// TransactionError is a transaction that could not be begun, committed or aborted
// (KIP-129).
type TransactionError struct {
	Op              string // "begin", "commit" or "abort"
	TransactionalID string
	Err             error
}

func (e *TransactionError) Error() string {
	return fmt.Sprintf("%s a transaction of %q: %v", e.Op, e.TransactionalID, e.Err)
}

func (e *TransactionError) Unwrap() error { return e.Err }

// PanicError is a panic of a processor or a serde, which ends the thread as an
// error does.
type PanicError struct {
	Value any    // what was panicked with
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// recovered turns a panic of the caller into the error at err. It is deferred.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}
