package iq_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
)

// everybody is an application with a global table of the users.
func everybody() *streams.Topology {
	b := streams.NewBuilder()
	store := streams.MaterializedWith("everybody", serde.String, serde.String)
	store.StoreType = streams.InMemory
	table := streams.GlobalTable(b, usersTopic, store)
	streams.JoinGlobalTable(streams.Stream[string, string](b, "visits"), table,
		func(user, _ string) (string, bool) { return user, true },
		func(visit, user string) string { return visit + " of " + user }).To("greetings")
	return b.Build()
}

// TestGlobalStore: every instance answers for a global store, whole, by itself, and can be
// asked to have read one's own writes.
func TestGlobalStore(t *testing.T) {
	g := newGroup(t, everybody)
	if _, err := kadm.NewClient(g.client).CreateTopics(t.Context(), 2, 1, nil, "visits", "greetings"); err != nil {
		t.Fatal(err)
	}
	key := func(i int) string { return fmt.Sprint("user-", i) }
	for i := range 20 {
		if err := g.write(t.Context(), key(i)); err != nil {
			t.Fatal(err)
		}
	}
	g.start()
	g.start()
	client, err := iq.NewClient(g.addresses, iq.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	queriers := map[string]iq.Querier{"client": client}
	for address, h := range g.hosts {
		queriers[address] = h.app.Queries()
		for snapshot := range h.app.Queries().Router().Watch(ctx) {
			if len(snapshot.Hosts) == len(g.hosts) {
				break
			}
		}
	}
	for who, q := range queriers {
		of := iq.NewKeyValue(q, "everybody", serde.String, serde.String)
		for i := range 20 {
			if err := g.write(ctx, key(i)); err != nil {
				t.Fatal(err)
			}
			v, err := of.Accepting(iq.Accept{Position: g.written[key(i)]}).Get(ctx, key(i))
			if want := fmt.Sprint(key(i), ":", g.latest[key(i)]); err != nil || v.Value != want || !v.Meta.Active {
				t.Errorf("%s says %+v, %v; want %s", who, v, err, want)
			}
			if host := v.Meta.Host; who != "client" && host != who {
				t.Errorf("%s was answered by %q", who, host)
			}
		}
		if v, err := of.Get(ctx, "nobody"); err != nil || v.OK {
			t.Errorf("%s of nobody: %+v, %v", who, v, err)
		}
		var keys []string
		for item, err := range of.Range(ctx, state.Bounds[string]{}, state.Backward) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, item.Key)
		}
		if slices.Reverse(keys); len(keys) != 20 || !slices.IsSorted(keys) {
			t.Errorf("%s has %q", who, keys)
		}
	}
	for address, h := range g.hosts {
		snapshot := h.app.Queries().Router().Snapshot()
		for _, host := range snapshot.Hosts {
			if !slices.Contains(host.Stores, "everybody") {
				t.Errorf("%s knows of %+v", address, host)
			}
		}
		if hosts := snapshot.StoreHosts("everybody"); len(hosts) != 2 {
			t.Errorf("%s knows of %v", address, hosts)
		}
		if lags, err := h.app.Queries().Lags(ctx); err != nil || len(lags) != 0 {
			t.Errorf("lags of a global store: %v, %v", lags, err)
		}
	}
	for _, address := range slices.Clone(g.addresses) {
		g.end(address)
	}
}
