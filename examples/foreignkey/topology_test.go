package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/odradek-go/odradek/examples/internal/demo"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streamstest"
)

// shop pipes products and items, and reads what items cost.
type shop struct {
	products *streamstest.InputTopic[string, product]
	items    *streamstest.InputTopic[string, item]
	priced   *streamstest.OutputTopic[string, priced]
}

func newShop(t *testing.T) *shop {
	d := streamstest.NewDriver(t, topology())
	return &shop{
		products: streamstest.NewInputTopic(d, productsTopic, streamstest.Input[string, product]{Value: serde.JSON[product]()}),
		items:    streamstest.NewInputTopic(d, itemsTopic, streamstest.Input[string, item]{Value: serde.JSON[item]()}),
		priced:   streamstest.NewOutputTopic(d, pricedTopic, streamstest.Output[string, priced]{Value: serde.JSON[priced]()}),
	}
}

// expect checks what has changed since the last time.
func (s *shop) expect(t *testing.T, want map[string]priced) {
	t.Helper()
	if got := streamstest.ReadMap(s.priced); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPrices(t *testing.T) {
	s := newShop(t)
	s.items.Pipe("ada-1", item{"p-tea", 2})
	s.expect(t, nil) // there is no such product yet
	s.products.Pipe("p-tea", product{"tea", 250})
	s.expect(t, map[string]priced{"ada-1": {"tea", 2, 500}})
	s.items.Pipe("bob-1", item{"p-tea", 1})
	s.expect(t, map[string]priced{"bob-1": {"tea", 1, 250}})
	s.products.Pipe("p-tea", product{"tea", 300})
	s.expect(t, map[string]priced{"ada-1": {"tea", 2, 600}, "bob-1": {"tea", 1, 300}})
}

// TestItemChanges: another product, another quantity, no product.
func TestItemChanges(t *testing.T) {
	s := newShop(t)
	s.products.Pipe("p-tea", product{"tea", 250})
	s.products.Pipe("p-milk", product{"milk", 120})
	s.items.Pipe("ada-1", item{"p-tea", 1})
	s.items.Pipe("ada-1", item{"p-milk", 3})
	s.expect(t, map[string]priced{"ada-1": {"milk", 3, 360}})
	s.products.Pipe("p-tea", product{"tea", 999}) // is nobody's any more
	s.expect(t, nil)
	s.items.Pipe("ada-1", item{Quantity: 1})
	if r := s.priced.Read(); r.Key != "ada-1" || !r.ValueNull {
		t.Errorf("got %+v", r)
	}
}

// TestGone: what is deleted on either side has no price.
func TestGone(t *testing.T) {
	s := newShop(t)
	s.products.Pipe("p-tea", product{"tea", 250})
	s.items.Pipe("ada-1", item{"p-tea", 1})
	s.items.Pipe("bob-1", item{"p-tea", 1})
	s.priced.ReadAll()
	s.items.PipeTombstone("ada-1")
	if r := s.priced.Read(); r.Key != "ada-1" || !r.ValueNull {
		t.Errorf("got %+v", r)
	}
	s.products.PipeTombstone("p-tea")
	if r := s.priced.Read(); r.Key != "bob-1" || !r.ValueNull || !s.priced.IsEmpty() {
		t.Errorf("got %+v, and %v", r, s.priced.ReadAll())
	}
}

// TestProgram runs the whole program, on the embedded broker.
func TestProgram(t *testing.T) {
	var out, messages strings.Builder
	if err := demo.Run(t.Context(), program, nil, &out, &messages); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bob-1 is 1 tea for 250 cents", "bob-1 is 1 tea for 300 cents", "ada-2 is gone"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("prints\n%s\nwithout %s", out.String(), want)
		}
	}
	if messages.Len() > 0 {
		t.Errorf("says %s", messages.String())
	}
}
