package main

import (
	"strings"
	"testing"

	"github.com/odradek-go/odradek/examples/internal/demo"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streamstest"
)

// shop pipes customers and orders, and reads what becomes of the orders.
type shop struct {
	customers *streamstest.InputTopic[string, *customer]
	orders    *streamstest.InputTopic[string, order]
	enriched  *streamstest.OutputTopic[string, enriched]
	unknown   *streamstest.OutputTopic[string, enriched]
}

func newShop(t *testing.T) *shop {
	d := streamstest.NewDriver(t, topology())
	out := streamstest.Output[string, enriched]{Value: serde.JSON[enriched]()}
	return &shop{
		customers: streamstest.NewInputTopic(d, customersTopic, streamstest.Input[string, *customer]{Value: serde.JSON[*customer]()}),
		orders:    streamstest.NewInputTopic(d, ordersTopic, streamstest.Input[string, order]{Value: serde.JSON[order]()}),
		enriched:  streamstest.NewOutputTopic(d, enrichedTopic, out),
		unknown:   streamstest.NewOutputTopic(d, unknownTopic, out),
	}
}

func TestKnownCustomer(t *testing.T) {
	s := newShop(t)
	s.customers.Pipe("c1", &customer{Name: "Ada", Level: "silver"})
	s.customers.Pipe("c1", &customer{Name: "Ada", Level: "gold"}) // the latest counts
	s.orders.Pipe("o1", order{ID: "o1", Customer: "c1", Cents: 100})
	got := s.enriched.ReadKeyValue()
	if want := (order{"o1", "c1", 100}); got.Key != "o1" || got.Value.order != want || got.Value.Name != "Ada" || got.Value.Level != "gold" {
		t.Errorf("got %+v", got)
	}
	if !s.unknown.IsEmpty() {
		t.Errorf("unknown: %+v", s.unknown.ReadAll())
	}
}

func TestUnknownCustomer(t *testing.T) {
	s := newShop(t)
	s.orders.Pipe("o1", order{ID: "o1", Customer: "c1", Cents: 100})
	s.customers.Pipe("c1", &customer{Name: "Ada"}) // comes too late
	s.customers.PipeTombstone("c1")
	s.orders.Pipe("o2", order{ID: "o2", Customer: "c1", Cents: 200}) // and is gone
	got := s.unknown.ReadKeyValues()
	if len(got) != 2 || got[0].Key != "o1" || got[1].Key != "o2" || got[1].Value.Cents != 200 || got[1].Value.Name != "" {
		t.Errorf("unknown: %+v", got)
	}
	if !s.enriched.IsEmpty() {
		t.Errorf("enriched: %+v", s.enriched.ReadAll())
	}
}

// TestProgram runs the whole program, on the embedded broker.
func TestProgram(t *testing.T) {
	var out, messages strings.Builder
	if err := demo.Run(t.Context(), program, nil, &out, &messages); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"o1: Ada (gold) pays 1250 cents", "o3: who is c3?"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("prints\n%s\nwithout %s", out.String(), want)
		}
	}
	if messages.Len() > 0 {
		t.Errorf("says %s", messages.String())
	}
}
