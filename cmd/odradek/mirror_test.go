package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/mirror"
)

const apiKeysFlag = " -api-keys 1000,1001"

func (c *cluster) states(t *testing.T) *mirror.Client {
	t.Helper()
	client, err := mirror.NewClient(c.kafka, mirror.Config{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// copyFrom mirrors topics of another cluster, up to where they end, and says so.
func (c *cluster) copyFrom(t *testing.T, from *cluster, state mirror.State, topics ...string) {
	t.Helper()
	ctx := within(t)
	states := make(mirror.States)
	for _, topic := range topics {
		if c.Cluster().TopicInfo(topic) == nil {
			if _, err := c.adm.CreateTopic(ctx, 2, 1, nil, topic); err != nil {
				t.Fatal(err)
			}
		}
		ends, err := from.adm.ListEndOffsets(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		for partition, end := range ends[topic] {
			states.Set(topic, partition, mirror.Partition{LastMirroredOffset: end.Offset - 1, State: state})
			if end.Offset > 0 {
				c.copyPartition(ctx, t, from, topic, partition, end.Offset)
			}
		}
	}
	if err := c.states(t).Write(ctx, "dr", states); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) copyPartition(ctx context.Context, t *testing.T, from *cluster, topic string, partition int32, end int64) {
	t.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(from.Addrs()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for done := false; !done; {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for _, r := range fetches.Records() {
			rec := &kgo.Record{Topic: topic, Partition: partition, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}
			if err := c.kafka.ProduceSync(ctx, rec).FirstErr(); err != nil {
				t.Fatal(err)
			}
			done = r.Offset == end-1
		}
	}
}

func TestMirrorStatus(t *testing.T) {
	c := start(t)
	if err := c.states(t).Write(within(t), "dr", mirror.States{
		"lines": {0: {LastMirroredOffset: 41, State: mirror.Mirroring}, 1: {LastMirroredOffset: -1, State: mirror.Preparing}},
		"out":   {0: {LastMirroredOffset: 7, State: mirror.Stopped}},
	}); err != nil {
		t.Fatal(err)
	}
	c.odradek(t, "mirror status dr"+apiKeysFlag).expect(t, 0, "TOPIC PARTITION STATE LAST MIRRORED\nlines 0 MIRRORING 41\nlines 1 PREPARING -\nout 0 STOPPED 7")
	c.odradek(t, "mirror status dr -states MIRRORING=5,STOPPED=1"+apiKeysFlag).expect(t, 0, "lines 0 STOPPED 41\nlines 1 UNKNOWN -\nout 0 MIRRORING 7")
	c.odradek(t, "mirror status other"+apiKeysFlag).expect(t, 1, `odradek: mirror "other" has no topics`)
	c.odradek(t, "mirror status dr -api-keys 500,501").expect(t, 1, "nothing has the API key 500; give the key that these brokers have for ReadMirrorStates")
	c.odradek(t, "mirror status dr -group wordcount"+apiKeysFlag).expect(t, 1, `the broker doesn't know which topics group "wordcount" has: give a -checkpoint, or -input-topics`)
	c.odradek(t, "mirror status dr -group wordcount -input-topics lines"+apiKeysFlag).expect(t, 2, "-repartition-topics and -changelog-topics, or -stateless, have to be given too")
	c.odradek(t, "mirror status dr -group wordcount -input-topics lines -stateless -changelog-topics x"+apiKeysFlag).expect(t, 2, "exclude each other")
	r := c.odradek(t, "mirror status dr -group wordcount -input-topics lines -stateless"+apiKeysFlag)
	r.expect(t, 3, "lines 0 input MIRRORING 0 0–0 - - -", "wordcount can't resume:\nlines-0: it is MIRRORING", "lines-1: it is PREPARING", "odradek: the application can't start on the mirror; it can't resume")
	if strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("more than one line of errors:\n%s", r.stderr)
	}
}

// The application is stopped on one cluster, and goes on, on its mirror.
func TestMirrorResume(t *testing.T) {
	source, on := start(t), start(t)
	source.produce(t, 0, "a b", "a")
	file := filepath.Join(t.TempDir(), "checkpoint.json")
	source.count(t, func() {
		source.odradek(t, "mirror checkpoint wordcount -wait").expect(t, 0, `"group": "wordcount"`, `"exact": true`)
	})
	saved := source.odradek(t, "mirror checkpoint wordcount")
	saved.expect(t, 0, "\"inputs\": [\n\"lines\"\n]")
	if err := os.WriteFile(file, []byte(saved.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	source.produce(t, 1, "b c") // not counted there any more
	source.odradek(t, "mirror checkpoint wordcount").expect(t, 0, `"exact": false`, "The checkpoint isn't exact")
	source.odradek(t, "mirror checkpoint wordcount -wait -timeout 300ms").expect(t, 1, "isn't exact yet")
	on.copyFrom(t, source, mirror.Stopped, "lines", repartition, changelog)

	line := " dr -group wordcount -checkpoint " + file + apiKeysFlag
	r := on.odradek(t, "mirror status"+line)
	r.expect(t, 0, "TOPIC PARTITION ROLE STATE MIRRORED TO LOG COMMITTED ENDED AT START\nlines 0 input STOPPED 2 0–2 2 - 2\nlines 1 input STOPPED 1 0–1 0 - 0", "wordcount can resume.")
	if len(on.committed(t)) > 0 {
		t.Error("the status has committed something")
	}
	on.odradek(t, "mirror prepare"+line).expect(t, 0, "wordcount can resume.", "Done: the application can be started on this cluster")
	on.count(t, func() {
		on.odradek(t, "mirror prepare"+line).expect(t, 1, "nothing was done", "-rebuild allows that")
		on.odradek(t, "mirror prepare dr -rebuild -group wordcount"+apiKeysFlag).expect(t, 1, "wordcount can rebuild", `prepare the start of group "wordcount": the group has members`)
	})
	if got := on.counts(t); !maps.Equal(got, map[string]int64{"a": 2, "b": 2, "c": 1}) {
		t.Errorf("counts %v", got)
	}

	on.odradek(t, "mirror status dr -group other -checkpoint "+file+apiKeysFlag).expect(t, 1, `is one of group "wordcount", not of "other"`)
	on.odradek(t, "mirror status dr -group wordcount -input-topics x -checkpoint "+file+apiKeysFlag).expect(t, 2, "-checkpoint says which topics there are")
	on.odradek(t, "mirror status dr -group wordcount -checkpoint none.json"+apiKeysFlag).expect(t, 1, "-checkpoint open none.json: no such file")
}

// Without a checkpoint, state is rebuilt from what is mirrored.
func TestMirrorRebuild(t *testing.T) {
	source, on := start(t), start(t)
	source.produce(t, 0, "a b", "a")
	source.count(t, nil)
	on.copyFrom(t, source, mirror.Stopped, "lines", repartition, changelog)
	line := " dr -group wordcount -input-topics lines -repartition-topics " + repartition + " -changelog-topics " + changelog + apiKeysFlag
	on.odradek(t, "mirror status"+line+" -output-topics lines").expect(t, 3, "wordcount can't rebuild its state from its inputs:\nlines: the application writes to it too")
	on.odradek(t, "mirror prepare -rebuild"+line).expect(t, 0, "wordcount can rebuild its state from its inputs.\nwordcount-counts-changelog has to be deleted before", "Done")
	if on.Cluster().TopicInfo(changelog) != nil {
		t.Error("the changelog is still there")
	}
	on.count(t, nil)
	if got := on.counts(t); !maps.Equal(got, map[string]int64{"a": 2, "b": 1}) {
		t.Errorf("counts %v", got)
	}
	on.odradek(t, "mirror status dr -group wordcount"+apiKeysFlag).expect(t, 0, "wordcount can rebuild") // its topics are known by now
}

// Every state can be numbered.
func TestStatesFlag(t *testing.T) {
	var n stateNumbers
	if err := n.Set(draftStates()); err != nil || !maps.Equal(n.StateNumbers, mirror.DraftStateNumbers()) {
		t.Errorf("%v, %v", n, err)
	}
	if got := slices.Sorted(maps.Values(n.StateNumbers)); len(got) != 8 {
		t.Errorf("%d states", len(got))
	}
}
