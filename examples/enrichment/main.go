// Enrichment adds to each order of a shop what is known of its customer.
//
//	go run ./examples/enrichment
//
// starts an embedded broker, feeds it customers and orders, and prints the orders with
// their customers. With -brokers it is an instance of the application on a real
// cluster, Apache Kafka 4.1 or later. See -help.
//
// The application is in topology.go, and its test in topology_test.go. It shows a stream
// that is joined with a table, keys that have to be changed for it, and branches.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/examples/internal/demo"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

func main() { demo.Main(program) }

// run runs the application until ctx ends.
func run(ctx context.Context, cfg streams.Config) error {
	app, err := streams.NewApp(topology(), cfg)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

var program = demo.Program{
	Name:       "enrichment",
	Partitions: 4,
	Inputs:     []string{customersTopic, ordersTopic},
	Outputs: []demo.Output{
		demo.Print(enrichedTopic, serde.String, serde.JSON[enriched](), func(r streams.Record[string, enriched]) string {
			return fmt.Sprintf("%s: %s (%s) pays %d cents", r.Key, r.Value.Name, r.Value.Level, r.Value.Cents)
		}),
		demo.Print(unknownTopic, serde.String, serde.JSON[enriched](), func(r streams.Record[string, enriched]) string {
			return fmt.Sprintf("%s: who is %s?", r.Key, r.Value.Customer)
		}),
	},
	Sample: sample,
	Run:    run,
}

// sample are customers, and then orders of theirs and of others.
func sample(now time.Time) (steps [][]*kgo.Record, err error) {
	var customers, orders []*kgo.Record
	for id, c := range map[string]customer{"c1": {"Ada", "gold"}, "c2": {"Bob", "silver"}} {
		r, err := demo.JSON(customersTopic, id, c, now)
		if err != nil {
			return nil, err
		}
		customers = append(customers, r)
	}
	for _, o := range []order{{"o1", "c1", 1250}, {"o2", "c2", 300}, {"o3", "c3", 999}, {"o4", "c1", 75}} {
		r, err := demo.JSON(ordersTopic, o.ID, o, now.Add(time.Minute))
		if err != nil {
			return nil, err
		}
		orders = append(orders, r)
	}
	return [][]*kgo.Record{customers, orders}, nil
}
