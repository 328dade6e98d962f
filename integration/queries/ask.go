package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/serde"
)

// answer is what came of a question.
type answer struct {
	rows []row
	meta iq.Meta
	err  error

	began, ended time.Time
	requests     int    // that were made to processes
	asked        string // the process that gave the answer
}

// row is an entry.
type row struct {
	id
	value     string // of the table
	number    int64  // of the counts
	timestamp int64
}

// asker asks in one way.
type asker interface {
	ask(ctx context.Context, q *question) answer
}

// traced is what a query leads to, by its context.
type traced struct {
	requests atomic.Int32
	host     atomic.Pointer[string] // of the last one
}

type tracedKey struct{}

// tracer counts the requests of each query.
type tracer struct{ http.RoundTripper }

func (t tracer) RoundTrip(r *http.Request) (*http.Response, error) {
	if of, ok := r.Context().Value(tracedKey{}).(*traced); ok {
		of.requests.Add(1)
		of.host.Store(&r.URL.Host)
	}
	return t.RoundTripper.RoundTrip(r)
}

// client asks with an [iq.Client], of one process or of all.
type client struct{ *iq.Client }

func newClient(transport http.RoundTripper, addresses ...string) (client, error) {
	c, err := iq.NewClient(addresses, iq.ClientOptions{Transport: transportOf(transport)})
	return client{c}, err
}

func transportOf(transport http.RoundTripper) iq.HTTPTransport {
	return iq.HTTPTransport{Client: &http.Client{Transport: tracer{transport}}}
}

func (c client) ask(ctx context.Context, q *question) answer {
	return query(ctx, q, func(ctx context.Context) (*iq.Rows, error) { return c.Query(ctx, &q.Request) })
}

// own asks a process for what it has itself, as processes ask each other.
type own struct {
	transport iq.HTTPTransport
	host      membership.Endpoint
}

func (o own) ask(ctx context.Context, q *question) answer {
	return query(ctx, q, func(ctx context.Context) (*iq.Rows, error) { return o.transport.Call(ctx, o.host, &q.Request) })
}

func query(ctx context.Context, q *question, do func(context.Context) (*iq.Rows, error)) (a answer) {
	of := &traced{}
	rows, err := do(context.WithValue(ctx, tracedKey{}, of))
	if a.err = err; err == nil {
		a.meta = rows.Meta
		for e, err := range rows.All() {
			if err == nil {
				err = a.add(q, e)
			}
			if a.err = err; err != nil {
				break
			}
		}
	}
	a.requests = int(of.requests.Load())
	if host := of.host.Load(); host != nil {
		a.asked = *host
	}
	return a
}

func (a *answer) add(q *question, e iq.Entry) (err error) {
	r := row{id: id{string(e.Key), e.Start}, timestamp: e.Timestamp}
	if q.Store == latestStore {
		r.value = string(e.Value)
	} else if r.number, err = serde.Int64.Decode(e.Value); err != nil {
		return err
	}
	a.rows = append(a.rows, r)
	return nil
}

// curl asks one process as people do.
type curl struct {
	http    *http.Client
	address string
}

// refusal is an error that a process answers with, by its code.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

// errNoAnswer is what curl can do nothing about: nobody is there, or goes away.
var errNoAnswer = errors.New("no answer")

func (c curl) ask(ctx context.Context, q *question) (a answer) {
	a.requests, a.asked = 1, c.address
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(ctx, q), nil)
	if err != nil {
		a.err = err
		return a
	}
	resp, err := c.http.Do(req)
	if err != nil {
		a.err = errors.Join(errNoAnswer, err)
		return a
	}
	defer resp.Body.Close()
	in := json.NewDecoder(resp.Body)
	if isPoint(q.Kind) {
		a.err = a.readPoint(q, in)
	} else {
		a.err = a.readLines(q, in)
	}
	if errors.Is(a.err, io.ErrUnexpectedEOF) || errors.Is(a.err, io.EOF) || ctx.Err() != nil && a.err != nil {
		a.err = errors.Join(errNoAnswer, a.err)
	}
	return a
}

func (c curl) url(ctx context.Context, q *question) string {
	args := url.Values{}
	set := func(name string, value any) { args.Set(name, fmt.Sprint(value)) }
	path := "/entries"
	switch q.Kind {
	case iq.Get:
		path = "/keys/" + string(q.Key)
	case iq.GetWindow:
		path = "/keys/" + string(q.Key)
		set("start", q.Earliest)
	case iq.Fetch:
		path = "/windows/" + string(q.Key)
	case iq.Prefix:
		set("prefix", string(q.Key))
	}
	if q.Kind == iq.Fetch || q.Kind == iq.FetchRange {
		set("earliest", q.Earliest)
		set("latest", q.Latest)
	}
	if q.From != nil {
		set("from", string(q.From))
	}
	if q.To != nil {
		set("to", string(q.To))
	}
	if q.Backward {
		set("backward", true)
	}
	if q.Limit > 0 {
		set("limit", q.Limit)
	}
	if q.Accept.Lag != 0 {
		set("lag", q.Accept.Lag)
	}
	if q.Accept.Age > 0 {
		set("age", q.Accept.Age)
	}
	if len(q.Accept.Position) > 0 {
		position, _ := json.Marshal(q.Accept.Position) // of strings and numbers
		set("position", string(position))
	}
	if deadline, ok := ctx.Deadline(); ok { // after which it goes on waiting for a moment
		set("timeout", time.Until(deadline)-grace/2)
	}
	return "http://" + c.address + "/iq/v1/stores/" + q.Store + path + "?" + args.Encode()
}

// shown is a line of an answer, or all of one.
type shown struct {
	Found     bool            `json:"found"`
	Key       *string         `json:"key"`
	Value     json.RawMessage `json:"value"`
	Timestamp int64           `json:"timestamp"`
	Start     int64           `json:"start"`
	Error     *refusal        `json:"error"`
	End       json.RawMessage `json:"end"` // of a window, or true as the last line
	More      bool            `json:"more"`
	Meta      *iq.Meta        `json:"meta"`
}

func (a *answer) readPoint(q *question, in *json.Decoder) error {
	var line struct {
		shown
		iq.Meta
	}
	if err := in.Decode(&line); err != nil {
		return err
	}
	if line.Error != nil {
		return line.Error
	}
	a.meta = line.Meta
	if !line.Found {
		return nil
	}
	return a.show(q, &line.shown)
}

func (a *answer) readLines(q *question, in *json.Decoder) error {
	for {
		var line shown
		if err := in.Decode(&line); err != nil {
			return err
		}
		switch {
		case line.Error != nil:
			return line.Error
		case line.Meta != nil:
			a.meta = *line.Meta
		case line.More:
			return errors.New("the answer is cut")
		case string(line.End) == "true":
			return nil
		default:
			if err := a.show(q, &line); err != nil {
				return err
			}
		}
	}
}

func (a *answer) show(q *question, line *shown) (err error) {
	if line.Key == nil {
		return errors.New("an entry without a key")
	}
	r := row{id: id{*line.Key, line.Start}, timestamp: line.Timestamp}
	if q.Store == latestStore {
		err = json.Unmarshal(line.Value, &r.value)
	} else {
		r.number, err = strconv.ParseInt(string(line.Value), 10, 64)
	}
	a.rows = append(a.rows, r)
	return err
}
