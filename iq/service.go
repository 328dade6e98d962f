package iq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// Querier answers queries: a [Service], in an instance of the application, or a
// [Client], anywhere.
type Querier interface {
	// Query asks for what req says. The rows must be closed. Every error is an
	// *Error, or the context's.
	Query(ctx context.Context, req *Request) (*Rows, error)
}

// Transport calls other instances.
type Transport interface {
	// Call asks one instance, which must answer from what it has itself, no staler
	// than the request accepts. Request.Partition says of which partition; the rows
	// end when ctx does. An error that is one of this package's, with what
	// retriable ones mean, decides whether another instance is asked;
	// ErrUnreachable is the one for all that may have to do with the network.
	Call(ctx context.Context, to membership.Endpoint, req *Request) (*Rows, error)
}

// Options are the settings of a [Service]. Zero values mean the defaults.
type Options struct {
	// Listen has the application listen at application.server while it runs, and
	// answer there with [Service.Handler].
	Listen bool

	// Server are the settings of the handler and the listener.
	Server ServerOptions

	// Transport calls other instances. Nil: [HTTPTransport]. A group with Java
	// instances, or others whose servers speak otherwise, needs one that knows how
	// to call them; it may leave the rest to an HTTPTransport.
	Transport Transport

	// Partitioners are those of stores whose keys are not where the topology says,
	// by the stores' names: source topics that others write with a partitioner of
	// their own. They take encoded keys.
	Partitioners map[string]func(key []byte, partitions int) (int32, error)

	// Timeout bounds queries whose context has no deadline; 0: 10 s.
	Timeout time.Duration

	// TryTimeout bounds how long one instance is waited for to begin to answer,
	// before another one, or the same, is asked again; 0: 1 s.
	TryTimeout time.Duration

	// HedgeDelay is after how long a copy that the query accepts is asked as well
	// when the active instance hasn't answered; 0: 50 ms.
	HedgeDelay time.Duration

	// Logger takes what there is to say; nil: slog.Default().
	Logger *slog.Logger
}

// Config is what a [Service] is made of.
type Config struct {
	// Options are the user's.
	Options Options

	// Self is where this instance can be reached; nil: nowhere.
	Self *membership.Endpoint

	// Stores are those of the topology.
	Stores []StoreInfo

	// Registry has the stores that are here.
	Registry *state.Registry

	// Running says whether the instance runs: nil, or why not.
	Running func() error

	// EndOffsets looks up where the partitions of a topic end.
	EndOffsets func(ctx context.Context, topic string) (map[int32]int64, error)
}

// Service answers the queries of one instance: from the stores that are here, or by
// asking another instance. It may be used before the application runs and
// afterwards, with ErrNotRunning as the answer.
type Service struct {
	cfg       Config
	opts      Options
	router    *Router
	local     local
	transport Transport
	log       *slog.Logger
	inFlight  chan struct{}
}

// New returns a service. Applications get theirs from App.Queries of package streams.
func New(cfg Config) *Service {
	o := cfg.Options
	orDefault(&o.Timeout, 10*time.Second)
	orDefault(&o.TryTimeout, time.Second)
	orDefault(&o.HedgeDelay, 50*time.Millisecond)
	orDefault(&o.Logger, slog.Default())
	o.Server.setDefaults()
	s := &Service{cfg: cfg, opts: o, transport: o.Transport, log: o.Logger, inFlight: make(chan struct{}, o.Server.MaxInFlight)}
	if s.transport == nil {
		s.transport = &HTTPTransport{Client: &http.Client{Transport: newHTTPTransport()}}
	}
	stores := slices.Clone(cfg.Stores)
	for i := range stores {
		if p := o.Partitioners[stores[i].Name]; p != nil {
			stores[i].Partition = p
		}
	}
	s.router = NewRouter(stores)
	s.local = local{registry: cfg.Registry, lags: newLags(cfg.EndOffsets)}
	if cfg.Self != nil {
		s.local.host = cfg.Self.String()
	}
	return s
}

func orDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// Router knows who has what.
func (s *Service) Router() *Router { return s.router }

// Query implements [Querier]. A query about one key is answered by the partition's
// active instance, or by a copy that it accepts, and tried again, while the group
// rebalances or an instance is gone, until the context's deadline. One about many
// keys asks all partitions: those of Range and Prefix come merged in the order of the
// encoded keys, those of FetchRange one partition after the other.
func (s *Service) Query(ctx context.Context, req *Request) (*Rows, error) {
	return s.query(ctx, req, true)
}

// query answers a query, only from what is here unless forward says otherwise.
func (s *Service) query(ctx context.Context, req *Request, forward bool) (*Rows, error) {
	if err := s.check(req); err != nil {
		return nil, err
	}
	ctx, cancel := bound(ctx, s.opts.Timeout)
	rows, err := s.route(ctx, req, forward)
	if err != nil {
		cancel()
		return nil, err
	}
	rows.onClose(cancel)
	return rows, nil
}

// bound bounds a query whose context has no deadline.
func bound(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// check refuses what can't be answered whatever the state of the group.
func (s *Service) check(req *Request) error {
	if err := req.check(); err != nil {
		return err
	}
	info := s.Store(req.Store)
	if info == nil {
		return fail(ErrUnknownStore, req, nil)
	}
	return kindOf(info.Kind, req)
}

// Store is what the topology says of a store; nil where it has none of that name.
func (s *Service) Store(name string) *StoreInfo {
	if of := s.router.Snapshot().stores[name]; of != nil {
		return &of.info
	}
	return nil
}

func (s *Service) route(ctx context.Context, req *Request, forward bool) (*Rows, error) {
	switch {
	case req.Partition >= 0:
		return s.ask(ctx, req, forward)
	case !forward:
		return nil, fail(ErrInvalidQuery, req, errors.New("a forwarded query must say which partition it is about"))
	case req.point():
		return s.ask(ctx, req, forward)
	}
	n, err := s.partitions(ctx, req)
	if err != nil {
		return nil, err
	}
	if req.resumable() {
		return s.merge(ctx, req, n)
	}
	return s.concat(ctx, req, n)
}

// partitions is how many partitions the store of a request has, as soon as that is
// known.
func (s *Service) partitions(ctx context.Context, req *Request) (n int, err error) {
	err = s.retry(ctx, req, func() error {
		if err := s.cfg.Running(); err != nil {
			return fail(ErrNotRunning, req, err)
		}
		if n = s.router.Snapshot().Partitions(req.Store); n == 0 {
			return fail(ErrNotReady, req, nil)
		}
		return nil
	})
	return n, err
}

const (
	firstPause = 5 * time.Millisecond
	longPause  = 200 * time.Millisecond
)

// retry calls try until it succeeds, fails for good, or ctx ends.
func (s *Service) retry(ctx context.Context, req *Request, try func() error) error {
	return retry(ctx, req, func(err error) bool {
		return retriable(err) && !(errors.Is(err, ErrNotRunning) && s.cfg.Running() != nil)
	}, try)
}

// retry calls try until it succeeds, fails so that another attempt makes no sense, or
// ctx ends, which makes the last error of try the answer.
func retry(ctx context.Context, req *Request, again func(error) bool, try func() error) error {
	pause := firstPause
	var before error
	for attempts := 1; ; attempts++ {
		err := try()
		if err == nil || !again(err) {
			return err
		}
		if ctx.Err() != nil && before != nil { // it only says that, and the one before why
			err = before
		}
		before = err
		select {
		case <-ctx.Done():
			return outOfTime(ctx, req, attempts, err)
		case <-time.After(pause):
			pause = min(2*pause, longPause)
		}
	}
}

// outOfTime is the last error of a query, which ctx has put an end to.
func outOfTime(ctx context.Context, req *Request, attempts int, last error) error {
	e := Error{Kind: kindIn(last), Store: req.Store, Partition: req.Partition, Err: last}
	if known := (*Error)(nil); errors.As(last, &known) {
		e = *known
	}
	if cause := context.Cause(ctx); e.Err == nil {
		e.Err = fmt.Errorf("%w after %d attempts", cause, attempts)
	} else {
		e.Err = fmt.Errorf("%w; %w after %d attempts", e.Err, cause, attempts)
	}
	return &e
}

// kindIn is which of this package's errors err is, or nil.
func kindIn(err error) error {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.err
		}
	}
	return nil
}
