package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/odradek-go/odradek/examples/internal/demo"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// bank pipes payments and reads verdicts.
type bank struct {
	driver               *streamstest.Driver
	payments             *streamstest.InputTopic[string, payment]
	approved, suspicious *streamstest.OutputTopic[string, verdict]
}

func newBank(t *testing.T) *bank {
	d := streamstest.NewDriver(t, topology())
	out := streamstest.Output[string, verdict]{Value: serde.JSON[verdict]()}
	return &bank{
		driver:     d,
		payments:   streamstest.NewInputTopic(d, paymentsTopic, streamstest.Input[string, payment]{Value: serde.JSON[payment]()}),
		approved:   streamstest.NewOutputTopic(d, approvedTopic, out),
		suspicious: streamstest.NewOutputTopic(d, suspiciousTopic, out),
	}
}

// pay is a payment so long after the start. It returns what is suspicious about it.
func (b *bank) pay(after time.Duration, card, country string) string {
	b.payments.PipeRecord(streams.Record[string, payment]{
		Key: card, Value: payment{"Shop", country, 100}, Timestamp: after.Milliseconds(),
		Headers: []streams.Header{{Key: "trace", Value: []byte("1")}},
	})
	if b.suspicious.IsEmpty() {
		return b.approved.ReadValue().Suspicion
	}
	return b.suspicious.ReadValue().Suspicion
}

func TestManyPayments(t *testing.T) {
	b := newBank(t)
	for i := range 3 {
		if got := b.pay(time.Duration(i)*10*time.Second, "card", "FR"); got != "" {
			t.Errorf("payment %d: %s", i+1, got)
		}
	}
	if got := b.pay(30*time.Second, "other card", "FR"); got != "" {
		t.Errorf("another card: %s", got)
	}
	if got := b.pay(40*time.Second, "card", "FR"); got != "4 payments within a minute" {
		t.Errorf("the fourth payment: %q", got)
	}
	if got := b.pay(2*time.Minute, "card", "FR"); got != "" {
		t.Errorf("later: %s", got)
	}
}

func TestTravel(t *testing.T) {
	b := newBank(t)
	b.pay(time.Hour, "card", "FR")
	if got := b.pay(time.Hour+10*time.Minute, "card", "JP"); got != "paid in FR and in JP within 10m0s" {
		t.Errorf("far away: %q", got)
	}
	if got := b.pay(50*time.Minute, "card", "JP"); !strings.HasPrefix(got, "paid in FR") {
		t.Errorf("far away, and told late: %q", got)
	}
	if got := b.pay(2*time.Hour, "card", "JP"); got != "" {
		t.Errorf("after the flight: %s", got)
	}
}

// TestForwarded: what goes on is the payment, with its time and headers.
func TestForwarded(t *testing.T) {
	b := newBank(t)
	b.payments.PipeRecord(streams.Record[string, payment]{
		Key: "card", Value: payment{"Shop", "FR", 100}, Timestamp: 7, Headers: []streams.Header{{Key: "trace", Value: []byte("1")}},
	})
	r := b.approved.Read()
	if r.Key != "card" || r.Timestamp != 7 || fmt.Sprint(r.Headers) != "[{trace [49]}]" || r.Value.payment != (payment{"Shop", "FR", 100}) {
		t.Errorf("got %+v", r)
	}
}

// TestForgetsCards: the store does not grow for ever.
func TestForgetsCards(t *testing.T) {
	b := newBank(t)
	for i := range 5 {
		b.pay(0, fmt.Sprint("card-", i), "FR")
	}
	b.pay(memory+time.Minute, "card-0", "FR")
	cards := streamstest.KeyValueStore[string, card](b.driver, cardsStore)
	var left []string
	it := cards.Range(state.Bounds[string]{}, state.Forward)
	defer it.Close()
	for it.Next() {
		left = append(left, it.Key())
	}
	if it.Err() != nil || len(left) != 1 || left[0] != "card-0" {
		t.Errorf("left are %v, %v", left, it.Err())
	}
}

// TestProgram runs the whole program, on the embedded broker.
func TestProgram(t *testing.T) {
	var out, messages strings.Builder
	if err := demo.Run(t.Context(), program, nil, &out, &messages); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"card-1 pays 240 cents at Bakery", "paid in FR and in JP within 5m0s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("prints\n%s\nwithout %s", out.String(), want)
		}
	}
	if messages.Len() > 0 {
		t.Errorf("says %s", messages.String())
	}
}
