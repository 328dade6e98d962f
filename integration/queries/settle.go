package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/membership"
)

// settlePatience is how long it may take after the last fault until a query has its
// answer.
const settlePatience = time.Minute

// settled checks, when nothing is written and broken any more, that all is known, in
// every way of asking, one by one and all together, and that copies come to have it.
func (l *load) settled(ctx context.Context) error {
	everything := l.truth.all()
	want := func(way string, to asker, q question) error {
		q.askSince(everything)
		return l.insist(ctx, way, to, q)
	}
	all := func(store string) question {
		q := question{Request: iq.Request{Store: store, Kind: iq.Range, Partition: iq.AllPartitions}}
		if store == windowsStore {
			q.Kind, q.Latest = iq.FetchRange, iq.Forever
		}
		return q
	}
	for _, store := range stores {
		if err := want(anyWay, l.any, all(store)); err != nil {
			return err
		}
		for _, address := range l.breaker.running() {
			if err := want(processWay, l.one[address], all(store)); err != nil {
				return err
			}
			if err := want(curlWay, curl{l.people, address}, all(store)); err != nil {
				return err
			}
		}
	}
	for _, key := range l.truth.names {
		for _, store := range []string{latestStore, countsStore} {
			q := question{Request: iq.Request{Store: store, Kind: iq.Get, Key: []byte(key), Partition: iq.AllPartitions}}
			if err := want(anyWay, l.any, q); err != nil {
				return err
			}
		}
	}
	for partition := range int32(partitions) {
		for _, store := range stores {
			q := all(store)
			q.since, q.Partition = everything, partition
			if err := l.copied(ctx, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// insist asks until there is an answer.
func (l *load) insist(ctx context.Context, way string, to asker, q question) error {
	for began := time.Now(); ; sleep(ctx, 100*time.Millisecond) {
		a := l.put(ctx, way, to, &q)
		if a.err == nil {
			return nil
		}
		if time.Since(began) > settlePatience || ctx.Err() != nil {
			return fmt.Errorf("%v, by %s, has no answer after the last fault: %w", &q, way, a.err)
		}
	}
}

// copied waits until a partition has a copy, next to the active store, that has all.
func (l *load) copied(ctx context.Context, q question) error {
	q.Accept = iq.Accept{Lag: 1, Age: 2 * time.Second}
	var last error
	for began := time.Now(); ; sleep(ctx, 100*time.Millisecond) {
		for _, address := range l.breaker.running() {
			a := l.put(ctx, "its own stores", own{transportOf(l.transport), endpoint(address)}, &q)
			if a.err == nil && !a.meta.Active {
				return nil
			}
			last = a.err
		}
		if time.Since(began) > settlePatience || ctx.Err() != nil {
			return fmt.Errorf("%v: there is no such copy after the last fault: %w", &q, last)
		}
	}
}

func endpoint(address string) (e membership.Endpoint) {
	host, port, _ := net.SplitHostPort(address) // which is our own
	n, _ := strconv.ParseUint(port, 10, 16)
	return membership.Endpoint{Host: host, Port: uint16(n)}
}
