package integration

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

func wordCountTopology(in, out string) *streams.Topology {
	b := streams.NewBuilder()
	words := streams.FlatMapValues(streams.Stream[string, string](b, in), strings.Fields)
	streams.GroupBy(words, func(_, word string) string { return word },
		streams.Grouped[string, string]{Name: "words"},
	).Count(streams.MaterializedWith("counts", serde.String, serde.Int64)).ToStream().To(out)
	return b.Build()
}

// counted waits until the counts of an output topic are the given ones.
func (c *cluster) counted(t *testing.T, out string, want map[string]int64) {
	t.Helper()
	eventually(t, "all words to be counted", func() error {
		n := 0
		for _, end := range c.ends(t, out) {
			n += int(end)
		}
		if n < total(want) {
			return fmt.Errorf("%d of %d words are counted", n, total(want))
		}
		if got, _ := c.counts(t, out); !maps.Equal(got, want) {
			return fmt.Errorf("counts are not %s", difference(got, want))
		}
		return nil
	})
}

// wordCount: every word is counted exactly once, by several members in one
// process.
func wordCount(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 4), c.topic(t, "out", 3)
	lines, want := text(2000)
	app := c.start(t, wordCountTopology(in, out), func(cfg *streams.Config) { cfg.NumStreamThreads = 2 })
	c.produce(t, in, lines...)
	c.counted(t, out, want)
	if err := app.stop(); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if app.app.State() != streams.NotRunning {
		t.Errorf("is %v when it has stopped", app.app.State())
	}
}

// handOver: instances come and go while records flow. Their tasks move, each
// time from the committed offset with the restored store: no word is lost and,
// since each leaves in order, none is counted twice.
func handOver(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 4), c.topic(t, "out", 3)
	lines, want := text(4000)
	parts := chunks(lines, 8)
	topology := func() *streams.Topology { return wordCountTopology(in, out) }
	feed := func(n int) {
		for range n {
			c.produce(t, in, parts[0]...)
			parts = parts[1:]
		}
	}

	a := c.start(t, topology())
	feed(1)
	running(t, a)
	b := c.start(t, topology())
	feed(1)
	running(t, a, b)
	feed(1)
	if err := a.stop(); err != nil {
		t.Fatalf("the first instance stopped with %v", err)
	}
	feed(1)
	running(t, b)
	a = c.start(t, topology())
	feed(1)
	running(t, a, b)
	feed(1)
	if err := b.stop(); err != nil {
		t.Fatalf("the second instance stopped with %v", err)
	}
	feed(2)
	c.counted(t, out, want)
	if _, n := c.counts(t, out); n != total(want) {
		t.Errorf("%d counts for %d words: some were counted again", n, total(want))
	}
}

// restartGoesOn: an application that is stopped and started goes on where it was.
func restartGoesOn(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 2), c.topic(t, "out", 1)
	lines, want := text(300)
	for _, part := range chunks(lines, 3) {
		app := c.start(t, wordCountTopology(in, out))
		c.produce(t, in, part...)
		running(t, app)
		if err := app.stop(); err != nil {
			t.Fatal(err)
		}
	}
	c.start(t, wordCountTopology(in, out))
	c.counted(t, out, want)
	if _, n := c.counts(t, out); n != total(want) {
		t.Errorf("%d counts for %d words: some were counted again", n, total(want))
	}
}

// difference tells which counts are not the wanted ones.
func difference(got, want map[string]int64) string {
	var b strings.Builder
	for word, n := range want {
		if got[word] != n {
			fmt.Fprintf(&b, "%s: %d, want %d; ", word, got[word], n)
		}
	}
	for word, n := range got {
		if _, ok := want[word]; !ok {
			fmt.Fprintf(&b, "%s: %d, want none; ", word, n)
		}
	}
	return b.String()
}
