package integration

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streamstest"
)

// standbyTakesOver: with a standby for each stateful task, an instance that goes
// leaves its tasks to one that has their state already.
func standbyTakesOver(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 4), c.topic(t, "out", 1)
	c.configure(t, "streams.num.standby.replicas", "1")
	lines, want := text(3000)
	parts := chunks(lines, 3)
	a, b := c.start(t, wordCountTopology(in, out)), c.start(t, wordCountTopology(in, out))
	c.produce(t, in, parts[0]...)
	running(t, a, b)
	eventually(t, "standbys that have caught up", func() error {
		group, err := c.describe(t)
		if err != nil {
			return err
		}
		standbys := 0
		for _, m := range group.Members {
			standbys += tasksIn(m.Assignment.StandbyTasks)
			if err := caughtUp(m, m.Assignment.StandbyTasks); err != nil {
				return err
			}
		}
		if standbys != 4 {
			return fmt.Errorf("%d standby tasks, want one for each of the 4 with a store", standbys)
		}
		return nil
	})
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	c.produce(t, in, parts[1]...)
	running(t, b)

	// Roles change back and forth.
	a = c.start(t, wordCountTopology(in, out))
	c.produce(t, in, parts[2]...)
	running(t, a, b)
	c.counted(t, out, want)
	if _, n := c.counts(t, out); n != total(want) {
		t.Errorf("%d counts for %d words: some were counted again", n, total(want))
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	if n := restoredRecords(b.log.String()); n > total(want)/2 {
		t.Errorf("the instance with standbys restored %d records, with %d words in all: it did not keep its stores", n, total(want))
	}
}

// restoredRecords is how many records an instance restored before its tasks ran.
func restoredRecords(log string) (n int) {
	for _, m := range regexp.MustCompile(`restored a state store.* records=(\d+)`).FindAllStringSubmatch(log, -1) {
		records, _ := strconv.Atoi(m[1])
		n += records
	}
	return n
}

func tasksIn(ids []kmsg.TaskIDs) (n int) {
	for _, id := range ids {
		n += len(id.Partitions)
	}
	return n
}

// caughtUp says whether a member has reported positions at the ends of tasks.
func caughtUp(m kmsg.StreamsGroupDescribeResponseGroupMember, tasks []kmsg.TaskIDs) error {
	at := func(offsets []kmsg.TaskOffset, subtopology string, partition int32) (int64, bool) {
		for _, o := range offsets {
			if o.SubtopologyID == subtopology && o.Partition == partition {
				return o.Offset, true
			}
		}
		return 0, false
	}
	for _, id := range tasks {
		for _, p := range id.Partitions {
			offset, ok1 := at(m.TaskOffsets, id.SubtopologyID, p)
			end, ok2 := at(m.TaskEndOffsets, id.SubtopologyID, p)
			if !ok1 || !ok2 || offset <= end {
				return fmt.Errorf("task %s_%d is at %d of %d (%v, %v)", id.SubtopologyID, p, offset, end, ok1, ok2)
			}
		}
	}
	return nil
}

// TestWarmup: where the coordinator assigns warm-up tasks, a new instance gets a
// large task only when it has caught up, and the old owner processes until then.
// Kafka 4.4's own coordinator assigns none; a class of ours has it do so.
func TestWarmup(t *testing.T) {
	t.Run("Embedded", func(t *testing.T) {
		broker, err := streamstest.NewBroker()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broker.Close)
		warmsUp(t, newCluster(t, broker.Addrs()))
	})
	t.Run("Kafka", func(t *testing.T) {
		kafkatest.Require(t)
		kafka := kafkatest.New(t, kafkatest.Config{Patches: "testdata/java/refiner"})
		warmsUp(t, newCluster(t, kafka.Addrs()))
	})
}

func warmsUp(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 2), c.topic(t, "out", 1)
	c.configure(t, "streams.num.warmup.replicas", "2")
	c.configure(t, "streams.acceptable.recovery.lag", "10")
	lines, want := text(3000)
	parts := chunks(lines, 3)
	a := c.start(t, wordCountTopology(in, out))
	c.produce(t, in, parts[0]...)
	running(t, a)
	soFar := wordsOf(parts[0])
	c.counted(t, out, soFar)

	b := c.start(t, wordCountTopology(in, out))
	c.produce(t, in, parts[1]...)
	eventually(t, "the new instance to have its share", func() error {
		group, err := c.describe(t)
		if err != nil {
			return err
		}
		switch {
		case len(group.Members) != 2:
			return errors.New("it is not there")
		case tasksIn(group.Members[0].Assignment.ActiveTasks) != 2 || tasksIn(group.Members[1].Assignment.ActiveTasks) != 2:
			return fmt.Errorf("members have %v and %v", group.Members[0].Assignment, group.Members[1].Assignment)
		}
		return nil
	})
	running(t, a, b)
	c.produce(t, in, parts[2]...)
	c.counted(t, out, want)
	if _, n := c.counts(t, out); n != total(want) {
		t.Errorf("%d counts for %d words: some were counted again", n, total(want))
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	if log := b.log.String(); !regexp.MustCompile(`taking an assignment.* warmup="?\[1_`).MatchString(log) {
		t.Error("no task was ever warmed up")
	}
	if n := restoredRecords(b.log.String()); n > 20 {
		t.Errorf("the new instance restored %d records after its tasks were promoted", n)
	}
}
