// Package iq answers interactive queries (KIP-67, KIP-535): it finds out which
// instance of an application has the store partition that a key is in, and asks it,
// with the staleness that the caller accepts, while the group rebalances.
//
//   - A [Router] knows who has what, from what the group coordinator publishes of
//     the members' endpoints (KIP-1071).
//   - A [Service] is an instance's: it reads the stores that are here, and sends on
//     what is elsewhere, once.
//   - Its [Service.Handler] is the HTTP server that other instances, [Client] and
//     curl ask.
//   - [KeyValue], [Versioned], [Window] and [Session] are typed handles to a store,
//     on top of a Service or a Client.
//
// An active store shows what its task has processed, be that committed or not, with what
// its cache holds back, as in Java: with exactly once a query may see a value whose
// transaction is then aborted, and not again. Copies show what is committed, and no more
// than is in the changelog. An instance that has not heard from the group for a while
// doesn't take its stores for the truth: another one may have them.
//
// Global stores, which every instance has whole, are answered for by whoever is asked.
//
// Java instances in the group are routed to just the same. They have servers of
// their own: a [Transport] says how to call them.
//
// The package imports membership, for endpoints, and state and serde. It knows no
// tasks: package streams makes the Service of an application. Begin with
// [Service.Query].
package iq
