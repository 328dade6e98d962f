// Pageviews counts how often each page of a site is looked at in each minute.
//
//	go run ./examples/pageviews
//
// starts an embedded broker, feeds it some views, out of order as they come in real
// life, and prints one final count for each page and minute. With -brokers it is an
// instance of the application on a real cluster, Apache Kafka 4.1 or later. See -help.
//
// The application is in topology.go, and its test in topology_test.go. It shows windows
// of event time with a grace period for late views, results that are sent once when
// they are final, and a key that is a window.
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
	Name: "pageviews",
	// Time goes by views: a minute is over when a view comes that is later. In one
	// partition the sample's last view ends all minutes before it.
	Partitions: 1,
	Inputs:     []string{viewsTopic},
	Outputs: []demo.Output{demo.Print(countsTopic, windowed, serde.Int64, func(r streams.Record[serde.Windowed[string], int64]) string {
		return fmt.Sprintf("%s %-8s %d", time.UnixMilli(r.Key.Start).UTC().Format("15:04"), r.Key.Key, r.Value)
	})},
	Sample: sample,
	Run:    run,
}

// sample are the views of four minutes and a bit.
func sample(now time.Time) ([][]*kgo.Record, error) {
	begin := now.Truncate(time.Minute).Add(-time.Hour)
	var records []*kgo.Record
	for i, v := range []struct {
		after time.Duration
		page  string
	}{
		{5 * time.Second, "/home"}, {20 * time.Second, "/tea"}, {40 * time.Second, "/home"},
		{65 * time.Second, "/home"}, {50 * time.Second, "/tea"}, // late, and in time
		{2 * time.Minute, "/milk"}, {10 * time.Second, "/home"}, // too late
		{3 * time.Minute, "/home"}, {190 * time.Second, "/home"}, {10 * time.Minute, "/home"},
	} {
		user := fmt.Sprint("user-", i%3)
		r, err := demo.JSON(viewsTopic, user, view{Page: v.page, User: user, At: begin.Add(v.after)}, now)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return [][]*kgo.Record{records}, nil
}
