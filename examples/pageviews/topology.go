package main

import (
	"fmt"
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// The topics of the application.
const (
	viewsTopic  = "page-views"
	countsTopic = "views-per-minute"
)

// view is somebody looking at a page, at a time that the browser tells: views come late
// and in any order.
type view struct {
	Page string    `json:"page"`
	User string    `json:"user"`
	At   time.Time `json:"at"`
}

const (
	// windowSize is what is counted together.
	windowSize = time.Minute

	// grace is how late a view may come. The count of a minute is final when it
	// has passed.
	grace = 30 * time.Second
)

// windowed is the serde of the counts' keys: a page and the minute that it was looked
// at. Whoever reads the counts needs to know the windows' size.
var windowed = serde.TimeWindowed(serde.String, windowSize)

// topology counts the views of each page in each minute, and sends one final count when
// the minute is over.
func topology() *streams.Topology {
	b := streams.NewBuilder()
	views := streams.Stream(b, viewsTopic, streams.Consumed[string, view]{
		Value:              serde.JSON[view](),
		TimestampExtractor: seenAt,
	})
	perPage := streams.GroupBy(views,
		func(_ string, v view) string { return v.Page },
		streams.Grouped[string, view]{Name: "by-page", Value: serde.JSON[view]()},
	)
	perMinute := streams.WindowedBy(perPage, streams.TimeWindows{Size: windowSize, Grace: grace})
	counts := perMinute.Count(streams.Materialized[string, int64]{Name: "counts"})
	final := streams.SuppressUntilWindowCloses(counts, streams.Suppressed{Name: "final"})
	final.ToStream().To(countsTopic, streams.ProducedWith(windowed, serde.Int64))
	return b.Build()
}

// seenAt is the time of a view, which may be before the time at which the record was
// produced.
func seenAt(r streams.Record[string, view], _ int64) (int64, error) {
	if r.Value.At.IsZero() {
		return 0, fmt.Errorf("the view of %q has no time", r.Value.Page)
	}
	return r.Value.At.UnixMilli(), nil
}
