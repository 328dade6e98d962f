package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/streams"
)

// load writes and asks.
type load struct {
	options
	client   *kgo.Client
	breaker  *breaker
	truth    *truth
	logs     *changelogs
	verifier *verifier

	people    *http.Client // who use curl
	transport *http.Transport
	one       map[string]client // of one process each
	any       client            // of all

	results sync.Mutex
	tallies map[string]*tally // by way of asking
	wrong   []error
	wrongs  int
}

const (
	// deadline is how long a query may take, and grace how much later its end may be
	// noticed where everything has to share a few processors.
	deadline = 5 * time.Second
	grace    = 2 * time.Second
)

func newLoad(o options, writer *kgo.Client, b *breaker) (l *load, err error) {
	l = &load{
		options: o, client: writer, breaker: b, truth: newTruth(), tallies: make(map[string]*tally),
		transport: &http.Transport{MaxIdleConnsPerHost: 64}, one: make(map[string]client),
		people: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	var all []string
	for _, p := range b.processes {
		address := p.address
		all = append(all, address)
		if l.one[address], err = newClient(l.transport, address); err != nil {
			return nil, err
		}
	}
	if l.any, err = newClient(l.transport, all...); err != nil {
		return nil, err
	}
	l.logs, err = followChangelogs(b.kafka.Addrs())
	l.verifier = &verifier{l.truth, l.logs, o.guarantee == streams.ExactlyOnceV2}
	return l, err
}

// run is the whole check.
func (l *load) run(ctx context.Context) error {
	l.say("%s, %d processes, seed %d", l.guarantee, processes, l.seed)
	began := time.Now()
	group, gctx := errgroup.WithContext(ctx)
	following, endFollowing := context.WithCancel(gctx)
	group.Go(func() error { return l.logs.run(following) })
	group.Go(func() error {
		defer endFollowing()
		if err := l.start(gctx); err != nil {
			return err
		}
		if err := l.underLoad(gctx); err != nil {
			return err
		}
		return l.settled(gctx)
	})
	err := group.Wait()
	l.transport.CloseIdleConnections()
	l.report(time.Since(began))
	if l.wrongs > 0 {
		err = errors.Join(append([]error{err, fmt.Errorf("%d answers were wrong, of which these came first", l.wrongs)}, l.wrong...)...)
	}
	return err
}

// startPatience is how long the application may take to answer the first query.
const startPatience = time.Minute

// start writes something to ask for, and waits until it can be.
func (l *load) start(ctx context.Context) error {
	for i := range 50 {
		l.write(ctx, key(i))
	}
	if err := l.client.Flush(ctx); err != nil {
		return err
	}
	began := time.Now()
	for i := 0; i < 50; {
		q := question{Request: iq.Request{Store: countsStore, Kind: iq.Get, Key: []byte(key(i)), Partition: iq.AllPartitions}}
		q.askSince(l.truth.of(key(i)))
		a := l.ask(ctx, l.any, &q)
		switch {
		case a.err == nil:
			i++
		case time.Since(began) > startPatience || ctx.Err() != nil:
			return fmt.Errorf("the application doesn't answer: %w", a.err)
		}
	}
	return nil
}

// underLoad writes, asks and makes faults at the same time.
func (l *load) underLoad(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithTimeout(ctx, l.duration)
	defer cancel()
	for i := range l.askers {
		group.Go(func() error { l.asks(ctx, rand.New(rand.NewPCG(l.seed, uint64(i)+1))); return nil })
	}
	group.Go(func() error { return l.writes(ctx) })
	group.Go(func() error { return l.breaker.run(ctx) })
	return group.Wait()
}

func key(i int) string { return fmt.Sprintf("key-%04d", i*7919%10_000) }

// writes writes until ctx ends. New keys come all the time, until there are enough.
func (l *load) writes(ctx context.Context) error {
	r := rand.New(rand.NewPCG(l.seed, 0))
	tick := time.NewTicker(max(time.Second/time.Duration(l.rate), 50*time.Microsecond))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			l.write(ctx, key(r.IntN(min(l.keys, 50+n/10))))
		case <-ctx.Done():
			// What is on its way is written in any case, or nobody would know what is true.
			flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			return l.client.Flush(flushing)
		}
	}
}

// write gives a key its next value.
func (l *load) write(ctx context.Context, key string) {
	value, at := l.truth.next(key)
	record := &kgo.Record{Topic: inputTopic, Key: []byte(key), Value: []byte(value), Timestamp: at}
	l.client.Produce(context.WithoutCancel(ctx), record, func(r *kgo.Record, err error) {
		if err == nil {
			err = l.truth.written(key, r.Partition, r.Offset)
		}
		if err != nil {
			l.accuse(fmt.Errorf("write %s: %w", value, err))
		}
	})
}

// The ways of asking.
const (
	processWay = "a process"
	anyWay     = "any process"
	curlWay    = "curl"
)

// asks asks until ctx ends, in one way after the other.
func (l *load) asks(ctx context.Context, r *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		q := l.truth.draw(r)
		runs := l.breaker.running()
		address := runs[r.IntN(len(runs))]
		switch n % 3 {
		case 0:
			l.put(ctx, processWay, l.one[address], &q)
		case 1:
			l.put(ctx, anyWay, l.any, &q)
		case 2:
			l.put(ctx, curlWay, curl{l.people, address}, &q)
		}
		sleep(ctx, time.Duration(r.Int64N(int64(4*time.Millisecond))))
	}
}

// put puts a question, even if ctx ends meanwhile, and checks the answer.
func (l *load) put(ctx context.Context, way string, to asker, q *question) answer {
	a := l.ask(context.WithoutCancel(ctx), to, q)
	kind, err := "", error(nil)
	if a.err != nil {
		kind, err = failed(a.err)
	} else {
		err = l.verifier.answered(q, &a)
	}
	if took := a.ended.Sub(a.began); err == nil && took > deadline+grace {
		err = errors.Join(fmt.Errorf("it took %v", took), a.err)
	}
	if err != nil {
		l.accuse(fmt.Errorf("%s: %v, by %s at %s from %+v: %w", a.began.Format(time.StampMilli), q, way, a.asked, a.meta, err))
	}
	l.results.Lock()
	defer l.results.Unlock()
	if l.tallies[way] == nil {
		l.tallies[way] = newTally()
	}
	l.tallies[way].add(q, &a, kind)
	return a
}

func (l *load) ask(ctx context.Context, to asker, q *question) answer {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	began := time.Now()
	a := to.ask(ctx, q)
	a.began, a.ended = began, time.Now()
	return a
}

// accuse notes what was wrong.
func (l *load) accuse(err error) {
	const shown = 20
	l.results.Lock()
	defer l.results.Unlock()
	if l.wrongs++; len(l.wrong) < shown {
		l.wrong = append(l.wrong, err)
	}
}
