package iq_test

import (
	"fmt"
	"testing"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

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
		registry.Add(&state.Readable{Name: "counts", Owner: task, Kind: task.store, Views: state.NewViews(task.store, &task.gate)})
		service := iq.New(iq.Config{Registry: registry, Stores: []iq.StoreInfo{counts(source)}, Running: func() error { return nil }})
		service.Router().Update(1, nil, map[string]int{source: 1})
		of := handle(service)
		b.Run(name+"/store", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, _, ok, err := task.store.Get(keys[i%n]); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
		b.Run(name+"/handle", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if v, err := of.Get(b.Context(), keys[i%n]); !v.OK || err != nil {
					b.Fatal(v, err)
				}
			}
		})
	}
}
