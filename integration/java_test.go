package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

// TestJavaMember: a Java member joins a Go member's group, which the coordinator
// allows only with the same topology, and each goes on with the tasks of the
// other: names, changelogs and committed offsets are the same.
func TestJavaMember(t *testing.T) {
	kafkatest.Require(t)
	kafka := kafkatest.Shared(t)
	c := newCluster(t, kafka.Addrs())
	in, out := c.topic(t, "in", 4), c.topic(t, "out", 3)
	lines, want := text(3000)
	parts := chunks(lines, 5)
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()

	goes := c.start(t, wordCountTopology(in, out))
	running(t, goes)
	c.produce(t, in, parts[0]...)

	java := c.startJava(t, ctx, kafka, in, out)
	c.shared(t)
	c.produce(t, in, parts[1]...)

	// Java takes over all of it, …
	if err := goes.stop(); err != nil {
		t.Fatal(err)
	}
	c.produce(t, in, parts[2]...)
	c.counted(t, out, wordsOf(parts[0], parts[1], parts[2]))

	// … and then Go from Java.
	goes = c.start(t, wordCountTopology(in, out))
	running(t, goes)
	c.produce(t, in, parts[3]...)
	if err := java.CloseInput(); err != nil {
		t.Fatal(err)
	}
	if err := java.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	c.produce(t, in, parts[4]...)
	c.counted(t, out, want)
	if _, n := c.counts(t, out); n != total(want) {
		t.Errorf("%d counts for %d words: some were counted again", n, total(want))
	}
	wentWell(t, java)
}

// shared waits until the group has two members that both have tasks.
func (c *cluster) shared(t *testing.T) {
	t.Helper()
	eventually(t, "both to have tasks", func() error {
		group, err := c.describe(t)
		if err != nil {
			return err
		}
		for _, m := range group.Members {
			if len(m.Assignment.ActiveTasks) == 0 {
				return fmt.Errorf("member %s has none", m.MemberID)
			}
		}
		if len(group.Members) != 2 {
			return fmt.Errorf("the group has %d members", len(group.Members))
		}
		return nil
	})
}

// wentWell checks that no thread of a Java application has failed.
func wentWell(t *testing.T, java *kafkatest.JavaProcess) {
	t.Helper()
	for _, line := range java.Lines() {
		if strings.HasPrefix(line, "FAILED") {
			t.Errorf("Java says %q", line)
		}
	}
}

// TestTwins: a Go member joins the group of a Java member that runs the same program,
// takes over all of it, and gives it back to another Java member. At each stage the
// outputs are what the program computes from all input until then: each has gone on
// from the changelogs, the repartition topics and the offsets of the other.
func TestTwins(t *testing.T) {
	kafkatest.Require(t)
	kafka := kafkatest.Shared(t)
	for name, program := range twins {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kafka.Addrs())
			ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
			defer cancel()
			for _, topics := range []map[string]int32{program.inputs, program.outputs} {
				for topic, partitions := range topics {
					c.topic(t, topic, partitions)
				}
			}
			random := rand.New(rand.NewPCG(1, 2))
			fed := program.first
			c.feed(t, fed...)
			feed := func(n int) {
				t.Helper()
				batch := program.batch(n, random)
				fed = append(fed, batch...)
				c.feed(t, batch...)
				c.computed(t, program, fed, false)
			}
			startJava := func() *kafkatest.JavaProcess {
				return runJava(t, ctx, kafka, kafkatest.JavaProgram{
					Sources: "testdata/java/twins", Main: "Twins",
					Args: []string{strings.Join(c.brokers, ","), c.id, t.TempDir(), name, c.id + "-"},
				})
			}

			java := startJava()
			feed(0)
			goes := c.start(t, program.topology(c.id+"-"))
			c.shared(t)
			feed(1)
			if err := java.CloseInput(); err != nil {
				t.Fatal(err)
			}
			if err := java.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			wentWell(t, java)
			feed(2)
			java = startJava()
			c.shared(t)
			feed(3)
			if err := goes.stop(); err != nil {
				t.Fatal(err)
			}
			feed(4)
			c.end(t, program, fed)
			wentWell(t, java)
		})
	}
}

// end has all windows of a program close, and waits for its outputs.
func (c *cluster) end(t *testing.T, program twin, fed []event) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var poking sync.WaitGroup
	defer func() {
		cancel()
		poking.Wait()
	}()
	// What waits for a window is looked at once a second at most, when a record
	// comes: so there must be some.
	ending := program.ending(0)
	c.feed(t, ending...)
	poking.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			if err := c.client.ProduceSync(ctx, c.records(program.ending(n))...).FirstErr(); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	c.computed(t, program, append(fed, ending...), true)
}

// feed produces events.
func (c *cluster) feed(t *testing.T, events ...event) {
	t.Helper()
	if err := c.client.ProduceSync(t.Context(), c.records(events)...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) records(events []event) (records []*kgo.Record) {
	for _, e := range events {
		r := &kgo.Record{Topic: c.id + "-" + e.topic, Key: []byte(e.key), Value: []byte(e.value), Timestamp: start.Add(e.at)}
		if e.deleted {
			r.Value = nil
		}
		records = append(records, r)
	}
	return records
}

// computed waits until a program's outputs are what it makes of its input.
func (c *cluster) computed(t *testing.T, program twin, fed []event, ended bool) {
	t.Helper()
	for topic, want := range sorted(program.want(fed, ended)) {
		eventually(t, "output "+topic, func() error {
			got, err := program.lines(topic, c.read(t, c.id+"-"+topic))
			if !ended && program.early != nil {
				got = slices.DeleteFunc(got, func(line string) bool { return program.early(topic, line) })
			}
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("%d lines, want %d: too many are %.500s, missing %.500s",
					len(got), len(want), fmt.Sprint(without(got, want)), fmt.Sprint(without(want, got)))
			}
			return err
		})
	}
}
