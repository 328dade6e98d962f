package iq_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

func TestDefaultPartition(t *testing.T) {
	data, err := os.ReadFile("testdata/murmur2.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Keys []struct {
			Key        []byte        `json:"key_b64"`
			Partitions map[int]int32 `json:"partitions"`
		}
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Keys) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range vectors.Keys {
		for n, want := range v.Partitions {
			if got := iq.DefaultPartition(v.Key, n); got != want {
				t.Errorf("key %x of %d partitions: %d, Java says %d", v.Key, n, got, want)
			}
		}
	}
}

func counts(sources ...string) iq.StoreInfo {
	return iq.StoreInfo{Name: "counts", Sources: sources, Kind: state.NewTimestampedKeyValue("counts", serde.String, serde.Int64, state.Memory)}
}

func endpoint(n int) membership.Endpoint {
	return membership.Endpoint{Host: fmt.Sprintf("host%d", n), Port: uint16(7000 + n)}
}

func has(e membership.Endpoint, topic string, active, standby []int32) membership.EndpointPartitions {
	of := membership.EndpointPartitions{Endpoint: e}
	if len(active) > 0 {
		of.Active = []membership.TopicPartitions{{Topic: topic, Partitions: active}}
	}
	if len(standby) > 0 {
		of.Standby = []membership.TopicPartitions{{Topic: topic, Partitions: standby}}
	}
	return of
}

// TestRouterJava replays what the coordinator told the members of a group of Java
// Kafka Streams 4.4.0, and compares with what their queryMetadataForKey and
// metadataForAllStreamsClients said.
func TestRouterJava(t *testing.T) {
	f, err := os.Open("testdata/user-endpoint.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const topic = "j15-10185-in"
	type wirePartitions []struct {
		Topic      string
		Partitions []int32
	}
	convert := func(in wirePartitions) (out []membership.TopicPartitions) {
		for _, tp := range in {
			slices.Sort(tp.Partitions)
			out = append(out, membership.TopicPartitions{Topic: tp.Topic, Partitions: tp.Partitions})
		}
		return out
	}
	routers := map[string]*iq.Router{}
	compared := 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l struct {
			Peer, Ev, Key, R string
			Epoch            int32
			Endpoints        []struct {
				UserEndpoint                        membership.Endpoint
				ActivePartitions, StandbyPartitions wirePartitions
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if routers[l.Peer] == nil {
			routers[l.Peer] = iq.NewRouter([]iq.StoreInfo{counts(topic)})
		}
		r := routers[l.Peer]
		var got string
		switch l.Ev {
		case "":
			var endpoints []membership.EndpointPartitions
			for _, e := range l.Endpoints {
				endpoints = append(endpoints, membership.EndpointPartitions{
					Endpoint: e.UserEndpoint, Active: convert(e.ActivePartitions), Standby: convert(e.StandbyPartitions),
				})
			}
			slices.SortFunc(endpoints, func(a, b membership.EndpointPartitions) int { // as membership does
				return strings.Compare(a.Endpoint.String(), b.Endpoint.String())
			})
			r.Update(l.Epoch, endpoints, map[string]int{topic: 4})
			continue
		case "meta":
			route, err := r.Lookup("counts", []byte(l.Key))
			if err != nil {
				t.Fatal(err)
			}
			got = route.Active.String() + " " + fmt.Sprint(route.Standbys, route.Partition)
			l.R = javaKeyMetadata(l.R)
		case "allmeta":
			for _, h := range r.Snapshot().Hosts {
				if len(h.Partitions)+len(h.StandbyPartitions) > 0 {
					got += fmt.Sprintln(h.Endpoint, h.Stores, partitions(h.Partitions), h.StandbyStores, partitions(h.StandbyPartitions))
				}
			}
			l.R = javaMetadata(l.R)
		}
		if got != l.R {
			t.Errorf("%s, asked for %s: %s, Java says %s", l.Peer, l.Ev, got, l.R)
		}
		compared++
	}
	if compared < 30 {
		t.Errorf("only %d answers were compared", compared)
	}
}

func partitions(of []membership.TopicPartitions) (ps []int32) {
	for _, tp := range of {
		ps = append(ps, tp.Partitions...)
	}
	return ps
}

func TestRouterUsesRealPartitionCounts(t *testing.T) {
	r := iq.NewRouter([]iq.StoreInfo{counts("in")})
	if _, err := r.Lookup("counts", []byte("k")); !errors.Is(err, iq.ErrNotReady) {
		t.Errorf("before all: %v", err)
	}
	if _, err := r.Lookup("other", []byte("k")); !errors.Is(err, iq.ErrUnknownStore) {
		t.Errorf("an unknown store: %v", err)
	}
	// Partitions 2 to 9 belong to members without an endpoint.
	r.Update(3, []membership.EndpointPartitions{has(endpoint(1), "in", []int32{0, 1}, nil)}, map[string]int{"in": 10})
	for n := range 100 {
		key := fmt.Appendf(nil, "key-%d", n)
		route, err := r.Lookup("counts", key)
		if err != nil {
			t.Fatal(err)
		}
		if want := iq.DefaultPartition(key, 10); route.Partition != want || route.HasActive() != (want < 2) {
			t.Errorf("%s is in %d, routed to %+v", key, want, route)
		}
	}
}

func TestRouterSources(t *testing.T) {
	custom := counts("a", "b")
	custom.Partition = func(key []byte, n int) (int32, error) {
		if len(key) == 0 {
			return 0, errors.New("no such key")
		}
		return int32(len(key)) - 1, nil
	}
	pattern := counts()
	pattern.Name, pattern.Match = "matched", func(topic string) bool { return strings.HasPrefix(topic, "in-") }
	r := iq.NewRouter([]iq.StoreInfo{custom, pattern})
	one, two := endpoint(1), endpoint(2)
	r.Update(0, []membership.EndpointPartitions{
		{Endpoint: one, Active: []membership.TopicPartitions{{Topic: "a", Partitions: []int32{0}}, {Topic: "b", Partitions: []int32{0, 2}}, {Topic: "in-1", Partitions: []int32{0}}}},
		{Endpoint: two, Active: []membership.TopicPartitions{{Topic: "a", Partitions: []int32{1}}, {Topic: "b", Partitions: []int32{1}}}, Standby: []membership.TopicPartitions{{Topic: "b", Partitions: []int32{2}}}},
	}, map[string]int{"a": 2, "b": 3, "in-1": 1})
	for key, want := range map[string]membership.Endpoint{"x": one, "xx": two, "xxx": one} {
		if route, err := r.Lookup("counts", []byte(key)); err != nil || route.Active != want {
			t.Errorf("%s: %+v, %v; want %v", key, route, err, want)
		}
	}
	if route, err := r.Lookup("counts", []byte("xxx")); err != nil || !slices.Equal(route.Standbys, []membership.Endpoint{two}) {
		t.Errorf("standbys: %+v, %v", route, err)
	}
	for _, key := range []string{"", "xxxx"} { // an error, and out of range
		if _, err := r.Lookup("counts", []byte(key)); !errors.Is(err, iq.ErrInvalidQuery) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if route, err := r.Lookup("matched", []byte("k")); err != nil || route.Active != one {
		t.Errorf("by a pattern: %+v, %v", route, err)
	}
	if got := r.Snapshot().StoreHosts("matched"); !slices.Equal(got, []membership.Endpoint{one}) {
		t.Errorf("hosts: %v", got)
	}
}

// TestRouterSnapshots: whoever reads while the map is replaced sees one or the other,
// never half of each.
func TestRouterSnapshots(t *testing.T) {
	const n = 16
	all := make([]int32, n)
	for p := range all {
		all[p] = int32(p)
	}
	r := iq.NewRouter([]iq.StoreInfo{counts("in")})
	update := func(epoch int) {
		r.Update(int32(epoch), []membership.EndpointPartitions{has(endpoint(epoch%7), "in", all, nil)}, map[string]int{"in": n})
	}
	update(0)
	ctx, cancel := context.WithCancel(t.Context())
	changes := r.Watch(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		defer cancel()
		for epoch := range 2000 {
			update(epoch)
		}
	})
	for range 2 {
		group.Go(func() {
			for ctx.Err() == nil {
				s := r.Snapshot()
				for p := range all {
					route, err := s.Partition("counts", int32(p))
					if err != nil || route.Active != endpoint(int(s.Epoch)%7) {
						t.Errorf("epoch %d: %+v, %v", s.Epoch, route, err)
						return
					}
				}
			}
		})
	}
	last := int32(-1)
	for s := range changes {
		if s.Epoch < last {
			t.Errorf("epoch %d after %d", s.Epoch, last)
		}
		last = s.Epoch
	}
	group.Wait()
}

func TestRouterWatchNewest(t *testing.T) {
	r := iq.NewRouter([]iq.StoreInfo{counts("in")})
	changes := r.Watch(t.Context())
	for epoch := range 5 {
		r.Update(int32(epoch), nil, nil)
	}
	if s := <-changes; s.Epoch != 4 {
		t.Errorf("epoch %d, want the newest", s.Epoch)
	}
	select {
	case s := <-changes:
		t.Errorf("epoch %d again", s.Epoch)
	case <-time.After(time.Millisecond):
	}
}

func largeRouter() *iq.Router {
	r := iq.NewRouter([]iq.StoreInfo{counts("in")})
	var endpoints []membership.EndpointPartitions
	for p := range 1000 {
		endpoints = append(endpoints, has(endpoint(p), "in", []int32{int32(p)}, []int32{int32((p + 1) % 1000)}))
	}
	r.Update(1, endpoints, map[string]int{"in": 1000})
	return r
}

func TestRouterAllocates(t *testing.T) {
	r, key := largeRouter(), []byte("a key of some length")
	if n := testing.AllocsPerRun(100, func() {
		if _, err := r.Lookup("counts", key); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("a lookup allocates %v times", n)
	}
}

func BenchmarkRouterLookup(b *testing.B) {
	r, key := largeRouter(), []byte("a key of some length")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Lookup("counts", key); err != nil {
			b.Fatal(err)
		}
	}
}
