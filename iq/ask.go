package iq

import (
	"context"
	"errors"
	"time"

	"github.com/odradek-go/odradek/membership"
)

// ask answers a query about one partition.
func (s *Service) ask(ctx context.Context, req *Request, forward bool) (rows *Rows, err error) {
	if !forward {
		return s.askHere(ctx, req, req.Partition)
	}
	err = s.retry(ctx, req, func() error {
		rows, err = s.try(ctx, req)
		return err
	})
	return rows, err
}

// askHere answers a query about one partition from what is here.
func (s *Service) askHere(ctx context.Context, req *Request, partition int32) (*Rows, error) {
	if err := s.cfg.Running(); err != nil {
		return nil, fail(ErrNotRunning, req, err)
	}
	return s.local.query(ctx, req, partition)
}

// find finds out who has the partition that a request is about.
func (s *Service) find(req *Request) (*Route, error) {
	if req.Partition >= 0 {
		return s.router.Snapshot().Partition(req.Store, req.Partition)
	}
	return s.router.Lookup(req.Store, req.Key)
}

// try asks whoever may have the answer, once: this instance, if it is the active one;
// the active instance; and if there is an error, or no answer for some time, those
// that have copies.
func (s *Service) try(ctx context.Context, req *Request) (*Rows, error) {
	route, err := s.find(req)
	if err != nil {
		return nil, err
	}
	truth := *req
	truth.Partition, truth.Accept = route.Partition, Accept{Position: req.Accept.Position}
	rows, err := s.askTruth(ctx, &truth, req.Accept.copies())
	if err == nil || !retriable(err) || errors.Is(err, ErrNotRunning) {
		return rows, err
	}
	copies := *req
	copies.Partition = route.Partition
	var calls []call
	if route.HasActive() && !s.isSelf(route.Active) {
		calls = append(calls, func(ctx context.Context) (*Rows, error) { return s.transport.Call(ctx, route.Active, &copies) })
	}
	if req.Accept.copies() {
		calls = append(calls, func(ctx context.Context) (*Rows, error) { return s.local.query(ctx, &copies, route.Partition) })
		for _, standby := range route.Standbys {
			if !s.isSelf(standby) {
				calls = append(calls, func(ctx context.Context) (*Rows, error) { return s.transport.Call(ctx, standby, &copies) })
			}
		}
	}
	if len(calls) == 0 {
		return nil, err
	}
	return s.hedge(ctx, &copies, calls)
}

// askTruth asks this instance for the truth, and doesn't wait for its store for long if
// others may have copies.
func (s *Service) askTruth(ctx context.Context, truth *Request, copies bool) (*Rows, error) {
	here := func(ctx context.Context) (*Rows, error) { return s.askHere(ctx, truth, truth.Partition) }
	if !copies {
		return here(ctx)
	}
	ctx, end := context.WithCancel(ctx)
	rows, err := inTime(ctx, end, s.opts.HedgeDelay, truth, here)
	if err != nil {
		end()
		return nil, err
	}
	rows.onClose(end)
	return rows, nil
}

func (s *Service) isSelf(e membership.Endpoint) bool { return s.cfg.Self != nil && *s.cfg.Self == e }

// call asks one instance.
type call func(ctx context.Context) (*Rows, error)

// reply is what came of a call.
type reply struct {
	from int
	rows *Rows
	err  error
}

// hedge makes calls one after the other, the next one when one has failed or is late,
// and returns the first answer. The others are abandoned.
func (s *Service) hedge(ctx context.Context, req *Request, calls []call) (*Rows, error) {
	replies := make(chan reply, len(calls))
	var ends []context.CancelFunc // of what each call needs, its rows too
	under := 0
	abandon := func(but int) {
		for i, end := range ends {
			if i != but {
				end()
			}
		}
		if under == 0 {
			return
		}
		go func(left int) { // they end at once
			for range left {
				if r := <-replies; r.rows != nil {
					r.rows.Close()
				}
			}
		}(under)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last error
	for {
		select {
		case <-timer.C:
		case r := <-replies:
			under--
			if r.err == nil {
				abandon(r.from)
				r.rows.onClose(ends[r.from])
				return r.rows, nil
			}
			if kindIn(last) != ErrTooStale { // which says most: there is a copy
				last = r.err
			}
			if !retriable(r.err) {
				abandon(-1)
				return nil, r.err
			}
		case <-ctx.Done():
			abandon(-1)
			return nil, fail(ErrUnreachable, req, context.Cause(ctx))
		}
		if n := len(ends); n < len(calls) {
			ctx, end := context.WithCancel(ctx)
			ends, under = append(ends, end), under+1
			go func() {
				rows, err := inTime(ctx, end, s.opts.TryTimeout, req, calls[n])
				replies <- reply{n, rows, err}
			}()
			timer.Reset(s.opts.HedgeDelay)
		} else if under == 0 {
			abandon(-1)
			return nil, last
		}
	}
}

// inTime makes a call, which is cancelled if it has not begun to answer in time.
func inTime(ctx context.Context, cancel context.CancelFunc, limit time.Duration, req *Request, call call) (*Rows, error) {
	late := time.AfterFunc(limit, cancel)
	rows, err := call(ctx)
	switch {
	case late.Stop():
		return rows, err
	case err == nil: // its rows are cut off
		rows.Close()
	}
	return nil, fail(ErrUnreachable, req, errLate)
}

var errLate = errors.New("it took too long to begin to answer")
