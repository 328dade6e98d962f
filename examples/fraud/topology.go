package main

import (
	"time"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// The topics of the application, all of them by card.
const (
	paymentsTopic   = "payments"
	approvedTopic   = "approved-payments"
	suspiciousTopic = "suspicious-payments"
)

// The nodes of the topology that others refer to.
const (
	paymentsSource = "payments-source"
	checkProcessor = "check"
	approvedSink   = "approved"
	suspiciousSink = "suspicious"
	cardsStore     = "cards"
)

// payment is somebody paying with a card. Its time is the record's.
type payment struct {
	Merchant string `json:"merchant"`
	Country  string `json:"country"`
	Cents    int64  `json:"cents"`
}

// verdict is a payment and what is suspicious about it, if something is.
type verdict struct {
	payment
	Suspicion string `json:"suspicion,omitempty"`
}

// card is what is remembered of a card: its payments within memory, in the order of
// their times.
type card struct {
	Payments []past `json:"payments"`
}

// past is a payment that was made.
type past struct {
	At      int64  `json:"at"` // in milliseconds
	Country string `json:"country"`
}

const (
	// memory is how long payments are remembered.
	memory = time.Hour

	// cleanup is how often cards are forgotten that were not used in that time.
	cleanup = 10 * time.Minute
)

// topology checks each payment, and sends it where approved or where suspicious ones
// go. It is made node by node: a source, a processor with a state store, two sinks.
func topology() *streams.Topology {
	t := streams.NewTopology()
	streams.AddSource(t, paymentsSource, streams.Consumed[string, payment]{Value: serde.JSON[payment]()}, paymentsTopic)
	streams.AddProcessor(t, checkProcessor, newChecker, paymentsSource)
	t.AddStateStore(streams.NewKeyValueStore(cardsStore, serde.String, serde.JSON[card]()), checkProcessor)
	written := streams.Produced[string, verdict]{Value: serde.JSON[verdict]()}
	streams.AddSink(t, approvedSink, approvedTopic, written, checkProcessor)
	streams.AddSink(t, suspiciousSink, suspiciousTopic, written, checkProcessor)
	return t
}
