package streams

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/taskmgr"
)

// DeserializationError is a record whose key or value its serde can't read.
type DeserializationError struct {
	Part string // "key" or "value"
	Err  error
}

func (e *DeserializationError) Error() string {
	return fmt.Sprintf("deserialize the %s: %v", e.Part, e.Err)
}
func (e *DeserializationError) Unwrap() error { return e.Err }

// SerializationError is a key or value that its serde can't write.
type SerializationError struct {
	Topic string // that it was to be written to
	Part  string // "key" or "value"
	Err   error
}

func (e *SerializationError) Error() string {
	return fmt.Sprintf("serialize the %s for topic %q: %v", e.Part, e.Topic, e.Err)
}
func (e *SerializationError) Unwrap() error { return e.Err }

// ProcessorError is an error of a [Processor].
type ProcessorError struct {
	Processor string // its name in the topology
	Err       error
}

func (e *ProcessorError) Error() string { return fmt.Sprintf("processor %q: %v", e.Processor, e.Err) }
func (e *ProcessorError) Unwrap() error { return e.Err }

// ExceptionHandlerResponse is what is done about a record that met an error.
type ExceptionHandlerResponse int8

// The responses.
const (
	Fail   ExceptionHandlerResponse = iota // the stream thread fails with the error
	Resume                                 // the record is left out, and processing goes on
)

// ErrorHandlerContext says which record met an error.
type ErrorHandlerContext struct {
	// Task is the task that was processing.
	Task membership.TaskID

	// Record is the record of a source topic that was being processed, with its
	// raw key and value; for an error of sending, the record that was sent.
	// It must not be changed.
	Record *kgo.Record
}

// ExceptionHandler decides about a record that met an error (KIP-161, KIP-1033).
type ExceptionHandler func(ctx ErrorHandlerContext, err error) ExceptionHandlerResponse

// LogAndContinue is an [ExceptionHandler] that leaves the record out and says so.
func LogAndContinue(log *slog.Logger) ExceptionHandler {
	return func(ctx ErrorHandlerContext, err error) ExceptionHandlerResponse {
		log.Warn("a record is left out", "task", ctx.Task, "topic", ctx.Record.Topic,
			"partition", ctx.Record.Partition, "offset", ctx.Record.Offset, "err", err)
		return Resume
	}
}

// onRecordError asks the handler that the error is for, and writes the dead letter.
func (c *Config) onRecordError(task membership.TaskID, rec *kgo.Record, err error, out taskmgr.Collector) error {
	handler := c.ProcessingExceptionHandler
	switch err.(type) {
	case *DeserializationError:
		handler = c.DeserializationExceptionHandler
	case *SerializationError:
		handler = c.ProductionExceptionHandler
	}
	resume := handler != nil && handler(ErrorHandlerContext{task, rec}, err) == Resume
	if topic := c.DeadLetterQueueTopic; topic != "" {
		if e := out.Send(topic, taskmgr.AnyPartition, rec.Key, rec.Value, rec.Timestamp.UnixMilli(), deadLetterHeaders(rec, err)); e != nil {
			return e
		}
	}
	if resume {
		return nil
	}
	return err
}

// onSendError asks about a record that the broker refused.
func (a *App) onSendError(rec *kgo.Record, err error) bool {
	h := a.cfg.ProductionExceptionHandler
	return h != nil && h(ErrorHandlerContext{Record: rec}, err) == Resume
}

// deadLetterHeaders are the record's own and those that say what went wrong, with
// the names of KIP-1034.
func deadLetterHeaders(rec *kgo.Record, err error) []Header {
	return append(slices.Clone(rec.Headers),
		Header{Key: "__streams.errors.exception", Value: fmt.Appendf(nil, "%T", err)},
		Header{Key: "__streams.errors.message", Value: []byte(err.Error())},
		Header{Key: "__streams.errors.stacktrace", Value: fmt.Appendf(nil, "%+v", err)},
		Header{Key: "__streams.errors.topic", Value: []byte(rec.Topic)},
		Header{Key: "__streams.errors.partition", Value: strconv.AppendInt(nil, int64(rec.Partition), 10)},
		Header{Key: "__streams.errors.offset", Value: strconv.AppendInt(nil, rec.Offset, 10)},
	)
}
