package iq

import (
	"bytes"
	"container/heap"
	"context"
	"io"

	"golang.org/x/sync/errgroup"
)

const (
	// pageSize is how many entries of a partition are asked for at a time, and so in
	// memory, while several partitions are merged.
	pageSize = 256

	// scatterWidth is how many partitions are asked at once.
	scatterWidth = 16
)

// pager reads a partition's part of a range a page at a time. Between two pages the
// partition may move: the next page is asked of whoever has it then.
type pager struct {
	s    *Service
	ctx  context.Context
	req  Request
	left int // of the limit, −1: none
	page []Entry
	meta Meta
	last bool
}

// fill makes page have entries, if there are any left.
func (p *pager) fill() error {
	if len(p.page) > 0 || p.last {
		return nil
	}
	p.req.Limit = pageSize
	if p.left >= 0 {
		p.req.Limit = min(pageSize, p.left)
	}
	if p.req.Limit == 0 {
		p.last = true
		return nil
	}
	var page []Entry
	err := p.s.retry(p.ctx, &p.req, func() error {
		rows, err := p.s.try(p.ctx, &p.req)
		if err != nil {
			return err
		}
		p.meta, page = rows.Meta, nil
		for e, err := range rows.All() {
			if err != nil {
				return again(err)
			}
			page = append(page, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.page, p.last = page, len(page) < p.req.Limit
	if n := len(page); n > 0 {
		p.req.After = page[n-1].Key
		if p.left >= 0 {
			p.left -= n
		}
	}
	return nil
}

// again is the error of a page that was interrupted, which is asked for once more.
func again(err error) error {
	if kindIn(err) == ErrInterrupted {
		return &Error{Kind: ErrUnreachable, Partition: AllPartitions, Err: err}
	}
	return err
}

// pagers are the partitions that have entries left, as a heap with the next entry at
// its top.
type pagers struct {
	all      []*pager
	backward bool
}

func (ps *pagers) Len() int      { return len(ps.all) }
func (ps *pagers) Swap(i, j int) { ps.all[i], ps.all[j] = ps.all[j], ps.all[i] }
func (ps *pagers) Push(x any)    { ps.all = append(ps.all, x.(*pager)) }
func (ps *pagers) Pop() any {
	n := len(ps.all) - 1
	last := ps.all[n]
	ps.all = ps.all[:n]
	return last
}
func (ps *pagers) Less(i, j int) bool {
	a, b := ps.all[i], ps.all[j]
	c := bytes.Compare(a.page[0].Key, b.page[0].Key)
	if c == 0 {
		return a.req.Partition < b.req.Partition
	}
	return c < 0 != ps.backward
}

// merge asks all n partitions and merges what they have by key.
func (s *Service) merge(ctx context.Context, req *Request, n int) (*Rows, error) {
	all := make([]*pager, n)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(scatterWidth)
	for i := range all {
		p := &pager{s: s, ctx: gctx, req: *req, left: req.Limit}
		p.req.Partition = int32(i)
		if req.Limit == 0 {
			p.left = -1
		}
		all[i] = p
		group.Go(p.fill)
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	meta := Meta{Host: s.local.host, Partition: AllPartitions, Active: true, Position: Position{}}
	ps := &pagers{backward: req.Backward}
	for _, p := range all {
		p.ctx = ctx
		meta.add(&p.meta)
		if len(p.page) > 0 {
			ps.all = append(ps.all, p)
		}
	}
	heap.Init(ps)
	left := req.Limit
	return NewRows(meta, func() (e Entry, err error) {
		if len(ps.all) == 0 || req.Limit > 0 && left == 0 {
			return e, io.EOF
		}
		p := ps.all[0]
		e, p.page = p.page[0], p.page[1:]
		left--
		if err := p.fill(); err != nil {
			return e, err
		}
		if len(p.page) > 0 {
			heap.Fix(ps, 0)
		} else {
			heap.Pop(ps)
		}
		return e, nil
	}, nil), nil
}

// concat asks all n partitions one after the other, and tells of the first what there
// is to tell.
func (s *Service) concat(ctx context.Context, req *Request, n int) (*Rows, error) {
	ask := func(partition int) (*Rows, error) {
		of := *req
		of.Partition = int32(partition)
		return s.ask(ctx, &of, true)
	}
	rows, err := ask(0)
	if err != nil {
		return nil, err
	}
	at, left := 0, req.Limit
	meta := rows.Meta
	meta.Partition, meta.Host = AllPartitions, s.local.host
	return NewRows(meta, func() (e Entry, err error) {
		for req.Limit == 0 || left > 0 {
			if e, err = rows.Next(); err != io.EOF {
				left--
				return e, err
			}
			if at++; at == n {
				break
			}
			rows.Close()
			if rows, err = ask(at); err != nil {
				rows = rowsOf(meta)
				return e, err
			}
		}
		return e, io.EOF
	}, func() { rows.Close() }), nil
}

// add makes m true of another partition as well.
func (m *Meta) add(other *Meta) {
	m.Active = m.Active && other.Active
	m.Lag, m.Age = larger(m.Lag, other.Lag), larger(m.Age, other.Age)
	m.Position.merge(other.Position)
}

// larger is the larger one of two figures, of which −1 stands for not known.
func larger[T ~int64](a, b T) T {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}
