// Package srserde has serdes whose schemas are in a schema registry: Confluent's, or one
// that speaks its API. Before each value stands the id of the schema that it was written
// with, in Confluent's wire format, so that Java's serializers and deserializers and
// those of other tools understand it.
//
//	client, err := sr.NewClient(sr.URLs("http://localhost:8081"))
//	…
//	registry := srserde.NewRegistry(client)
//	orders := srserde.New(registry, "orders-value", avroserde.Must[Order](schema))
//
// The registry is asked when the first value is written, and at the first value with a
// schema that is not known yet; then a stream thread waits for it.
//
// The package imports nothing of the project but serde, and franz-go's client for schema
// registries. Begin with [New].
package srserde
