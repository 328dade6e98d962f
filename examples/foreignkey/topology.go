package main

import (
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// The topics of the application, all of them tables: the latest record of a key
// counts, and null deletes. Keep them with cleanup.policy=compact.
const (
	itemsTopic    = "basket-items" // by item
	productsTopic = "products"     // by product
	pricedTopic   = "priced-items" // by item
)

// item is so much of a product in somebody's basket.
type item struct {
	Product  string `json:"product"`
	Quantity int64  `json:"quantity"`
}

// product is what the shop sells.
type product struct {
	Name  string `json:"name"`
	Cents int64  `json:"cents"`
}

// priced is an item with what it costs now.
type priced struct {
	Name     string `json:"name"`
	Quantity int64  `json:"quantity"`
	Cents    int64  `json:"cents"`
}

// topology keeps the price of each item in a basket up to date. An item refers to its
// product by a foreign key, so that many items have the same one: when a price changes,
// all of them do.
func topology() *streams.Topology {
	b := streams.NewBuilder()
	items := streams.Table(b, itemsTopic, streams.Consumed[string, item]{Value: serde.JSON[item]()},
		streams.Materialized[string, item]{Name: "items"})
	products := streams.Table(b, productsTopic, streams.Consumed[string, product]{Value: serde.JSON[product]()},
		streams.Materialized[string, product]{Name: "products"})

	productOf := func(i item) (string, bool) { return i.Product, i.Product != "" }
	prices := streams.TableForeignKeyJoin(items, products, productOf, price, streams.TableJoined[string, string, priced]{
		Name:         "priced",
		Materialized: streams.Materialized[string, priced]{Name: "priced-items", Value: serde.JSON[priced]()},
	})
	prices.ToStream().To(pricedTopic)
	return b.Build()
}

// price joins an item with its product.
func price(i item, p product) priced {
	return priced{Name: p.Name, Quantity: i.Quantity, Cents: i.Quantity * p.Cents}
}
