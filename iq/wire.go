package iq

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/odradek-go/odradek/membership"
)

// A query goes to queryPath as a JSON Request. The answer is a line of JSON after the
// other: the head with Meta, then an Entry each, and then the end; or an error in
// place of the end. An answer without an end is not whole.
const (
	queryPath = "/iq/v1/query"

	// forwardedHeader marks a query that an instance has sent on, which is answered
	// from what is there: so there is one hop at most.
	forwardedHeader = "Odradek-Forwarded"

	// timeoutHeader is for how long the caller waits, as time.ParseDuration has it.
	timeoutHeader = "Odradek-Timeout"

	lineType = "application/x-ndjson"
)

// line is a line of an answer: Meta, Entry, End or Error.
type line struct {
	Meta  *Meta      `json:"meta,omitempty"`
	Entry *Entry     `json:"entry,omitempty"`
	End   bool       `json:"end,omitempty"`
	More  bool       `json:"more,omitempty"` // with End: what follows is left out
	Error *wireError `json:"error,omitempty"`
}

// HTTPTransport calls instances that answer as [Service.Handler] does.
type HTTPTransport struct {
	// Client makes the requests; nil: http.DefaultClient.
	Client *http.Client

	// Scheme is "http" or "https"; empty: "http".
	Scheme string

	// Authorize, if not nil, may add what the server's authentication wants.
	Authorize func(*http.Request) error
}

// newHTTPTransport is how instances keep their connections.
func newHTTPTransport() *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 3 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     30 * time.Second,
		ForceAttemptHTTP2:   true,
	}
}

// Call implements [Transport].
func (t *HTTPTransport) Call(ctx context.Context, to membership.Endpoint, req *Request) (*Rows, error) {
	return t.call(ctx, to, req, true, 0)
}

// call sends a query. The server gives up when ctx ends, and if within isn't 0 after
// that time.
func (t *HTTPTransport) call(ctx context.Context, host membership.Endpoint, req *Request, forwarded bool, within time.Duration) (*Rows, error) {
	failed := func(err error) error {
		return &Error{Kind: ErrUnreachable, Store: req.Store, Partition: req.Partition, Host: host, Err: err}
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, fail(ErrInvalidQuery, req, err)
	}
	scheme := t.Scheme
	orDefault(&scheme, "http")
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://"+host.String()+queryPath, bytes.NewReader(body))
	if err != nil {
		return nil, fail(ErrInvalidQuery, req, err)
	}
	hr.Header.Set("Content-Type", "application/json")
	if forwarded {
		hr.Header.Set(forwardedHeader, "1")
	}
	if deadline, ok := ctx.Deadline(); ok && (within == 0 || time.Until(deadline) < within) {
		within = time.Until(deadline)
	}
	if within > 0 {
		hr.Header.Set(timeoutHeader, within.String())
	}
	if t.Authorize != nil {
		if err := t.Authorize(hr); err != nil {
			return nil, failed(err)
		}
	}
	client := t.Client
	orDefault(&client, http.DefaultClient)
	resp, err := client.Do(hr)
	if err != nil {
		return nil, failed(err)
	}
	in := json.NewDecoder(bufio.NewReader(resp.Body))
	var head line
	if err := in.Decode(&head); err != nil {
		resp.Body.Close()
		return nil, failed(fmt.Errorf("%s: %w", resp.Status, err))
	}
	switch {
	case head.Error != nil:
		resp.Body.Close()
		return nil, head.Error.fromWire(req, host)
	case head.Meta == nil:
		resp.Body.Close()
		return nil, failed(fmt.Errorf("%s: not an answer to a query: does something else listen there?", resp.Status))
	}
	next := func() (e Entry, err error) {
		var l line
		switch err := in.Decode(&l); {
		case err != nil:
			return e, &Error{Kind: ErrInterrupted, Store: req.Store, Partition: req.Partition, Host: host, Err: err}
		case l.Error != nil:
			return e, interrupted(l.Error.fromWire(req, host))
		case l.End:
			return e, io.EOF
		case l.Entry == nil:
			return e, &Error{Kind: ErrInterrupted, Store: req.Store, Partition: req.Partition, Host: host, Err: errors.New("not an entry")}
		}
		return *l.Entry, nil
	}
	return NewRows(*head.Meta, next, func() { resp.Body.Close() }), nil
}

// interrupted is an error that came after some of the answer.
func interrupted(err error) error {
	var e *Error
	if errors.As(err, &e) && retriable(err) {
		return &Error{Kind: ErrInterrupted, Store: e.Store, Partition: e.Partition, Host: e.Host, Err: e.Err}
	}
	return err
}
