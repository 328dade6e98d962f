package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/odradek-go/odradek/mirror"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The application that most tests look at: it counts words.
const (
	group       = "wordcount"
	repartition = "wordcount-words-repartition"
	changelog   = "wordcount-counts-changelog"
)

var keys = mirror.Keys{ReadMirrorStates: 1000, WriteMirrorStates: 1001}

func topology() *streams.Topology {
	b := streams.NewBuilder()
	lines := streams.Stream(b, "lines", streams.ConsumedWith(serde.String, serde.String))
	words := streams.FlatMapValues(lines, strings.Fields)
	streams.GroupBy(words, func(_, word string) string { return word }, streams.GroupedWith(serde.String, serde.String).As("words")).
		Count(streams.MaterializedWith("counts", serde.String, serde.Int64)).ToStream().To("out")
	return b.Build()
}

// cluster is an embedded cluster with the topics of the application.
type cluster struct {
	*streamstest.Broker
	kafka *kgo.Client
	adm   *kadm.Client
}

func start(t *testing.T, opts ...streamstest.Option) *cluster {
	t.Helper()
	b, err := streamstest.NewBroker(append([]streamstest.Option{
		streamstest.WithMirrorStates(keys), streamstest.WithTopologyDescriptions(),
		streamstest.WithKfake(kfake.SeedTopics(2, "lines", "out")),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	kafka, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), keys.ClientOption(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	return &cluster{b, kafka, kadm.NewClient(kafka)}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (c *cluster) produce(t *testing.T, partition int32, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err := c.kafka.ProduceSync(within(t), &kgo.Record{Topic: "lines", Partition: partition, Value: []byte(line)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// count runs the application until all is counted, and then whatever is to be done
// while it runs.
func (c *cluster) count(t *testing.T, meanwhile func()) {
	t.Helper()
	app, err := streams.NewApp(topology(), streams.Config{
		ApplicationID: group, Brokers: c.Addrs(), ClientID: "counter", CommitInterval: 20 * time.Millisecond,
		ApplicationServer: "here:8080", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	stable := within(t)
	_, err = c.WaitStable(stable, group, 1)
	for idle := false; err == nil && !idle; {
		var checkpoint mirror.Checkpoint
		checkpoint, err = mirror.Capture(stable, c.kafka, group, mirror.Application{
			Inputs: []string{"lines"}, Repartitions: []string{repartition}, Changelogs: []string{changelog},
		})
		idle = checkpoint.Exact
	}
	if err == nil && meanwhile != nil {
		meanwhile()
	}
	cancel()
	if ended := <-done; err != nil || ended != nil {
		t.Fatal(err, ended)
	}
}

// counts are what the application has counted.
func (c *cluster) counts(t *testing.T) map[string]int64 {
	t.Helper()
	ctx := within(t)
	ends, err := c.adm.ListEndOffsets(ctx, changelog)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.ConsumeTopics(changelog))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	counts := make(map[string]int64)
	for left > 0 {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			n, err := serde.Int64.Decode(r.Value)
			if err != nil {
				t.Error(err)
			}
			counts[string(r.Key)] = n
			left--
		})
	}
	return counts
}

// result is how a command line ended.
type result struct {
	code           int
	stdout, stderr string
}

// odradek runs a command line; it is split at spaces.
func (c *cluster) odradek(t *testing.T, line string, more ...string) result {
	t.Helper()
	return odradek(t, append(append(strings.Fields(line), "-bootstrap-server", strings.Join(c.Addrs(), ",")), more...)...)
}

func odradek(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// expect checks the exit code and that texts are in the output, after runs of spaces
// have become one.
func (r result) expect(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	all := squeeze(r.stdout + r.stderr)
	for _, text := range texts {
		if !strings.Contains(all, squeeze(text)) {
			t.Errorf("%q isn't in the output", text)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%sstderr:\n%s", r.stdout, r.stderr)
	}
}

func squeeze(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"help"}, {"--help"}} {
		r := odradek(t, args...)
		r.expect(t, 0, "odradek group describe GROUP", "odradek mirror status MIRROR")
		if r.stderr != "" {
			t.Errorf("%v: on standard error: %s", args, r.stderr)
		}
	}
	odradek(t, "group", "-h").expect(t, 0, "odradek group reset GROUP")
	if r := odradek(t, "group", "-h"); strings.Contains(r.stdout, "mirror status") {
		t.Errorf("help on groups speaks of mirrors:\n%s", r.stdout)
	}
	for _, c := range commands {
		words := strings.Fields(c.name)
		for _, args := range [][]string{append(slices.Clone(words), "-h"), append([]string{"help"}, words...)} {
			r := odradek(t, args...)
			r.expect(t, 0, "Usage: odradek "+c.name, "Connection:\n-bootstrap-server host:port,…")
			for line := range strings.Lines(r.stdout) {
				if len([]rune(line)) > 110 {
					t.Errorf("%s: a line of the help is too long: %s", c.name, line)
				}
			}
		}
	}
}

func TestUsage(t *testing.T) {
	for line, says := range map[string]string{
		"":                                      "a command is needed",
		"group":                                 "a command is needed",
		"frobnicate":                            `there is no command "frobnicate"`,
		"group frobnicate -h":                   `there is no command "group frobnicate"`,
		"-v group list":                         "flags come after it",
		"group describe":                        "group describe needs a GROUP",
		"group describe a b":                    `unexpected argument "b" after GROUP a`,
		"group list a":                          `unexpected argument "a"`,
		"group list -frobnicate":                "flag provided but not defined: -frobnicate\nodradek group list -h says more",
		"group list -timeout 0s":                "-timeout is 0s",
		"group list -timeout soon":              "invalid value",
		"group reset a -to-latest -to-offset 3": "-to-latest and -to-offset exclude each other",
		"group reset a -to-offset -3":           "-to-offset is -3",
		"group reset a -to-datetime tomorrow":   `"tomorrow" is no time`,
		"group reset a -by-duration P":          `"P" is no duration`,
		"mirror status m":                       "-api-keys is needed",
		"mirror status m -api-keys 7":           "two numbers are needed",
		"mirror status m -api-keys 1,1001":      "which is that of Fetch",
		"mirror status m -api-keys 1000,1001 -states STOPPED=5,FAILED=5": "STOPPED and FAILED have the number 5 both",
		"mirror status m -api-keys 1000,1001 -states FINE=5":             `no state is called "FINE"`,
		"mirror prepare m -api-keys 1000,1001":                           "-group is needed",
		"group list -user me":                                            "-user needs a password",
		"group list -tls-key k":                                          "-tls-key needs -tls-cert",
		"group list -password-file f":                                    "-password-file needs -user",
		"group list -sasl-mechanism PLAIN":                               "SASL PLAIN needs a user",
	} {
		r := odradek(t, strings.Fields(line)...)
		r.expect(t, 2, says)
		if r.stdout != "" {
			t.Errorf("%q: on standard output: %s", line, r.stdout)
		}
	}
}

// Nothing answers: one line, and no hanging.
func TestUnreachable(t *testing.T) {
	r := odradek(t, "group", "list", "-bootstrap-server", "127.0.0.1:1", "-timeout", "2s")
	r.expect(t, 1, "odradek: no broker answers at 127.0.0.1:1: ")
	if strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
		t.Errorf("more than one line:\n%s%s", r.stdout, r.stderr)
	}
}

// What can't be written is a failure.
func TestClosedOutput(t *testing.T) {
	c := start(t)
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"group", "list", "-bootstrap-server", c.Addrs()[0]}, closed{}, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "it is closed") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errClosed }

var errClosed = errors.New("it is closed")
