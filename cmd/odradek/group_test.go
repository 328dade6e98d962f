package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/streamstest"
)

func TestGroupDescribe(t *testing.T) {
	c := start(t, streamstest.WithNodes(2))
	c.produce(t, 0, "a b", "c")
	c.odradek(t, "group list").expect(t, 0, "GROUP STATE COORDINATOR\n")
	c.odradek(t, "group describe nobody").expect(t, 1, `describe group "nobody": there is no such streams group; odradek group list shows`)
	c.count(t, func() {
		c.odradek(t, "group list").expect(t, 0, "wordcount Stable")
		r := c.odradek(t, "group describe -offsets wordcount")
		r.expect(t, 0, "Group: wordcount\nState: Stable\nEpoch: ", "Assignor: sticky", "Members: 1",
			"0 lines source -", "0 wordcount-words-repartition repartition sink -",
			"1 wordcount-words-repartition repartition source 2", "1 wordcount-counts-changelog changelog 2",
			"MEMBER EPOCH CLIENT HOST INSTANCE ENDPOINT PROCESS ACTIVE STANDBY WARM-UP TARGET",
			"counter-StreamThread-1 /127.0.0.1 - here:8080", "0_0 0_1 1_0 1_1 - - -",
			"TOPIC PARTITION COMMITTED END LAG\nlines 0 2 2 0")
		if r.stderr != "" {
			t.Errorf("on standard error: %s", r.stderr)
		}
	})
	r := c.odradek(t, "group describe wordcount")
	r.expect(t, 0, "State: Empty", "Members: 0")
	if strings.Contains(r.stdout, "MEMBER ") || strings.Contains(r.stdout, "COMMITTED") {
		t.Errorf("shown without need:\n%s", r.stdout)
	}
}

// A description looks like that of the program's own.
func TestTopologyDescribe(t *testing.T) {
	want, err := topology().Describe()
	if err != nil {
		t.Fatal(err)
	}
	// The broker knows internal topics by their names in the cluster.
	want = strings.NewReplacer(": words-repartition)", ": "+repartition+")", "[words-repartition]", "["+repartition+"]").Replace(want)
	c := start(t)
	c.count(t, func() {
		deadline := time.Now().Add(30 * time.Second)
		for time.Now().Before(deadline) {
			if r := c.odradek(t, "topology describe wordcount"); r.stderr == "" { // a member has pushed it
				break
			}
		}
	})
	r := c.odradek(t, "topology describe wordcount")
	r.expect(t, 0, "Topologies:")
	if lines(r.stdout) != lines(want) {
		t.Errorf("described as\n%s, want\n%s", r.stdout, want)
	}

	c = start(t, streamstest.WithStreamsGroupVersion(0))
	c.count(t, nil)
	r = c.odradek(t, "topology describe wordcount")
	r.expect(t, 0, "the broker doesn't know of topology descriptions; these are the topology's topics:", "1 wordcount-counts-changelog changelog")
	c.odradek(t, "topology describe nobody").expect(t, 1, "there is no such streams group")
}

// lines are the lines of a text without empty ones.
func lines(s string) string {
	var all []string
	for line := range strings.Lines(s) {
		if strings.TrimSpace(line) != "" {
			all = append(all, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(all, "\n")
}

func TestWithoutStreamsGroups(t *testing.T) {
	b, err := streamstest.NewBroker(streamstest.WithoutStreamsGroups())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	odradek(t, "group", "describe", "any", "-bootstrap-server", b.Addrs()[0]).expect(t, 1, "the brokers don't have streams groups: they need Apache Kafka 4.1 or later")
	odradek(t, "group", "list", "-bootstrap-server", b.Addrs()[0]).expect(t, 0, "GROUP")
}

// After a reset, the application counts all once more, from nothing.
func TestGroupReset(t *testing.T) {
	c := start(t)
	c.produce(t, 0, "a b", "a")
	c.produce(t, 1, "b")
	if _, err := c.adm.CreateTopics(within(t), 1, 1, nil, "wordcount-eu-store-changelog", "wordcount-notes"); err != nil {
		t.Fatal(err)
	}
	c.count(t, func() {
		r := c.odradek(t, "group reset wordcount -input-topics lines")
		r.expect(t, 1, `group "wordcount": the group has members (it is Stable): stop the application's instances, and wait until they have left; they are counter-StreamThread-1 at /127.0.0.1`)
	})
	r := c.odradek(t, "group reset wordcount -all-input-topics -dry-run")
	r.expect(t, 0, "INPUT TOPIC PARTITION COMMITTED RESET TO\nlines 0 2 0\nlines 1 1 0\n\nINTERNAL TOPIC TO DELETE\nwordcount-counts-changelog\nwordcount-eu-store-changelog\nwordcount-words-repartition", "nothing has been changed")
	if c.committed(t)["lines"][0].At != 2 || c.Cluster().TopicInfo(changelog) == nil {
		t.Error("a dry run has changed something")
	}
	c.odradek(t, "group reset wordcount -input-topics lines -internal-topics wordcount-counts-changelog,wordcount-words-repartition").expect(t, 0, "Done.")
	for topic, exists := range map[string]bool{changelog: false, repartition: false, "wordcount-eu-store-changelog": true, "wordcount-notes": true, "out": true} {
		if (c.Cluster().TopicInfo(topic) != nil) != exists {
			t.Errorf("%s exists: %v", topic, !exists)
		}
	}
	if left := c.committed(t); len(left) != 1 || left["lines"][0].At != 0 {
		t.Errorf("committed %v", left)
	}
	c.count(t, nil)
	if got := c.counts(t); !maps.Equal(got, map[string]int64{"a": 2, "b": 2}) {
		t.Errorf("counts %v", got)
	}
}

func (c *cluster) committed(t *testing.T) kadm.OffsetResponses {
	t.Helper()
	all, err := c.adm.FetchOffsets(within(t), group)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every way to say where to reset to.
func TestGroupResetTo(t *testing.T) {
	c := start(t)
	now := time.Now()
	for i := range 10 { // one a day, from ten days ago
		rec := &kgo.Record{Topic: "lines", Partition: 0, Value: []byte("x"), Timestamp: now.Add(time.Duration(i-10) * 24 * time.Hour)}
		if err := c.kafka.ProduceSync(within(t), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.adm.DeleteRecords(within(t), kadm.Offsets{"lines": {0: {Topic: "lines", At: 2}}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.csv")
	if err := os.WriteFile(file, []byte("lines,0,7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commit := kadm.Offsets{"lines": {0: {Topic: "lines", At: 6, LeaderEpoch: -1}}}
	for flags, want := range map[string]string{
		"":                      "lines 0 6 2",
		"-to-earliest":          "lines 0 6 2",
		"-to-latest":            "lines 0 6 10",
		"-to-offset 5":          "lines 0 6 5",
		"-to-offset 0":          "lines 0 6 2",
		"-to-offset 99":         "lines 0 6 10",
		"-shift-by 2":           "lines 0 6 8",
		"-shift-by -3":          "lines 0 6 3",
		"-shift-by -99":         "lines 0 6 2",
		"-by-duration 60h":      "lines 0 6 8",
		"-by-duration P2DT12H":  "lines 0 6 8",
		"-by-duration PT1M0.5S": "lines 0 6 10",
		"-to-datetime " + now.Add(-60*time.Hour).UTC().Format("2006-01-02T15:04:05.000"): "lines 0 6 8",
		"-to-datetime " + now.Add(-60*time.Hour).Format(time.RFC3339):                    "lines 0 6 8",
		"-from-file " + file: "lines 0 6 7",
	} {
		t.Run(flags, func(t *testing.T) {
			if err := c.adm.CommitAllOffsets(within(t), group, commit); err != nil {
				t.Fatal(err)
			}
			c.odradek(t, "group reset wordcount -input-topics lines "+flags).expect(t, 0, want, "Done.")
			to := strings.Fields(want)[3]
			if got := c.committed(t)["lines"][0].At; to != number(got) {
				t.Errorf("committed %d", got)
			}
		})
	}
	if err := c.adm.CommitAllOffsets(within(t), group, commit); err != nil {
		t.Fatal(err)
	}
	c.odradek(t, "group reset wordcount -from-file "+file).expect(t, 0, "lines 0 6 7")
}

func TestGroupResetRefuses(t *testing.T) {
	c := start(t)
	if _, err := c.adm.CreateTopics(within(t), 1, 1, nil, changelog, "wordcount-eu-store-changelog"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(content string) string {
		name := filepath.Join(dir, "plan.csv")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for flags, says := range map[string]string{
		"-input-topics nothing":       "the input topic nothing doesn't exist",
		"-input-topics " + changelog:  "is an internal topic, which is deleted, and no input topic",
		"-internal-topics lines":      "lines isn't an internal topic of group \"wordcount\"; those are [wordcount-counts-changelog wordcount-eu-store-changelog]",
		"-all-input-topics":           "there is no such streams group",
		"-from-file " + dir + "/none": "no such file",
	} {
		c.odradek(t, "group reset wordcount "+flags).expect(t, 1, says)
	}
	for content, says := range map[string]string{
		"lines,0":              "wrong number of fields",
		"lines,zero,1":         `record 1 is "lines,zero,1"`,
		"lines,0,-1":           "not topic,partition,offset",
		"":                     "has no offsets",
		"lines,0,1\nlines,9,1": "lines-9, which isn't a partition of an input topic",
		"elsewhere,0,1":        "the input topic elsewhere doesn't exist",
	} {
		c.odradek(t, "group reset wordcount -from-file "+file(content)).expect(t, 1, says)
	}
	if c.Cluster().TopicInfo(changelog) == nil {
		t.Error("a topic was deleted")
	}
	c.odradek(t, "group reset nothing").expect(t, 0, "There is nothing to do.")
}

func TestInternalTopic(t *testing.T) {
	for topic, want := range map[string]bool{
		"app-counts-changelog":                                          true,
		"app-words-repartition":                                         true,
		"app-x-subscription-registration-topic":                         true,
		"app-x-subscription-response-topic":                             true,
		"app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic": true,
		"app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic":     true,
		"app-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-topic":                false,
		"app-counts": false, "application-counts-changelog": false, "counts-changelog": false, "app": false,
	} {
		if internalTopic("app", topic) != want {
			t.Errorf("%s: %v", topic, !want)
		}
	}
	for topic, want := range map[string]string{
		"app-eu-counts-changelog": "app-eu", "app-counts-changelog": "", "app-europe-changelog": "",
	} {
		if got := owner([]string{"app", "app-eu", "other"}, "app", topic); got != want {
			t.Errorf("%s belongs to %q, want %q", topic, got, want)
		}
	}
}
