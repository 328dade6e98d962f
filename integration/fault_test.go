package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/membership"
)

// TestCoordinatorKilled: the group's coordinator, one broker of three, is killed
// under a running application. Nothing is lost, and every member is stable again
// with the tasks that it had.
func TestCoordinatorKilled(t *testing.T) {
	kafkatest.Require(t)
	kafka := kafkatest.New(t, kafkatest.Config{Nodes: 3, BrokerConfig: kafkatest.MissedSoon})
	c := newCluster(t, kafka.Addrs())
	c.replicas = 3
	in, out := c.topic(t, "in", 4), c.topic(t, "out", 3)
	lines, want := text(4000)
	parts := chunks(lines, 4)

	a, b := c.start(t, wordCountTopology(in, out)), c.start(t, wordCountTopology(in, out))
	c.produce(t, in, parts[0]...)
	running(t, a, b)
	before := c.stable(t, 2)
	c.produce(t, in, parts[1]...)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found := c.adm.FindGroupCoordinators(ctx, c.id)
	if err := found.Error(); err != nil {
		t.Fatal(err)
	}
	kafka.KillNode(int(found[c.id].NodeID) - 1) // node ids count from 1
	c.produce(t, in, parts[2]...)
	after := c.stable(t, 2)
	running(t, a, b)
	for member, tasks := range before {
		if after[member] != tasks {
			t.Errorf("member %s had %s and has %s", member, tasks, after[member])
		}
	}
	c.produce(t, in, parts[3]...)
	c.counted(t, out, want)
	if _, n := c.counts(t, out); n != total(want) {
		t.Errorf("%d counts for %d words: some were counted again", n, total(want))
	}
}

// stable waits until the group is stable with that many members, and returns the
// members' tasks.
func (c *cluster) stable(t *testing.T, members int) map[string]string {
	t.Helper()
	tasks := make(map[string]string)
	eventually(t, "a stable group", func() error {
		group, err := c.describe(t)
		if err != nil {
			return err
		}
		if group.State != "Stable" || len(group.Members) != members {
			return fmt.Errorf("it is %s with %d members", group.State, len(group.Members))
		}
		clear(tasks)
		for _, m := range group.Members {
			tasks[m.MemberID] = fmt.Sprint(m.Assignment.ActiveTasks)
		}
		return nil
	})
	return tasks
}

// TestPausedMember: a process is stopped for longer than its session time-out.
// Another one takes over. When the first one wakes, records may already be on
// their way to it; it must not process them, and joins again.
func TestPausedMember(t *testing.T) {
	kafkatest.Require(t)
	c := newCluster(t, kafkatest.Shared(t).Addrs())
	in, out := c.topic(t, "in", 4), c.topic(t, "out", 1)
	c.configure(t, "streams.session.timeout.ms", "2000")
	c.configure(t, "streams.heartbeat.interval.ms", "300")
	args := []string{"-brokers", strings.Join(c.brokers, ","), "-application-id", c.id, "-input-topic", in, "-output-topic", out}
	sleeper := example(t, args...)
	c.stable(t, 1)
	c.produce(t, in, "before")
	lines, want := text(1000)
	want["before"]++
	c.counted(t, out, map[string]int64{"before": 1})
	time.Sleep(time.Second) // until that is committed

	pause(t, sleeper)
	other := example(t, args...)
	eventually(t, "the sleeper's session to expire", func() error {
		group, err := c.describe(t)
		if err == nil && (len(group.Members) != 1 || group.State != "Stable") {
			err = fmt.Errorf("the group is %s with %d members", group.State, len(group.Members))
		}
		return err
	})
	c.produce(t, in, lines...)
	c.counted(t, out, want)
	wake(t, sleeper)
	c.stable(t, 2)
	more, again := text(1001)
	for word, n := range again {
		want[word] += n
	}
	c.produce(t, in, more...)
	c.counted(t, out, want)
	if _, n := c.counts(t, out); n != total(want) {
		t.Errorf("%d counts for %d words: a record was processed by two members", n, total(want))
	}
	for _, p := range []*process{sleeper, other} {
		p.Process.Signal(os.Interrupt)
		if code := p.wait(t); code != 0 {
			t.Errorf("ended with status %d\n%s", code, &p.stderr)
		}
	}
}

// TestShutdownWithJava: a shutdown of the application that a Go member asks for
// stops a Java member, and the other way round.
func TestShutdownWithJava(t *testing.T) {
	kafkatest.Require(t)
	kafka := kafkatest.Shared(t)
	for _, asks := range []string{"Go", "Java"} {
		t.Run(asks, func(t *testing.T) {
			c := newCluster(t, kafka.Addrs())
			in, out := c.topic(t, "in", 2), c.topic(t, "out", 1)
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			goes := c.start(t, wordCountTopology(in, out))
			java := c.startJava(t, ctx, kafka, in, out)
			c.stable(t, 2)
			if asks == "Go" {
				goes.app.ShutdownApplication()
			} else if err := java.Send("shutdown"); err != nil {
				t.Fatal(err)
			} else {
				for range 20 { // it fails at its next record, in whichever partition
					c.produce(t, in, "word")
				}
			}
			if err := goes.ended(t); !errors.Is(err, membership.ErrShutdownRequested) {
				t.Errorf("Go ended with %v", err)
			}
			if _, err := java.Await(ctx, func(line string) bool { return line == "ERROR" }); err != nil {
				t.Errorf("Java did not stop: %v", err)
			}
		})
	}
}

// startJava starts word count in Java and waits until it runs.
func (c *cluster) startJava(t *testing.T, ctx context.Context, kafka *kafkatest.Kafka, in, out string) *kafkatest.JavaProcess {
	t.Helper()
	return runJava(t, ctx, kafka, kafkatest.JavaProgram{
		Sources: "testdata/wordcount", Main: "WordCount",
		Args: []string{strings.Join(c.brokers, ","), c.id, in, out, t.TempDir()},
	})
}

// runJava starts an application in Java and waits until it runs.
func runJava(t *testing.T, ctx context.Context, kafka *kafkatest.Kafka, program kafkatest.JavaProgram) *kafkatest.JavaProcess {
	t.Helper()
	java, err := kafka.Java(ctx, program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		java.Kill()
		if t.Failed() {
			t.Logf("Java says %q\n%s", java.Lines(), java.Stderr())
		}
	})
	if _, err := java.Await(ctx, func(line string) bool { return line == "RUNNING" }); err != nil {
		t.Fatal(err)
	}
	return java
}

// TestTopologyDescription: Kafka's tool shows the topology that a member has
// sent to the broker, and it is the one that a Java member sends.
func TestTopologyDescription(t *testing.T) {
	kafkatest.Require(t)
	kafka := kafkatest.Shared(t)
	describe := func(c *cluster) string {
		var topology string
		eventually(t, "a topology description", func() error {
			out, err := kafka.Tool(t.Context(), "org.apache.kafka.tools.streams.StreamsGroupCommand",
				"--bootstrap-server", strings.Join(c.brokers, ","), "--describe", "--group", c.id, "--topology")
			topology = strings.ReplaceAll(out, c.id, "app")
			if err == nil && !strings.Contains(out, "KSTREAM-SOURCE-0000000000") {
				err = fmt.Errorf("the tool says %s", out)
			}
			return err
		})
		return topology
	}
	c := newCluster(t, kafka.Addrs())
	running(t, c.start(t, wordCountTopology(c.topic(t, "in", 2), c.topic(t, "out", 1))))
	got := describe(c)

	c = newCluster(t, kafka.Addrs())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c.startJava(t, ctx, kafka, c.topic(t, "in", 2), c.topic(t, "out", 1))
	if want := describe(c); got != want {
		t.Errorf("Kafka shows\n%s\nof a Java member\n%s", got, want)
	}
}
