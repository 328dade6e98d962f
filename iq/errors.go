package iq

import (
	"errors"
	"fmt"
	"strings"

	"github.com/odradek-go/odradek/membership"
)

// Why a query has no answer, to be told apart with errors.Is.
var (
	// ErrUnknownStore: the topology has no store of that name that can be read.
	ErrUnknownStore = errors.New("the topology has no such store")

	// ErrStoreType: the store is of another kind than the query is for.
	ErrStoreType = errors.New("the store is of another kind")

	// ErrInvalidQuery: the query makes no sense, whatever the state of the group.
	ErrInvalidQuery = errors.New("invalid query")

	// ErrNotRunning: the instance has not begun to run, or has ended.
	ErrNotRunning = errors.New("the application is not running here")

	// ErrNotReady: it is not known yet, or not any more, who has the partition.
	ErrNotReady = errors.New("it is not known who has the store's partition: is application.server set, and has the group an assignment?")

	// ErrMigrated: the store's partition is not, or no longer, on the instance that
	// was asked, or isn't complete there yet (Java's
	// InvalidStateStorePartitionException and StateStoreMigratedException).
	ErrMigrated = errors.New("the store's partition is not here, or not complete yet")

	// ErrTooStale: there are copies of the partition, but all are staler than the
	// query accepts, or it is not known how stale they are.
	ErrTooStale = errors.New("the store's copies are staler than the query accepts")

	// ErrBehind: the store has not come to the position yet that the query asks for.
	ErrBehind = errors.New("the store has not processed the records yet that the query asks for")

	// ErrUnreachable: the instance that has the partition did not answer.
	ErrUnreachable = errors.New("the instance did not answer")

	// ErrInterrupted: the answer ended in the middle, and can't be gone on with.
	ErrInterrupted = errors.New("the answer was interrupted")

	// ErrBusy: the instance has as many queries under way as it takes.
	ErrBusy = errors.New("too many queries at once")

	// ErrUnauthorized: the server does not let the caller in.
	ErrUnauthorized = errors.New("not authorized")
)

// codes are the errors' names on the wire; retried says which may pass by
// themselves, or elsewhere, within a caller's deadline.
var codes = []struct {
	name    string
	err     error
	status  int
	retried bool
}{
	{"UNKNOWN_STORE", ErrUnknownStore, 404, false},
	{"STORE_TYPE", ErrStoreType, 400, false},
	{"INVALID_QUERY", ErrInvalidQuery, 400, false},
	{"NOT_RUNNING", ErrNotRunning, 503, true},
	{"NOT_READY", ErrNotReady, 503, true},
	{"MIGRATED", ErrMigrated, 421, true},
	{"TOO_STALE", ErrTooStale, 503, true},
	{"BEHIND", ErrBehind, 503, true},
	{"UNREACHABLE", ErrUnreachable, 502, true},
	{"INTERRUPTED", ErrInterrupted, 502, false},
	{"BUSY", ErrBusy, 503, true},
	{"UNAUTHORIZED", ErrUnauthorized, 401, false},
}

// internalError is the code of all other errors.
const internalError = "INTERNAL"

// Error is a query, or an attempt at one, that has no answer.
type Error struct {
	// Kind is one of this package's errors; nil for a failure of another sort, such
	// as of a store.
	Kind error

	Store     string
	Partition int32 // −1 where it is not about one

	// Host is the instance that says so; zero: the caller's own.
	Host membership.Endpoint

	// Err is what there is to say besides; may be nil. Where a query ran out of
	// time it is the error of the last attempt, and the context's.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "query store %q", e.Store)
	if e.Partition >= 0 {
		fmt.Fprintf(&b, " partition %d", e.Partition)
	}
	if e.Host != (membership.Endpoint{}) {
		fmt.Fprintf(&b, " at %v", e.Host)
	}
	if e.Kind != nil {
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap makes errors.Is work for the kind and for the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Kind != nil {
		errs = append(errs, e.Kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

func fail(kind error, req *Request, err error) *Error {
	return &Error{Kind: kind, Store: req.Store, Partition: req.Partition, Err: err}
}

// retriable says whether another attempt, or another instance, may have an answer.
func retriable(err error) bool {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.retried
		}
	}
	return false
}

// wireError is an error as the server sends it.
type wireError struct {
	Code      string `json:"code"`
	Message   string `json:"message,omitempty"`
	Partition int32  `json:"partition"`
	Host      string `json:"host,omitempty"`
}

// toWire returns an error for the wire, and the HTTP status that goes with it.
func toWire(err error, self string) (wireError, int) {
	w, status := wireError{Code: internalError, Message: err.Error(), Partition: -1, Host: self}, 500
	var known *Error
	if errors.As(err, &known) { // the caller has the rest of its text
		w.Partition, w.Message = known.Partition, ""
		if known.Err != nil {
			w.Message = known.Err.Error()
		}
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			w.Code, status = c.name, c.status
			break
		}
	}
	return w, status
}

// fromWire is the error that a server has sent.
func (w wireError) fromWire(req *Request, host membership.Endpoint) error {
	e := &Error{Store: req.Store, Partition: w.Partition, Host: host}
	if w.Message != "" {
		e.Err = remote(w.Message)
	}
	for _, c := range codes {
		if c.name == w.Code {
			e.Kind = c.err
		}
	}
	return e
}

// remote is what another instance has said.
type remote string

func (r remote) Error() string { return string(r) }
