// Foreignkey keeps the prices of what is in the baskets of a shop up to date.
//
//	go run ./examples/foreignkey
//
// starts an embedded broker, feeds it products and baskets, and prices that change, and
// prints what items cost each time that it changes. With -brokers it is an instance of
// the application on a real cluster, Apache Kafka 4.1 or later. See -help.
//
// The application is in topology.go, and its test in topology_test.go. It shows two
// tables that are joined by a foreign key: a change of either side leads to new results,
// and their topics need not have equal numbers of partitions.
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
	Name:       "foreignkey",
	Partitions: 4,
	Inputs:     []string{productsTopic, itemsTopic},
	Outputs: []demo.Output{demo.Print(pricedTopic, serde.String, serde.JSON[priced](), func(r streams.Record[string, priced]) string {
		if r.ValueNull {
			return fmt.Sprintf("%s is gone", r.Key)
		}
		return fmt.Sprintf("%s is %d %s for %d cents", r.Key, r.Value.Quantity, r.Value.Name, r.Value.Cents)
	})},
	Sample: sample,
	Run:    run,
}

// sample are products, items and a change of a price, one after the other.
func sample(now time.Time) (steps [][]*kgo.Record, err error) {
	for i, r := range []struct {
		topic, key string
		value      any
	}{
		{productsTopic, "p-tea", product{"tea", 250}},
		{productsTopic, "p-milk", product{"milk", 120}},
		{itemsTopic, "ada-1", item{"p-tea", 2}},
		{itemsTopic, "ada-2", item{"p-milk", 1}},
		{itemsTopic, "bob-1", item{"p-tea", 1}},
		{productsTopic, "p-tea", product{"tea", 300}},
		{itemsTopic, "ada-2", nil},
	} {
		rec, err := demo.JSON(r.topic, r.key, r.value, now.Add(time.Duration(i)*time.Second))
		if err != nil {
			return nil, err
		}
		steps = append(steps, []*kgo.Record{rec})
	}
	return steps, nil
}
