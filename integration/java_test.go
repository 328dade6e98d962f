package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

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
	for _, line := range java.Lines() {
		if strings.HasPrefix(line, "FAILED") {
			t.Errorf("Java says %q", line)
		}
	}
}
