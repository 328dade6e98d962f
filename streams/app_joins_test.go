package streams_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// put writes records to a topic, each a key, "=" and a value, which is null if empty.
func (w *world) put(t *testing.T, topic string, records ...string) {
	t.Helper()
	for _, s := range records {
		key, value, _ := strings.Cut(s, "=")
		rec := &kgo.Record{Topic: topic, Key: []byte(key)}
		if value != "" {
			rec.Value = []byte(value)
		}
		if err := w.client.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// last are the last values of a topic's keys.
func (w *world) last(t *testing.T, topic string) map[string]string {
	t.Helper()
	values := make(map[string]string)
	for _, r := range w.consume(t, topic) {
		values[string(r.Key)] = string(r.Value)
	}
	return values
}

// TestForeignKeyJoinOfTopics: tables whose topics have different numbers of partitions are
// joined, before and after a restart.
func TestForeignKeyJoinOfTopics(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		join := func() func() error {
			b := streams.NewBuilder()
			l, r := streams.Table[string, string](b, "l"), streams.Table[string, string](b, "r")
			streams.TableForeignKeyLeftJoin(l, r, itself, orNullJoin).ToStream().To("out")
			stop := w.start(t, b.Build())
			time.Sleep(10 * time.Second)
			return stop
		}
		var want []string
		for i := range 10 {
			w.put(t, "l", fmt.Sprintf("k%d=f%d", i, i%4))
			want = append(want, fmt.Sprintf("k%d:f%d+R", i, i%4))
		}
		stop := join()
		w.put(t, "r", "f0=R", "f1=R", "f2=R", "f3=R")
		time.Sleep(5 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		check := func(want []string) {
			t.Helper()
			var got []string
			for k, v := range w.last(t, "out") {
				got = append(got, k+":"+v)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("joined to %q, want %q", got, want)
			}
		}
		check(want)

		stop = join()
		w.put(t, "r", "f1=S", "f2=")
		w.put(t, "l", "k0=f1")
		time.Sleep(5 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want[0] = "k0:f1+S"
		for i := range want {
			want[i] = strings.Replace(strings.Replace(want[i], "f1+R", "f1+S", 1), "f2+R", "f2+null", 1)
		}
		check(want)
	}, streamstest.WithKfake(kfake.SeedTopics(2, "l"), kfake.SeedTopics(3, "r")))
}

// TestGlobalTable: each task sees all partitions of a global table's topic, from its first
// record on, on disk and in memory, and what changes later.
func TestGlobalTable(t *testing.T) {
	for name, storeType := range map[string]streams.StoreType{"persistent": streams.Persistent, "in memory": streams.InMemory} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				join := func() func() error {
					b := streams.NewBuilder()
					table := streams.GlobalTable(b, "global", streams.Materialized[string, string]{Name: "g", StoreType: storeType})
					s := streams.Stream[string, string](b, "in")
					streams.LeftJoinGlobalTable(s, table, func(_, v string) (string, bool) { return v, true }, orNullJoin).To("out")
					stop := w.start(t, b.Build())
					time.Sleep(10 * time.Second)
					return stop
				}
				end := func(stop func() error, want map[string]string) {
					t.Helper()
					time.Sleep(5 * time.Second)
					if err := stop(); err != nil {
						t.Fatal(err)
					}
					if got := w.last(t, "out"); !maps.Equal(got, want) {
						t.Errorf("joined to %q, want %q", got, want)
					}
				}
				w.put(t, "in", "a=x", "b=y", "c=z", "d=none")
				w.put(t, "global", "x=1", "y=2", "z=3")
				stop := join()
				end(stop, map[string]string{"a": "x+1", "b": "y+2", "c": "z+3", "d": "none+null"})

				w.put(t, "global", "x=", "none=4")
				stop = join()
				w.put(t, "in", "a=x", "d=none")
				time.Sleep(5 * time.Second)
				w.put(t, "global", "y=5")
				time.Sleep(5 * time.Second)
				w.put(t, "in", "b=y")
				end(stop, map[string]string{"a": "x+null", "b": "y+5", "c": "z+3", "d": "none+4"})
			}, streamstest.WithKfake(kfake.SeedTopics(3, "global")))
		})
	}
}

// TestLeftJoinWaits: a record alone is sent when its window has closed, and closed windows
// are looked for once a second.
func TestLeftJoinWaits(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		b := streams.NewBuilder()
		l, r := streams.Stream[string, string](b, "in"), streams.Stream[string, string](b, "r")
		streams.LeftJoin(l, r, orNullJoin, streams.TimeDifference(time.Second)).To("out")
		stop := w.start(t, b.Build())
		time.Sleep(10 * time.Second)
		put := func(topic, value string) {
			// One partition, so that both streams' time is one.
			rec := &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(value)}
			if err := w.client.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		put("in", "alone")
		time.Sleep(5 * time.Second)
		put("in", "matched") // and closes the other's window
		put("r", "match")
		time.Sleep(3 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rec := range w.consume(t, "out") {
			got = append(got, string(rec.Value))
		}
		if want := []string{"alone+null", "matched+match"}; !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
	}, streamstest.WithKfake(kfake.SeedTopics(2, "r")))
}
