// Fraud looks for payments that their cards' owners have not made.
//
//	go run ./examples/fraud
//
// starts an embedded broker, feeds it payments, and prints which of them are approved
// and which are suspicious, and why. With -brokers it is an instance of the application
// on a real cluster, Apache Kafka 4.1 or later. See -help.
//
// The application is in topology.go and checker.go, and its test in topology_test.go. It
// shows the Processor API: a topology made node by node, a processor with a state store
// of its own, which is cleaned up from time to time, and records that go to one child
// or another.
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
	Name:       "fraud",
	Partitions: 4,
	Inputs:     []string{paymentsTopic},
	Outputs: []demo.Output{
		demo.Print(approvedTopic, serde.String, serde.JSON[verdict](), func(r streams.Record[string, verdict]) string {
			return fmt.Sprintf("%s pays %d cents at %s", r.Key, r.Value.Cents, r.Value.Merchant)
		}),
		demo.Print(suspiciousTopic, serde.String, serde.JSON[verdict](), func(r streams.Record[string, verdict]) string {
			return fmt.Sprintf("%s at %s: %s", r.Key, r.Value.Merchant, r.Value.Suspicion)
		}),
	},
	Sample: sample,
	Run:    run,
}

// sample are payments of a few minutes.
func sample(now time.Time) ([][]*kgo.Record, error) {
	var records []*kgo.Record
	for _, p := range []struct {
		after time.Duration
		card  string
		payment
	}{
		{0, "card-1", payment{"Bakery", "FR", 240}},
		{5 * time.Second, "card-2", payment{"Kiosk", "DE", 100}},
		{10 * time.Second, "card-2", payment{"Kiosk", "DE", 100}},
		{15 * time.Second, "card-2", payment{"Kiosk", "DE", 100}},
		{20 * time.Second, "card-2", payment{"Kiosk", "DE", 100}}, // the fourth in a minute
		{5 * time.Minute, "card-1", payment{"Jeweller", "JP", 499_900}},
		{10 * time.Minute, "card-2", payment{"Kiosk", "DE", 100}},
	} {
		r, err := demo.JSON(paymentsTopic, p.card, p.payment, now.Add(p.after))
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return [][]*kgo.Record{records}, nil
}
