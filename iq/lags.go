package iq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

func offsetText(topic string, partition int32, offset int64) string {
	return fmt.Sprintf("%s-%d@%d", topic, partition, offset)
}

// lagsAge is for how long it counts as known where changelogs end.
const lagsAge = 250 * time.Millisecond

// changelog is a partition of a changelog topic.
type changelog struct {
	topic     string
	partition int32
}

// lags knows where changelogs end, and so how far copies are behind. It looks that up
// when it is asked for, not more often than every lagsAge.
type lags struct {
	list func(ctx context.Context, topic string) (map[int32]int64, error)
	now  func() time.Time

	mu      sync.Mutex
	ends    map[changelog]*end
	lookups map[string]*lookup // under way, or the last one, by topic
}

// end is where a changelog ended when that was looked up last.
type end struct {
	offset int64
	at     time.Time

	// reached is the last time for which the copy here is known to have all that
	// was there then.
	reached time.Time
}

// lookup is a request for the ends of a topic.
type lookup struct {
	done chan struct{}
	at   time.Time
	err  error
}

func newLags(list func(context.Context, string) (map[int32]int64, error)) *lags {
	return &lags{list: list, now: time.Now, ends: make(map[changelog]*end), lookups: make(map[string]*lookup)}
}

// recent is since when a look at the ends counts as one of now.
func (l *lags) recent() time.Time { return l.now().Add(-lagsAge) }

// of returns how many records a copy is behind that has a changelog up to next, by a
// look at its end that is recent, and for how long it may have been; −1 where that
// isn't known.
func (l *lags) of(key changelog, next int64, recent time.Time) (lag int64, age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.ends[key]
	if e == nil {
		return -1, -1
	}
	if next >= e.offset {
		e.reached = e.at
	}
	lag, age = -1, -1
	if e.at.After(recent) {
		lag = max(0, e.offset-next)
	}
	if !e.reached.IsZero() {
		age = l.now().Sub(e.reached)
	}
	return lag, age
}

// refresh looks up where the topic's changelogs end, unless that was done recently. A
// lookup that has been under way for longer is waited for, and then made again.
func (l *lags) refresh(ctx context.Context, key changelog, recent time.Time) error {
	for {
		u, mine := l.lookup(key.topic, recent)
		if mine {
			l.lookUp(ctx, key.topic, u)
		}
		select {
		case <-u.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		switch {
		case u.err == nil && u.at.After(recent):
			return nil
		case u.err != nil && (mine || !gaveUp(u.err)):
			return u.err
		}
	}
}

// gaveUp says whether a lookup has failed because who made it has no more time.
func gaveUp(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// lookup is the one that is under way, or the last one if it is recent, or else a new
// one, which the caller has to make.
func (l *lags) lookup(topic string, recent time.Time) (u *lookup, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u = l.lookups[topic]
	if u == nil || u.ended() && (u.err != nil || !u.at.After(recent)) {
		u = &lookup{done: make(chan struct{}), at: l.now()}
		l.lookups[topic] = u
		return u, true
	}
	return u, false
}

func (u *lookup) ended() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

// lookUp looks the ends up. They count as of when the lookup began.
func (l *lags) lookUp(ctx context.Context, topic string, u *lookup) {
	defer close(u.done)
	ends, err := l.list(ctx, topic)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		u.err = err // the next one tries again
		return
	}
	for partition, offset := range ends {
		e := l.ends[changelog{topic, partition}]
		if e == nil {
			e = &end{}
			l.ends[changelog{topic, partition}] = e
		}
		e.offset, e.at = offset, u.at
	}
}
