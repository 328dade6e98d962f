package taskmgr

import "container/heap"

// punctuation is a call that is made again and again. Times are in milliseconds.
type punctuation struct {
	at        int64 // of the next call
	every     int64
	f         func(now int64) error
	cancelled bool
}

// next moves to the first call after now that is a whole number of intervals away.
func (p *punctuation) next(now int64) {
	missed := int64(0)
	if now >= p.at+p.every {
		missed = (now - p.at) / p.every
	}
	p.at += (missed + 1) * p.every
}

// punctuations are those of one type, the one that is due first in front.
type punctuations []*punctuation

func (ps *punctuations) add(p *punctuation) (cancel func()) {
	heap.Push(ps, p)
	return func() { p.cancelled = true }
}

// run makes the calls that are due at now.
func (ps *punctuations) run(now int64) (any bool, err error) {
	for len(*ps) > 0 && (*ps)[0].at <= now {
		p := heap.Pop(ps).(*punctuation)
		if p.cancelled {
			continue
		}
		any = true
		err := p.f(now)
		if !p.cancelled {
			p.next(now)
			heap.Push(ps, p)
		}
		if err != nil {
			return true, err
		}
	}
	return any, nil
}

func (ps punctuations) Len() int           { return len(ps) }
func (ps punctuations) Less(i, j int) bool { return ps[i].at < ps[j].at }
func (ps punctuations) Swap(i, j int)      { ps[i], ps[j] = ps[j], ps[i] }
func (ps *punctuations) Push(x any)        { *ps = append(*ps, x.(*punctuation)) }
func (ps *punctuations) Pop() any {
	last := len(*ps) - 1
	p := (*ps)[last]
	*ps = (*ps)[:last]
	return p
}
