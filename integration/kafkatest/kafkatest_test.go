package kafkatest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

func TestMain(m *testing.M) {
	kafkatest.BeChild(childMain)
	kafkatest.Main(m)
}

func client(t *testing.T, kafka *kafkatest.Kafka, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(kafka.Addrs()...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestSharedIsOneRunningCluster(t *testing.T) {
	kafka := kafkatest.Shared(t)
	if again := kafkatest.Shared(t); again != kafka {
		t.Fatal("the second call started another cluster")
	}
	admin := kadm.NewClient(client(t, kafka))
	if _, err := admin.CreateTopic(t.Context(), 2, 1, nil, "shared-topic"); err != nil {
		t.Fatal(err)
	}
	topics, err := admin.ListTopics(t.Context(), "shared-topic")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(topics["shared-topic"].Partitions); got != 2 {
		t.Errorf("the topic has %d partitions, want 2", got)
	}
}

func TestTool(t *testing.T) {
	kafka := kafkatest.Shared(t)
	out, err := kafka.Tool(t.Context(), "org.apache.kafka.tools.TopicCommand",
		"--bootstrap-server", kafka.Bootstrap(), "--create", "--topic", "tool-topic", "--partitions", "3")
	if err != nil || !strings.Contains(out, "tool-topic") {
		t.Fatalf("creating a topic: %q, %v", out, err)
	}
	if _, err := kafka.Tool(t.Context(), "org.apache.kafka.tools.streams.StreamsGroupCommand",
		"--bootstrap-server", kafka.Bootstrap(), "--list"); err != nil {
		t.Error(err)
	}

	_, err = kafka.Tool(t.Context(), "org.apache.kafka.tools.TopicCommand", "--no-such-option")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("a wrong option gives error %v, want an exit error that names it", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := kafka.Tool(ctx, "org.apache.kafka.tools.TopicCommand", "--version"); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context gives error %v, want its own", err)
	}
}

func TestJava(t *testing.T) {
	kafka := kafkatest.Shared(t)
	start := func(t *testing.T, ctx context.Context) *kafkatest.JavaProcess {
		t.Helper()
		p, err := kafka.Java(ctx, kafkatest.JavaProgram{
			Sources: filepath.Join("testdata", "echo"), Main: "Echo", Args: []string{kafka.Bootstrap()},
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	t.Run("talks", func(t *testing.T) {
		p := start(t, t.Context())
		if line, err := p.Next(t.Context()); line != "nodes 1" || err != nil {
			t.Fatalf("first line is %q, %v", line, err)
		}
		for _, line := range []string{"one", "two"} {
			if err := p.Send(line); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Await(t.Context(), func(line string) bool { return line == "TWO" }); err != nil {
			t.Fatal(err)
		}
		if err := p.CloseInput(); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if line, err := p.Next(t.Context()); line != "no line end" || err != nil {
			t.Errorf("last line is %q, %v", line, err)
		}
		if _, err := p.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after the last line comes %v, want io.EOF", err)
		}
		if got, want := p.Lines(), []string{"nodes 1", "ONE", "TWO", "no line end"}; !slices.Equal(got, want) {
			t.Errorf("lines are %q, want %q", got, want)
		}
	})

	t.Run("exit status", func(t *testing.T) {
		p := start(t, t.Context())
		if err := p.Send("exit 3"); err != nil {
			t.Fatal(err)
		}
		err := p.Wait(t.Context())
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(err.Error(), "asked to exit") {
			t.Errorf("ended with %v, want exit status 3 and the end of standard error", err)
		}
	})

	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := start(t, ctx)
		cancel()
		if err := p.Wait(t.Context()); err == nil {
			t.Error("ended well, want killed")
		}
		if err := p.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("signalling an ended program gives %v, want %v", err, os.ErrProcessDone)
		}
	})

	t.Run("does not compile", func(t *testing.T) {
		broken := filepath.Join(t.TempDir(), "Broken.java")
		if err := os.WriteFile(broken, []byte("class Broken { int x = \"\"; }"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := kafka.Java(t.Context(), kafkatest.JavaProgram{Sources: broken, Main: "Broken"})
		if err == nil || !strings.Contains(err.Error(), "incompatible types") {
			t.Errorf("error is %v, want the compiler's", err)
		}
	})
}

func produce(t *testing.T, kafka *kafkatest.Kafka, topic, value string) {
	t.Helper()
	c := client(t, kafka, kgo.DefaultProduceTopic(topic))
	if err := c.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func consume(t *testing.T, kafka *kafkatest.Kafka, topic string, n int) (values []string) {
	t.Helper()
	c := client(t, kafka, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for len(values) < n {
		fetches := c.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for _, record := range fetches.Records() {
			values = append(values, string(record.Value))
		}
	}
	return values
}

func TestDataSurviveStopAndKill(t *testing.T) {
	kafka := kafkatest.New(t, kafkatest.Config{BrokerConfig: kafkatest.MissedSoon})
	if _, err := kadm.NewClient(client(t, kafka)).CreateTopic(t.Context(), 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	addrs := kafka.Addrs()
	produce(t, kafka, "t", "before")

	kafka.KillNode(0)
	if conn, err := net.DialTimeout("tcp", addrs[0], time.Second); err == nil {
		conn.Close()
		t.Error("a killed node takes connections")
	}
	kafka.KillNode(0) // once more does nothing
	if err := kafka.StartNode(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	produce(t, kafka, "t", "between")

	if err := kafka.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := kafka.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := kafka.StartNode(t.Context(), 0); err == nil {
		t.Error("starting a node that runs gives no error")
	}
	if !slices.Equal(kafka.Addrs(), addrs) {
		t.Errorf("addresses were %v, and are now %v", addrs, kafka.Addrs())
	}
	if got, want := consume(t, kafka, "t", 2), []string{"before", "between"}; !slices.Equal(got, want) {
		t.Errorf("records are %q, want %q", got, want)
	}
}

func TestClusterOutlivesANode(t *testing.T) {
	kafka := kafkatest.New(t, kafkatest.Config{Nodes: 3, BrokerConfig: kafkatest.MissedSoon})
	if _, err := kadm.NewClient(client(t, kafka)).CreateTopic(t.Context(), 1, 3, nil, "t"); err != nil {
		t.Fatal(err)
	}
	produce(t, kafka, "t", "three")
	kafka.KillNode(0)
	produce(t, kafka, "t", "two")
	if err := kafka.StartNode(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got, want := consume(t, kafka, "t", 2), []string{"three", "two"}; !slices.Equal(got, want) {
		t.Errorf("records are %q, want %q", got, want)
	}
}

func TestVersions(t *testing.T) {
	for _, test := range []struct {
		kafka      *kafkatest.Kafka
		streamsKey bool
	}{
		{kafkatest.Shared(t), true},
		{kafkatest.New(t, kafkatest.Config{Version: "4.0.0"}), false},
	} {
		resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), client(t, test.kafka))
		if err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(resp.ApiKeys, func(key kmsg.ApiVersionsResponseApiKey) bool {
			return key.ApiKey == kmsg.StreamsGroupHeartbeat.Int16()
		})
		if got != test.streamsKey {
			t.Errorf("Apache Kafka %s takes StreamsGroupHeartbeat: %t, want %t", test.kafka.Version(), got, test.streamsKey)
		}
	}
}

func TestStartErrors(t *testing.T) {
	kafkatest.Require(t)
	for name, test := range map[string]struct {
		config kafkatest.Config
		want   string
	}{
		"version":  {kafkatest.Config{Version: "../4.4.0"}, "version"},
		"nodes":    {kafkatest.Config{Nodes: -1}, "nodes"},
		"settings": {kafkatest.Config{BrokerConfig: map[string]string{"num.io.threads": "many"}}, "num.io.threads"},
	} {
		t.Run(name, func(t *testing.T) {
			kafka, err := kafkatest.Start(t.Context(), test.config)
			if err == nil {
				kafka.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one about %q", err, test.want)
			}
		})
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	kafkatest.Require(t)
	t.Setenv("TMPDIR", t.TempDir())
	before := goleak.IgnoreCurrent()
	kafka, err := kafkatest.Start(t.Context(), kafkatest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(kafka.LogTail(0, 1000), "Kafka Server started") {
		t.Error("the log does not say that the server has started")
	}
	if err := kafka.Close(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.DialTimeout("tcp", kafka.Addrs()[0], time.Second); err == nil {
		conn.Close()
		t.Error("the node still takes connections")
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	goleak.VerifyNone(t, before)
	if err := kafka.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}
