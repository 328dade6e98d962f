package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
)

// checker is the processor. Each task has one of its own, with the cards whose payments
// are in its partition, so that nothing in it is shared.
type checker struct {
	ctx   *streams.ProcessorContext[string, verdict]
	cards *state.KeyValue[string, card]
}

func newChecker() streams.Processor[string, payment, string, verdict] { return &checker{} }

// Init finds the store, and has cards cleaned up from time to time: by the payments'
// times, so that the same payments always lead to the same results.
func (c *checker) Init(ctx *streams.ProcessorContext[string, verdict]) (err error) {
	c.ctx = ctx
	if c.cards, err = streams.GetStore[*state.KeyValue[string, card]](ctx, cardsStore); err != nil {
		return err
	}
	_, err = ctx.Schedule(cleanup, streams.StreamTime, c.forget)
	return err
}

func (*checker) Close() error { return nil }

// Process judges a payment by those before it, remembers it, and sends it on.
func (c *checker) Process(r streams.Record[string, payment]) error {
	known, _, err := c.cards.Get(r.Key)
	if err != nil {
		return err
	}
	known.forget(r.Timestamp)
	suspicion := known.suspicion(r.Value, r.Timestamp)
	known.remember(past{r.Timestamp, r.Value.Country})
	if err := c.cards.Put(r.Key, known, r.Timestamp); err != nil {
		return err
	}
	to := approvedSink
	if suspicion != "" {
		to = suspiciousSink
	}
	return c.ctx.ForwardTo(to, streams.Record[string, verdict]{
		Key: r.Key, Value: verdict{r.Value, suspicion}, Timestamp: r.Timestamp, Headers: r.Headers,
	})
}

// forget removes the cards that were not used for long.
func (c *checker) forget(now int64) error {
	var unused []string
	cards := c.cards.Range(state.Bounds[string]{}, state.Forward)
	defer cards.Close()
	for cards.Next() {
		known := cards.Value()
		if known.forget(now); len(known.Payments) == 0 {
			unused = append(unused, cards.Key())
		}
	}
	if err := cards.Err(); err != nil {
		return err
	}
	for _, key := range unused {
		if err := c.cards.Delete(key, now); err != nil {
			return err
		}
	}
	return nil
}

// The rules.
const (
	mostPerMinute = 3                // payments with one card
	travelTime    = 30 * time.Minute // from one country to another, at least
)

// suspicion says what is suspicious about a payment at that time, empty if nothing is.
func (c *card) suspicion(p payment, at int64) string {
	recent := 1
	for _, before := range c.Payments {
		apart := time.Duration(abs(at-before.At)) * time.Millisecond
		if before.Country != p.Country && apart < travelTime {
			return fmt.Sprintf("paid in %s and in %s within %v", before.Country, p.Country, apart)
		}
		if apart < time.Minute {
			recent++
		}
	}
	if recent > mostPerMinute {
		return fmt.Sprintf("%d payments within a minute", recent)
	}
	return ""
}

// remember adds a payment. They need not come in the order of their times.
func (c *card) remember(p past) {
	i, _ := slices.BinarySearchFunc(c.Payments, p.At, func(other past, at int64) int { return cmp.Compare(other.At, at) })
	c.Payments = slices.Insert(c.Payments, i, p)
}

// forget drops payments that are longer ago than is remembered.
func (c *card) forget(now int64) {
	c.Payments = slices.DeleteFunc(c.Payments, func(p past) bool { return now-p.At > memory.Milliseconds() })
}

func abs(n int64) int64 { return max(n, -n) }
