package integration

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// kills is how often TestKills kills the application.
var kills = flag.Int("kills", 10, "how often the application of TestKills is killed on each broker")

// victimEnv has the test binary be the application that is killed: its value is the
// brokers, the application id, the topics and the state directory.
const victimEnv = "ODRADEK_VICTIM"

// countTopology counts the records of each key, on disk.
func countTopology(in, out string) *streams.Topology {
	b := streams.NewBuilder()
	streams.Stream[string, string](b, in).GroupByKey().Count(streams.MaterializedWith("counts", serde.String, serde.Int64)).ToStream().To(out)
	return b.Build()
}

// victim is the application, which commits often and writes its files often.
func victim(args []string) error {
	brokers, id, in, out, dir := args[0], args[1], args[2], args[3], args[4]
	app, err := streams.NewApp(countTopology(in, out), streams.Config{
		ApplicationID:  id,
		Brokers:        strings.Split(brokers, ","),
		CommitInterval: 30 * time.Millisecond,
		StateDir:       dir,
		Disk:           state.DiskOptions{WriteBuffer: 64 << 10, LoadBuffer: 256 << 10},
		Logger:         slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	return app.Run(context.Background())
}

// TestKills kills an application at random moments. Each time its stores must be
// found as their changelogs say they were at some offset, and it goes on from there.
func TestKills(t *testing.T) {
	t.Run("Embedded", func(t *testing.T) {
		broker, err := streamstest.NewBroker()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broker.Close)
		killAgainAndAgain(t, newCluster(t, broker.Addrs()))
	})
	t.Run("Kafka", func(t *testing.T) {
		kafkatest.Require(t)
		killAgainAndAgain(t, newCluster(t, kafkatest.Shared(t).Addrs()))
	})
}

const victimPartitions = 2

// killedOwner: when an instance dies, its tasks go on where they have standbys,
// which read nothing but what was written last.
func killedOwner(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", victimPartitions), c.topic(t, "out", 1)
	c.configure(t, "streams.num.standby.replicas", "1")
	c.configure(t, "streams.session.timeout.ms", "3000")
	sent := make(map[string]int64)
	cmd, log := c.startVictim(t, in, out, t.TempDir())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var restored atomic.Int64
	heir := c.start(t, countTopology(in, out), func(cfg *streams.Config) {
		cfg.RestoreListener = func(p streams.RestoreProgress) {
			if p.Phase == streams.RestoreEnd {
				restored.Add(p.Records)
			}
		}
	})
	c.sendKeys(t, in, 5000, sent)
	eventually(t, "an owner and a standby of each task", func() error {
		group, err := c.describe(t)
		if err != nil {
			return err
		}
		active, standbys := 0, 0
		for _, m := range group.Members {
			active += tasksIn(m.Assignment.ActiveTasks)
			standbys += tasksIn(m.Assignment.StandbyTasks)
			if err := caughtUp(m, m.Assignment.StandbyTasks); err != nil {
				return err
			}
		}
		if len(group.Members) != 2 || active != victimPartitions || standbys != victimPartitions {
			return fmt.Errorf("%d members with %d tasks and %d standbys", len(group.Members), active, standbys)
		}
		return nil
	})
	before := restored.Load()
	const tail = 100
	c.sendKeys(t, in, tail, sent)
	cmd.Process.Kill()
	c.sendKeys(t, in, 1000, sent)
	changelog := c.id + "-counts-changelog"
	eventually(t, "all to be counted", func() error { return c.allCounted(t, changelog, sent) })
	if err := heir.stop(); err != nil {
		t.Fatal(err)
	}
	if n := restored.Load() - before; n > 2*tail {
		t.Errorf("the standby's heir restored %d records, and there were %d new ones\n%s", n, tail, log)
	}
}

// allCounted says whether the last counts of a changelog are at least what was sent.
func (c *cluster) allCounted(t *testing.T, changelog string, sent map[string]int64) error {
	t.Helper()
	counts := c.latest(t, changelog)
	for key, n := range sent {
		if counts[key] < n {
			return fmt.Errorf("%q is counted %d times, of %d", key, counts[key], n)
		}
	}
	return nil
}

func killAgainAndAgain(t *testing.T, c *cluster) {
	in, out, dir := c.topic(t, "in", victimPartitions), c.topic(t, "out", 1), t.TempDir()
	changelog := c.id + "-counts-changelog"
	sent := make(map[string]int64)
	for n := range *kills {
		cmd, log := c.startVictim(t, in, out, dir)
		stop := time.Now().Add(time.Duration(rand.IntN(1500)) * time.Millisecond)
		began := c.sum(t, changelog)
		for counted := false; !counted || time.Now().Before(stop); {
			c.sendKeys(t, in, 200, sent)
			if !counted && c.sum(t, changelog) > began {
				counted = true
				stop = time.Now().Add(time.Duration(rand.IntN(700)) * time.Millisecond)
			}
			time.Sleep(5 * time.Millisecond)
		}
		cmd.Process.Kill()
		cmd.Wait()
		checkStores(t, c, filepath.Join(dir, c.id), changelog)
		c.leaveFor(t)
		if t.Failed() {
			t.Fatalf("after %d kills; the log:\n%s", n+1, log)
		}
	}

	// Left alone it counts all that is left, and nothing was lost.
	cmd, _ := c.startVictim(t, in, out, dir)
	defer cmd.Wait()
	defer cmd.Process.Kill()
	eventually(t, "all to be counted", func() error { return c.allCounted(t, changelog, sent) })
}

// startVictim starts the application as a process of its own.
func (c *cluster) startVictim(t *testing.T, in, out, dir string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	cmd, log := exec.Command(os.Args[0]), &strings.Builder{}
	cmd.Env = append(os.Environ(), victimEnv+"="+strings.Join([]string{strings.Join(c.brokers, ","), c.id, in, out, dir}, " "))
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, log
}

// sendKeys sends records of random keys and adds them to what was sent.
func (c *cluster) sendKeys(t *testing.T, topic string, n int, sent map[string]int64) {
	t.Helper()
	records := make([]*kgo.Record, n)
	for i := range records {
		key := fmt.Sprintf("key-%d", rand.IntN(500))
		sent[key]++
		records[i] = &kgo.Record{Topic: topic, Key: []byte(key)}
		records[i].Value = []byte("x")
	}
	if err := c.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// sum is the sum of a topic's end offsets, 0 where there is no such topic yet.
func (c *cluster) sum(t *testing.T, topic string) (n int64) {
	t.Helper()
	ends, err := c.adm.ListEndOffsets(t.Context(), topic)
	if err != nil {
		return 0
	}
	for _, end := range ends.Offsets().Sorted() {
		n += max(0, end.At)
	}
	return n
}

// latest is the last count of each key in a changelog.
func (c *cluster) latest(t *testing.T, changelog string) map[string]int64 {
	t.Helper()
	counts := make(map[string]int64)
	for _, r := range c.read(t, changelog) {
		counts[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value))
	}
	return counts
}

// checkStores opens the stores of an application that was killed, and compares each
// with its changelog up to the store's offset.
func checkStores(t *testing.T, c *cluster, dir, changelog string) {
	t.Helper()
	var records []*kgo.Record
	if c.sum(t, changelog) > 0 {
		records = c.read(t, changelog)
	}
	for partition := range int32(victimPartitions) {
		s := state.NewTimestampedKeyValue("counts", serde.String, serde.Int64, state.Persistent)
		path := filepath.Join(dir, fmt.Sprintf("0_%d", partition), "counts.store")
		if _, err := os.Stat(path); err != nil {
			continue // it was killed before it got there
		}
		if err := s.Open(state.OpenContext{Dir: path}); err != nil {
			t.Error(err)
			continue
		}
		offset, ok := s.Checkpointed()
		if !ok {
			offset = 0
		}
		want, got := make(map[string]int64), make(map[string]int64)
		var last int64
		for _, r := range records {
			if r.Partition == partition && r.Offset < offset {
				want[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value))
			}
			if r.Partition == partition {
				last = r.Offset + 1
			}
		}
		if offset > last {
			t.Errorf("the store of partition %d is at offset %d, and its changelog ends at %d", partition, offset, last)
		}
		err := s.All(func(k string, n, _ int64) bool { got[k] = n; return true })
		if err := errors.Join(err, s.Close()); err != nil {
			t.Error(err)
		}
		t.Logf("the store of partition %d is at offset %d of %d", partition, offset, last)
		if !maps.Equal(got, want) {
			t.Errorf("the store of partition %d at offset %d is not what its changelog says: %s", partition, offset, difference(got, want))
		}
	}
}

// leaveFor has the members of the group that were killed leave it, so that nobody
// has to wait until their sessions expire.
func (c *cluster) leaveFor(t *testing.T) {
	t.Helper()
	group, err := c.describe(t)
	if err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberEpoch = c.id, -1
	for _, m := range group.Members {
		req.MemberID = m.MemberID
		eventually(t, "a dead member to leave", func() error {
			coordinator, err := c.coordinator(t)
			if err != nil {
				return err
			}
			_, err = c.client.Broker(coordinator).Request(t.Context(), req)
			return err
		})
	}
}

// coordinator is the broker that coordinates the group.
func (c *cluster) coordinator(t *testing.T) (int, error) {
	found := c.adm.FindGroupCoordinators(t.Context(), c.id)[c.id]
	return int(found.NodeID), found.Err
}
