package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/taskmgr"
)

// restartReadsTail: what an instance has on disk it does not read again, and it is
// the same process to the group.
func restartReadsTail(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 4), c.topic(t, "out", 1)
	lines, want := text(3000)
	parts := chunks(lines, 2)
	dir := t.TempDir()
	start := func() *instance {
		return c.start(t, wordCountTopology(in, out), func(cfg *streams.Config) { cfg.StateDir = dir })
	}
	a := start()
	c.produce(t, in, parts[0]...)
	c.counted(t, out, wordsOf(parts[0]))
	process := c.process(t)
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}

	a = start()
	running(t, a)
	if n := restoredRecords(a.log.String()); n > 0 {
		t.Errorf("it restored %d records with all of them on disk", n)
	}
	if again := c.process(t); again != process {
		t.Errorf("the process id is %q, and was %q", again, process)
	}
	c.produce(t, in, parts[1]...)
	c.counted(t, out, want)
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}

	// Without the directory all is read again.
	if err := os.RemoveAll(filepath.Join(dir, c.id)); err != nil {
		t.Fatal(err)
	}
	var told sync.Map
	a = c.start(t, wordCountTopology(in, out), func(cfg *streams.Config) {
		cfg.StateDir = dir
		cfg.RestoreListener = func(p streams.RestoreProgress) {
			if p.Phase == streams.RestoreEnd {
				told.Store(p.Task, p.Records)
			}
		}
	})
	running(t, a)
	var restored int64
	told.Range(func(_, n any) bool { restored += n.(int64); return true })
	if restored < int64(len(want)) || restored > int64(total(want)) {
		t.Errorf("it restored %d records, of %d words and %d counts", restored, len(want), total(want))
	}
}

// process is the process id of the group's only member.
func (c *cluster) process(t *testing.T) string {
	t.Helper()
	group, err := c.describe(t)
	if err != nil || len(group.Members) != 1 {
		t.Fatalf("the group has %d members (%v)", len(group.Members), err)
	}
	return group.Members[0].ProcessID
}

// oneDirectory: two instances can't share a state directory, and the second says so.
func oneDirectory(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	dir := t.TempDir()
	here := func(cfg *streams.Config) { cfg.StateDir = dir }
	a := c.start(t, wordCountTopology(in, out), here)
	running(t, a)
	if err := c.start(t, wordCountTopology(in, out), here).ended(t); !errors.Is(err, taskmgr.ErrDirectoryLocked) {
		t.Errorf("the second ended with %v", err)
	}
	if err := a.app.CleanUp(); err == nil {
		t.Error("what is in use was cleaned up")
	}
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	if err := a.app.CleanUp(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left (%v)", left, err)
	}
}

// damagedStore: a store whose files are damaged is rebuilt from its changelog.
func damagedStore(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	lines, want := text(1000)
	parts := chunks(lines, 2)
	dir := t.TempDir()
	here := func(cfg *streams.Config) { cfg.StateDir = dir }
	a := c.start(t, wordCountTopology(in, out), here)
	c.produce(t, in, parts[0]...)
	c.counted(t, out, wordsOf(parts[0]))
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, c.id, "1_0", "*.store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no files of the store (%v)", err)
	}
	for _, name := range tables {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			data[i] ^= 0x5a
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	replace := func(cfg *streams.Config) {
		cfg.UncaughtExceptionHandler = func(err error) streams.UncaughtExceptionResponse {
			if errors.Is(err, state.ErrCorrupt) {
				return streams.ReplaceThread
			}
			return streams.ShutdownClient
		}
	}
	c.start(t, wordCountTopology(in, out), here, replace)
	c.produce(t, in, parts[1]...)
	c.counted(t, out, want)
}

// pausedInstance: an instance that is paused processes nothing and stays a member.
func pausedInstance(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 2), c.topic(t, "out", 1)
	lines, want := text(1000)
	parts := chunks(lines, 2)
	a := c.start(t, wordCountTopology(in, out))
	c.produce(t, in, parts[0]...)
	c.counted(t, out, wordsOf(parts[0]))
	a.app.Pause()
	if !a.app.Paused() {
		t.Error("it does not say that it is paused")
	}
	time.Sleep(300 * time.Millisecond) // what was being processed is through
	before := c.ends(t, out)
	c.produce(t, in, parts[1]...)
	time.Sleep(time.Second)
	if after := c.ends(t, out); after[0] != before[0] {
		t.Errorf("%d counts were sent while it was paused", after[0]-before[0])
	}
	if group, err := c.describe(t); err != nil || len(group.Members) != 1 {
		t.Errorf("the group has %d members (%v)", len(group.Members), err)
	}
	a.app.Resume()
	c.counted(t, out, want)
}

// inOrderOfTime: a task that reads two topics processes their records in the order of
// their times, though one topic has them long before the other.
func inOrderOfTime(t *testing.T, c *cluster) {
	left, right := c.topic(t, "left", 1), c.topic(t, "right", 1)
	const n = 3000
	for i, topic := range []string{left, right} {
		var records []*kgo.Record
		for j := range n {
			ms := int64(1000 + 2*j + i)
			records = append(records, &kgo.Record{Topic: topic, Value: []byte(fmt.Sprint(ms)), Timestamp: time.UnixMilli(ms)})
		}
		if err := c.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var times []string
	b := streams.NewBuilder()
	streams.StreamOf[string, string](b, []string{left, right}).ForEach(func(_, v string) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, v)
	})
	c.start(t, b.Build())
	eventually(t, "all records", func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(times) < 2*n {
			return fmt.Errorf("%d of %d", len(times), 2*n)
		}
		return nil
	})
	if !slices.IsSorted(times) {
		t.Error("they were not processed in the order of their times")
	}
}

// globalTable: every instance has a global table whole before it processes anything,
// keeps it current, finds it on disk again, and answers queries from it.
func globalTable(t *testing.T, c *cluster) {
	in, names, out := c.topic(t, "in", 2), c.topic(t, "names", 3), c.topic(t, "out", 1)
	put := func(topic string, kvs ...string) {
		t.Helper()
		for _, kv := range kvs {
			key, value, _ := strings.Cut(kv, "=")
			if err := c.client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	topology := func() *streams.Topology {
		b := streams.NewBuilder()
		table := streams.GlobalTable[string, string](b, names, streams.Materialized[string, string]{Name: "names"})
		streams.JoinGlobalTable(streams.Stream[string, string](b, in), table,
			func(_, v string) (string, bool) { return v, true },
			func(_, name string) string { return name }).To(out)
		return b.Build()
	}
	for i := range 300 {
		put(names, fmt.Sprintf("%d=name %d", i, i))
	}
	dir := t.TempDir()
	here := func(cfg *streams.Config) { cfg.StateDir, cfg.NumStreamThreads = dir, 2 }
	a := c.start(t, topology(), here)
	var want []string
	for i := range 300 {
		put(in, fmt.Sprintf("k=%d", i))
		want = append(want, fmt.Sprintf("name %d", i))
	}
	c.received(t, out, want...)
	put(names, "7=another name")
	eventually(t, "the change", func() error {
		put(in, "k=7")
		if records := c.read(t, out); string(records[len(records)-1].Value) != "another name" {
			return fmt.Errorf("it is still %q", records[len(records)-1].Value)
		}
		return nil
	})
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}

	put(names, "8=the third name")
	before := len(c.read(t, out))
	b := c.start(t, topology(), here)
	put(in, "k=7", "k=8", "k=9")
	eventually(t, "all to be joined", func() error {
		var got []string
		for _, r := range c.read(t, out)[before:] {
			got = append(got, string(r.Value))
		}
		slices.Sort(got)
		got = slices.Compact(got) // the first instance may have left one of 7
		if want := []string{"another name", "name 9", "the third name"}; !slices.Equal(got, want) {
			return fmt.Errorf("joined to %q, want %q", got, want)
		}
		return nil
	})
	found, err := iq.NewKeyValue(b.app.Queries(), "names", serde.String, serde.String).Get(t.Context(), "8")
	if err != nil || found.Value != "the third name" || !found.Meta.Active {
		t.Errorf("a query finds %+v, %v", found, err)
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
}
