package main

import (
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// The topics of the application. The customers' topic is a table: the latest record of
// a key counts, and null deletes. Keep it with cleanup.policy=compact.
const (
	ordersTopic    = "orders"    // by order
	customersTopic = "customers" // by customer
	enrichedTopic  = "enriched-orders"
	unknownTopic   = "orders-of-unknown-customers"
)

// order is what a shop sends.
type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

// customer is what is known of a customer.
type customer struct {
	Name  string `json:"name"`
	Level string `json:"level"`
}

// enriched is an order with what was known of its customer when it was processed.
type enriched struct {
	order
	Name  string `json:"name,omitempty"`
	Level string `json:"level,omitempty"`
	Known bool   `json:"-"`
}

// topology adds to each order what is known of its customer. Orders of customers that
// are not known go to a topic of their own.
func topology() *streams.Topology {
	b := streams.NewBuilder()
	orders := streams.Stream(b, ordersTopic, streams.Consumed[string, order]{Value: serde.JSON[order]()})
	customers := streams.Table(b, customersTopic,
		streams.Consumed[string, *customer]{Value: serde.JSON[*customer]()},
		streams.Materialized[string, *customer]{Name: "customers"},
	)

	// A join needs both sides by the same key: the orders go through a repartition
	// topic, by customer.
	byCustomer := streams.SelectKey(orders, func(_ string, o order) string { return o.Customer })
	joined := streams.LeftJoinTable(byCustomer, customers, enrich,
		streams.Joined[string, order, *customer]{Name: "with-customer", Value: serde.JSON[order]()},
	)
	byOrder := streams.SelectKey(joined, func(_ string, e enriched) string { return e.ID })

	written := streams.Produced[string, enriched]{Value: serde.JSON[enriched]()}
	split := byOrder.Split("is-")
	split.Branch(func(_ string, e enriched) bool { return e.Known }, streams.Branched[string, enriched]{Name: "known"})
	branches := split.DefaultBranch(streams.Branched[string, enriched]{Name: "unknown"})
	branches["is-known"].To(enrichedTopic, written)
	branches["is-unknown"].To(unknownTopic, written)
	return b.Build()
}

// enrich joins an order with its customer, who is nil if not known.
func enrich(o order, c *customer) enriched {
	if c == nil {
		return enriched{order: o}
	}
	return enriched{order: o, Name: c.Name, Level: c.Level, Known: true}
}
