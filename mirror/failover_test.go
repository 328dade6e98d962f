package mirror_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/mirror"
	"github.com/odradek-go/odradek/streamstest"
)

const group = "app"

var application = mirror.Application{Inputs: []string{"in"}, Repartitions: []string{"app-rep-repartition"}, Changelogs: []string{"app-log-changelog"}, Outputs: []string{"out"}}

func withTopics(opts ...streamstest.Option) []streamstest.Option {
	return append(opts, streamstest.WithKfake(kfake.SeedTopics(2, "in", "app-rep-repartition", "app-log-changelog")))
}

func produce(t *testing.T, kafka *kgo.Client, topic string, partition int32, n int) {
	t.Helper()
	for range n {
		if err := kafka.ProduceSync(withTimeout(t), &kgo.Record{Topic: topic, Partition: partition, Key: []byte("k"), Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func commit(t *testing.T, kafka *kgo.Client, topic string, partition int32, offset int64, metadata string) {
	t.Helper()
	offsets := make(kadm.Offsets)
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: -1, Metadata: metadata})
	if err := kadm.NewClient(kafka).CommitAllOffsets(withTimeout(t), group, offsets); err != nil {
		t.Fatal(err)
	}
}

func capture(t *testing.T, kafka *kgo.Client) mirror.Checkpoint {
	t.Helper()
	c, err := mirror.Capture(withTimeout(t), kafka, group, application)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A checkpoint is exact only when all that there is was committed.
func TestCapture(t *testing.T) {
	kafka := connect(t, cluster(t, withTopics()...))
	empty := mirror.Checkpoint{
		Committed: map[string]map[int32]mirror.Commit{"in": {0: {}, 1: {}}, "app-rep-repartition": {0: {}, 1: {}}},
		Ends:      map[string]map[int32]int64{"app-rep-repartition": {0: 0, 1: 0}, "app-log-changelog": {0: 0, 1: 0}},
		Exact:     true,
	}
	if c := capture(t, kafka); !reflect.DeepEqual(c, empty) {
		t.Errorf("nothing yet: %+v", c)
	}
	produce(t, kafka, "in", 1, 3)
	c := capture(t, kafka)
	if _, ok := c.Committed["in"][1]; ok || c.Exact {
		t.Errorf("nothing committed: %+v", c)
	}
	produce(t, kafka, "app-rep-repartition", 0, 2)
	commit(t, kafka, "in", 1, 3, "time")
	if c = capture(t, kafka); c.Exact || c.Committed["in"][1] != (mirror.Commit{Offset: 3, Metadata: "time"}) || c.Ends["app-rep-repartition"][0] != 2 {
		t.Errorf("half done: %+v", c)
	}
	produce(t, kafka, "app-log-changelog", 0, 2)
	commit(t, kafka, "app-rep-repartition", 0, 1, "")
	if c = capture(t, kafka); c.Exact {
		t.Errorf("almost done: %+v", c)
	}
	commit(t, kafka, "app-rep-repartition", 0, 2, "")
	if c = capture(t, kafka); !c.Exact || c.Ends["app-log-changelog"][0] != 2 {
		t.Errorf("all done: %+v", c)
	}
	text, err := json.Marshal(c)
	var back mirror.Checkpoint
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("as JSON %s, and back %+v, %v", text, back, err)
	}
}

// An open transaction, and a write while it is looked, make a checkpoint inexact.
func TestCaptureOfSomethingMoving(t *testing.T) {
	ctx := withTimeout(t)
	b := cluster(t, withTopics()...)
	kafka := connect(t, b)
	txn := connect(t, b, kgo.TransactionalID("t"))
	if err := txn.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := txn.ProduceSync(ctx, &kgo.Record{Topic: "app-log-changelog", Key: []byte("k")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if c := capture(t, kafka); c.Exact {
		t.Errorf("with an open transaction: %+v", c)
	}
	if err := txn.EndTransaction(ctx, kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	if c := capture(t, kafka); !c.Exact {
		t.Errorf("after the transaction: %+v", c)
	}
	other := connect(t, b)
	b.Cluster().ControlKey(int16(kmsg.OffsetFetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().DropControl()
		b.Cluster().SleepControl(func() { produce(t, other, "app-log-changelog", 1, 1) })
		return nil, nil, false
	})
	if c := capture(t, kafka); c.Exact || c.Ends["app-log-changelog"][1] != 1 {
		t.Errorf("with a write meanwhile: %+v", c)
	}
}

func TestCaptureErrors(t *testing.T) {
	kafka := connect(t, cluster(t))
	if _, err := mirror.Capture(withTimeout(t), kafka, group, application); !errors.Is(err, kerr.UnknownTopicOrPartition) || !strings.Contains(err.Error(), `take a checkpoint of group "app": the cluster doesn't have the topics [app-log-changelog app-rep-repartition in]`) {
		t.Errorf("without topics: %v", err)
	}
	if _, err := mirror.Capture(withTimeout(t), kafka, group, mirror.Application{}); !errors.Is(err, mirror.ErrConfig) {
		t.Errorf("of nothing: %v", err)
	}
	ctx, cancel := context.WithCancel(withTimeout(t))
	cancel()
	if _, err := mirror.Capture(ctx, kafka, group, application); !errors.Is(err, context.Canceled) {
		t.Errorf("too late: %v", err)
	}
}

func examine(t *testing.T, c *mirror.Client) mirror.Mirrored {
	t.Helper()
	on, err := c.Examine(withTimeout(t), "dr", application)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// What isn't there is left out, and other errors aren't swallowed.
func TestExamine(t *testing.T) {
	b, c := start(t, mirror.Config{}, streamstest.WithKfake(kfake.SeedTopics(1, "in", "app-rep-repartition")))
	kafka := connect(t, b)
	produce(t, kafka, "in", 0, 5)
	if _, err := kadm.NewClient(kafka).DeleteRecords(withTimeout(t), kadm.Offsets{"in": {0: {Topic: "in", At: 2}}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(withTimeout(t), "dr", mirror.States{"in": {0: {LastMirroredOffset: 4, State: mirror.Stopped}}}); err != nil {
		t.Fatal(err)
	}
	want := mirror.Mirrored{
		States: mirror.States{"in": {0: {LastMirroredOffset: 4, State: mirror.Stopped}}},
		Logs:   mirror.Logs{"in": {0: {Start: 2, End: 5}}, "app-rep-repartition": {0: {}}},
	}
	if on := examine(t, c); !reflect.DeepEqual(on, want) {
		t.Errorf("%+v", on)
	}
	b.Fault(kfake.Fault{Err: kerr.ClusterAuthorizationFailed})
	if _, err := c.Examine(withTimeout(t), "dr", application); !errors.Is(err, kerr.ClusterAuthorizationFailed) {
		t.Errorf("the error is %v", err)
	}
	if _, err := c.Examine(withTimeout(t), "dr", mirror.Application{}); !errors.Is(err, mirror.ErrConfig) {
		t.Errorf("of nothing: %v", err)
	}
}

// vouch writes states for all that is on the cluster.
func vouch(t *testing.T, c *mirror.Client) {
	t.Helper()
	states := make(mirror.States)
	for topic, partitions := range examine(t, c).Logs {
		for p, log := range partitions {
			states.Set(topic, p, mirror.Partition{LastMirroredOffset: log.End - 1, State: mirror.Stopped})
		}
	}
	if err := c.Write(withTimeout(t), "dr", states); err != nil {
		t.Fatal(err)
	}
}

func committed(t *testing.T, kafka *kgo.Client) map[string]map[int32]mirror.Commit {
	t.Helper()
	all, err := kadm.NewClient(kafka).FetchOffsets(withTimeout(t), group)
	if err != nil {
		t.Fatal(err)
	}
	commits := make(map[string]map[int32]mirror.Commit)
	all.Each(func(o kadm.OffsetResponse) {
		if commits[o.Topic] == nil {
			commits[o.Topic] = make(map[int32]mirror.Commit)
		}
		commits[o.Topic][o.Partition] = mirror.Commit{Offset: o.At, Metadata: o.Metadata}
	})
	return commits
}

// A plan to resume commits what was committed on the source, with its metadata.
func TestApplyResume(t *testing.T) {
	b, c := start(t, mirror.Config{}, withTopics()...)
	kafka := connect(t, b)
	produce(t, kafka, "in", 0, 5)
	produce(t, kafka, "app-log-changelog", 0, 3)
	vouch(t, c)
	checkpoint := mirror.Checkpoint{
		Committed: map[string]map[int32]mirror.Commit{"in": {0: {Offset: 3, Metadata: "time"}}},
		Ends:      map[string]map[int32]int64{"app-rep-repartition": {0: 0, 1: 0}, "app-log-changelog": {0: 3, 1: 0}},
		Exact:     true,
	}
	plan, err := mirror.Safe(application, checkpoint, examine(t, c))
	if err != nil || plan.Strategy != mirror.Resume {
		t.Fatalf("%+v, %v", plan, err)
	}
	for range 2 {
		if err := plan.Apply(withTimeout(t), kafka, group); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]map[int32]mirror.Commit{"in": {0: {Offset: 3, Metadata: "time"}, 1: {}}, "app-rep-repartition": {0: {}, 1: {}}}
	if got := committed(t, kafka); !reflect.DeepEqual(got, want) {
		t.Errorf("committed %v, want %v", got, want)
	}
}

// A plan to rebuild deletes internal topics, and what was committed of them.
func TestApplyRebuild(t *testing.T) {
	b, c := start(t, mirror.Config{}, withTopics()...)
	kafka := connect(t, b)
	produce(t, kafka, "in", 0, 5)
	produce(t, kafka, "app-rep-repartition", 1, 4)
	commit(t, kafka, "in", 0, 5, "time")
	commit(t, kafka, "app-rep-repartition", 1, 4, "")
	vouch(t, c)
	plan, err := mirror.Safe(application, mirror.Checkpoint{}, examine(t, c))
	if err != nil || plan.Strategy != mirror.Rebuild {
		t.Fatalf("%+v, %v", plan, err)
	}
	for range 2 {
		if err := plan.Apply(withTimeout(t), kafka, group); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]map[int32]mirror.Commit{"in": {0: {}, 1: {}}}
	if got := committed(t, kafka); !reflect.DeepEqual(got, want) {
		t.Errorf("committed %v, want %v", got, want)
	}
	for _, topic := range []string{"app-rep-repartition", "app-log-changelog"} {
		if b.Cluster().TopicInfo(topic) != nil {
			t.Errorf("%s is still there", topic)
		}
	}
}

// Nothing is done while the application runs, or without a plan.
func TestApplyRefused(t *testing.T) {
	b, c := start(t, mirror.Config{}, withTopics()...)
	kafka := connect(t, b)
	vouch(t, c)
	plan, err := mirror.Safe(application, mirror.Checkpoint{}, examine(t, c))
	if err != nil {
		t.Fatal(err)
	}
	member := connect(t, b, kgo.ConsumerGroup(group), kgo.ConsumeTopics("in"))
	joined, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for joined.Err() == nil {
			member.PollFetches(joined)
		}
	}()
	for ctx := withTimeout(t); ; time.Sleep(5 * time.Millisecond) {
		if info := b.Cluster().GroupInfo(group); info != nil && len(info.Members) > 0 {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("nobody joins")
		}
	}
	if err := plan.Apply(withTimeout(t), kafka, group); !errors.Is(err, mirror.ErrGroupActive) {
		t.Errorf("while the group has members: %v", err)
	}
	if b.Cluster().TopicInfo("app-log-changelog") == nil {
		t.Error("a topic was deleted")
	}
	if err := new(mirror.Plan).Apply(withTimeout(t), kafka, "other"); err == nil {
		t.Error("a plan without starts can be applied")
	}
}
