package streams_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// TestFinalResultsAfterRestart: a member that comes after another one sends on the
// windows that have closed since, and none that were sent on before; what was held
// back is not lost. The last time it has nothing on its disk.
func TestFinalResultsAfterRestart(t *testing.T) {
	grouped := func(b *streams.Builder) *streams.KGroupedStream[string, string] {
		return streams.Stream[string, string](b, "in").GroupByKey()
	}
	type windowed = serde.Windowed[string]
	for name, c := range map[string]struct {
		program func(*streams.Builder) *streams.KTable[windowed, int64]
		keys    serde.Serde[windowed]
		want    []string
	}{
		"tumbling": {func(b *streams.Builder) *streams.KTable[windowed, int64] {
			w := streams.WindowedBy(grouped(b), streams.TimeWindows{Size: 10 * time.Second})
			return w.EmitStrategy(streams.OnWindowClose).Count(streams.Materialized[string, int64]{Retention: time.Hour})
		}, serde.TimeWindowed(serde.String, 10*time.Second), []string{"[k@0/10000]=2", "[k@10000/20000]=3"}},
		"sliding": {func(b *streams.Builder) *streams.KTable[windowed, int64] {
			w := streams.WindowedBy(grouped(b), streams.SlidingWindows{TimeDifference: 5 * time.Second})
			return w.EmitStrategy(streams.OnWindowClose).Count(streams.Materialized[string, int64]{Retention: time.Hour})
		}, serde.TimeWindowed(serde.String, 5*time.Second), []string{
			"[k@0/5000]=2", "[k@1001/6001]=1", "[k@6000/11000]=1", "[k@7000/12000]=2", "[k@10000/15000]=3", "[k@11001/16001]=2", "[k@12001/17001]=1",
		}},
		"sessions": {func(b *streams.Builder) *streams.KTable[windowed, int64] {
			w := streams.SessionWindowedBy(grouped(b), streams.SessionWindows{InactivityGap: 5 * time.Second})
			return w.EmitStrategy(streams.OnWindowClose).Count(streams.Materialized[string, int64]{Retention: time.Hour})
		}, serde.SessionWindowed(serde.String), []string{"[k@1000/2000]=2", "[k@11000/15000]=3"}},
		"suppressed": {func(b *streams.Builder) *streams.KTable[windowed, int64] {
			return streams.SuppressUntilWindowCloses(streams.WindowedBy(grouped(b), streams.TimeWindows{Size: 10 * time.Second}).Count())
		}, serde.TimeWindowed(serde.String, 10*time.Second), []string{"[k@0/10000]=2", "[k@10000/20000]=3"}},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, w *world) {
				for i, seconds := range [][]int64{{1, 2, 11}, {12, 15}, {30}} {
					if i == 2 {
						w.stateDir = t.TempDir()
					}
					b := streams.NewBuilder()
					c.program(b).ToStream().To("out")
					stop := w.start(t, b.Build())
					time.Sleep(10 * time.Second)
					for _, s := range seconds {
						r := &kgo.Record{Topic: "in", Key: []byte("k"), Value: []byte("v"), Timestamp: time.UnixMilli(1000 * s)}
						if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
							t.Fatal(err)
						}
						time.Sleep(2 * time.Second) // more often it doesn't look for closed windows
					}
					if err := stop(); err != nil {
						t.Fatal(err)
					}
				}
				var got []string
				for _, r := range w.consume(t, "out") {
					key, err := c.keys.Decode(r.Key)
					if err != nil {
						t.Fatal(err)
					}
					count, err := serde.Int64.Decode(r.Value)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, fmt.Sprintf("%v=%d", key, count))
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("the output is\n%s, want\n%s", got, c.want)
				}
			})
		})
	}
}
