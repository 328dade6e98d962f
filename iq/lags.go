package iq

import (
	"context"
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

// of returns how many records a copy is behind that has a changelog up to next, and
// for how long it may have been; −1 where that isn't known.
func (l *lags) of(key changelog, next int64) (lag int64, age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.ends[key]
	if e == nil {
		return -1, -1
	}
	if next >= e.offset {
		e.reached = e.at
	}
	age = -1
	if !e.reached.IsZero() {
		age = l.now().Sub(e.reached)
	}
	return max(0, e.offset-next), age
}

// refresh looks up where the topic's changelogs end, unless that was done lately.
func (l *lags) refresh(ctx context.Context, key changelog) error {
	l.mu.Lock()
	u := l.lookups[key.topic]
	if u == nil || u.ended() && l.now().Sub(u.at) >= lagsAge {
		u = &lookup{done: make(chan struct{}), at: l.now()}
		l.lookups[key.topic] = u
		l.mu.Unlock()
		l.lookUp(ctx, key.topic, u)
	} else {
		l.mu.Unlock()
	}
	select {
	case <-u.done:
		return u.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (u *lookup) ended() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

// lookUp looks the ends up as of now. What ends later than the lookup began counts as
// of its beginning.
func (l *lags) lookUp(ctx context.Context, topic string, u *lookup) {
	defer close(u.done)
	began := l.now()
	ends, err := l.list(ctx, topic)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		u.err, u.at = err, time.Time{} // the next one tries again
		return
	}
	for partition, offset := range ends {
		e := l.ends[changelog{topic, partition}]
		if e == nil {
			e = &end{}
			l.ends[changelog{topic, partition}] = e
		}
		e.offset, e.at = offset, began
	}
}
