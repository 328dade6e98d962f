package iq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/odradek-go/odradek/membership"
)

// ClientOptions are the settings of a [Client]. Zero values mean the defaults.
type ClientOptions struct {
	// Transport makes the calls; its zero value is plain HTTP.
	Transport HTTPTransport

	// Timeout bounds queries whose context has no deadline; 0: 10 s.
	Timeout time.Duration

	// TryTimeout bounds how long an instance is waited for to begin to answer; 0:
	// 2 s. Instances themselves ask each other again within that time.
	TryTimeout time.Duration
}

// Client asks the instances of an application from outside, any of them: they send
// on what they don't have. It may be used by any number of goroutines.
type Client struct {
	hosts []membership.Endpoint
	opts  ClientOptions
	turn  atomic.Uint32
}

// NewClient returns a client of the instances at addresses, host:port, of which not
// all need to be there. Others are not found by themselves.
func NewClient(addresses []string, opts ClientOptions) (*Client, error) {
	if len(addresses) == 0 {
		return nil, errors.New("iq: a client needs an address")
	}
	c := &Client{opts: opts}
	for _, a := range addresses {
		host, err := parseEndpoint(a)
		if err != nil {
			return nil, fmt.Errorf("iq: %q is not host:port: %w", a, err)
		}
		c.hosts = append(c.hosts, host)
	}
	orDefault(&c.opts.Timeout, 10*time.Second)
	orDefault(&c.opts.TryTimeout, 2*time.Second)
	if c.opts.Transport.Client == nil {
		c.opts.Transport.Client = &http.Client{Transport: newHTTPTransport()}
	}
	return c, nil
}

// Close ends connections that are idle.
func (c *Client) Close() { c.opts.Transport.Client.CloseIdleConnections() }

// Query implements [Querier]. An instance that does not answer, or can't, is left for
// the next one, round after round until the context's deadline. So is one whose answer
// to a Range or Prefix is interrupted: the next one goes on behind the last entry, and
// Meta is about the first part. What else is interrupted is not asked for again.
func (c *Client) Query(ctx context.Context, req *Request) (*Rows, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	ctx, cancel := bound(ctx, c.opts.Timeout)
	rows, err := c.ask(ctx, req)
	if err != nil {
		cancel()
		return nil, err
	}
	if req.resumable() {
		rows = c.resuming(ctx, *req, rows)
	}
	rows.onClose(cancel)
	return rows, nil
}

// ask asks one instance after the other until one answers.
func (c *Client) ask(ctx context.Context, req *Request) (rows *Rows, err error) {
	within := time.Duration(0)
	if req.point() { // whose answer is over when it has begun
		within = c.opts.TryTimeout * 7 / 8
	}
	next := int(c.turn.Add(1) - 1)
	err = retry(ctx, req, retriable, func() (err error) {
		host := c.hosts[next%len(c.hosts)]
		next++
		ctx, end := context.WithCancel(ctx)
		rows, err = inTime(ctx, end, c.opts.TryTimeout, req, func(ctx context.Context) (*Rows, error) {
			return c.opts.Transport.call(ctx, host, req, false, within)
		})
		if err != nil {
			end()
			return err
		}
		rows.onClose(end)
		return nil
	})
	return rows, err
}

// resuming is an answer that is gone on with behind its last entry when it is
// interrupted.
func (c *Client) resuming(ctx context.Context, req Request, rows *Rows) *Rows {
	limited := req.Limit > 0
	return NewRows(rows.Meta, func() (e Entry, err error) {
		for {
			e, err = rows.Next()
			switch {
			case err == nil:
				if req.After = e.Key; limited {
					req.Limit--
				}
				return e, nil
			case kindIn(err) != ErrInterrupted || ctx.Err() != nil:
				return e, err
			case limited && req.Limit == 0:
				return e, io.EOF
			}
			rest, err := c.ask(ctx, &req)
			if err != nil {
				return e, err
			}
			rows.Close()
			rows = rest
		}
	}, func() { rows.Close() })
}

func parseEndpoint(address string) (e membership.Endpoint, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return e, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return membership.Endpoint{Host: host, Port: uint16(n)}, err
}
