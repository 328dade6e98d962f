package streams

import (
	"errors"
	"fmt"
	"time"

	"github.com/odradek-go/odradek/taskmgr"
)

// PunctuationType is the time that a punctuation goes by.
type PunctuationType = taskmgr.PunctuationType

// The types of punctuation.
const (
	// StreamTime advances with the times of the task's records. A punctuation
	// begins with the first of them.
	StreamTime = taskmgr.StreamTime

	// WallClockTime advances by itself. A punctuation begins after an interval,
	// and is late where records take long.
	WallClockTime = taskmgr.WallClockTime
)

// Schedule has f called every interval, at least a millisecond, between the task's
// records, with the time in milliseconds. After a gap of several intervals it is
// called once. An error of f's is one of the processor. The function that Schedule
// returns ends the calls.
func (c *TaskContext) Schedule(interval time.Duration, by PunctuationType, f func(now int64) error) (cancel func(), err error) {
	if err := c.checkPunctuation(interval, by, f); err != nil {
		return nil, err
	}
	return c.task.Schedule(interval, by, c.punctuator(f)), nil
}

// ScheduleFrom is Schedule with the first call at start or, where that is past, a
// whole number of intervals after it (KIP-1146).
func (c *TaskContext) ScheduleFrom(start time.Time, interval time.Duration, by PunctuationType, f func(now int64) error) (cancel func(), err error) {
	if err := c.checkPunctuation(interval, by, f); err != nil {
		return nil, err
	}
	if start.UnixMilli() < 0 {
		return nil, fmt.Errorf("streams: processor %q schedules a punctuation from %v, which is before 1970", c.node, start)
	}
	return c.task.ScheduleFrom(start, interval, by, c.punctuator(f)), nil
}

func (c *TaskContext) checkPunctuation(interval time.Duration, by PunctuationType, f func(int64) error) error {
	if f == nil {
		return fmt.Errorf("streams: processor %q schedules a punctuation without a function", c.node)
	}
	if interval < time.Millisecond {
		return fmt.Errorf("streams: processor %q schedules a punctuation every %v, which is less than a millisecond", c.node, interval)
	}
	if by != StreamTime && by != WallClockTime {
		return fmt.Errorf("streams: processor %q schedules a punctuation of the unknown type %d", c.node, by)
	}
	return nil
}

func (c *TaskContext) punctuator(f func(now int64) error) func(now int64) error {
	return func(now int64) error { return processorError(c.node, f(now)) }
}

// Commit asks for a commit of the task soon, before its interval has passed.
func (c *TaskContext) Commit() { c.task.RequestCommit() }

// SystemTime is the time of the wall clock in milliseconds, as it was when the
// batch of records began that is being processed.
func (c *TaskContext) SystemTime() int64 { return c.task.SystemTime() }

// processorError is an error of a processor, unless it comes from further down.
func processorError(node string, err error) error {
	var pe *ProcessorError
	var se *SerializationError
	if err == nil || errors.As(err, &pe) || errors.As(err, &se) {
		return err
	}
	return &ProcessorError{Processor: node, Err: err}
}
