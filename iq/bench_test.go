package iq_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// confirmed is a task that looks at the clock before it says that it is active, as those
// of stream threads do.
type confirmed struct {
	*fakeTask
	at time.Time
}

func (c confirmed) Active() bool { return c.active && time.Since(c.at) < time.Hour }

// BenchmarkLocalGet is a query of a value that is on this instance, next to a get of the
// bare store.
func BenchmarkLocalGet(b *testing.B) {
	const n = 100_000
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("user-", i*7919%n)
	}
	for name, open := range map[string]state.OpenEngine{"Memory": state.Memory, "Disk": state.Persistent} {
		task := &fakeTask{active: true}
		task.store = state.NewTimestampedKeyValue("counts", serde.String, serde.Int64, open)
		if err := task.store.Open(state.OpenContext{Dir: b.TempDir()}); err != nil {
			b.Fatal(err)
		}
		defer task.store.Close()
		for i, key := range keys {
			if err := task.store.Put(key, int64(i), 1); err != nil {
				b.Fatal(err)
			}
		}
		if err := task.store.Checkpoint(0); err != nil {
			b.Fatal(err)
		}
		registry := &state.Registry{}
		registry.Add(&state.Readable{Name: "counts", Owner: confirmed{task, time.Now()}, Kind: task.store, Views: state.NewViews(task.store, &task.gate)})
		service := iq.New(iq.Config{Registry: registry, Stores: []iq.StoreInfo{counts(source)}, Running: func() error { return nil }})
		service.Router().Update(1, nil, map[string]int{source: 1})
		of := handle(service)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			// They take turns, since a machine is not the same from one second to the
			// next, each with keys that the other has not just brought into its caches.
			const turn = 1000
			var ofStore, ofHandle []time.Duration
			for i := 0; b.Loop(); i += turn {
				began := time.Now()
				for j := range turn {
					if _, _, ok, err := task.store.Get(keys[(i+j)%n]); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
				between := time.Now()
				for j := range turn {
					if v, err := of.Get(b.Context(), keys[(i+j+n/2)%n]); !v.OK || err != nil {
						b.Fatal(v, err)
					}
				}
				ofStore, ofHandle = append(ofStore, between.Sub(began)), append(ofHandle, time.Since(between))
			}
			slices.Sort(ofStore)
			slices.Sort(ofHandle)
			store, handle := float64(ofStore[len(ofStore)/2])/turn, float64(ofHandle[len(ofHandle)/2])/turn
			b.ReportMetric(store, "ns/store-get")
			b.ReportMetric(handle, "ns/handle-get")
			b.ReportMetric(handle/store, "ratio")
		})
	}
}
