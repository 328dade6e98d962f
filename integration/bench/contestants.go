package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// contestants of a mode, in the order in which they take turns.
func contestants(mode string) []string {
	if mode == "disk" || mode == "restore" { // what a plain loop doesn't do
		return []string{"odradek", "java"}
	}
	return []string{"odradek", "java", "kgo"}
}

// children are the contestants that are this program, as a process of its own.
var children = map[string]func(context.Context, options) error{"odradek": odradek, "kgo": plainLoop}

// contestant is one that runs.
type contestant struct {
	pid   int
	kill  func()
	lines func() []string // that it has printed
}

// start starts a contestant.
func start(ctx context.Context, kafka *kafkatest.Kafka, o options, name string) (*contestant, error) {
	state, err := os.MkdirTemp("", "odradek-bench-")
	if err != nil {
		return nil, err
	}
	if name == "java" {
		p, err := kafka.Java(ctx, kafkatest.JavaProgram{
			Sources: "integration/bench/testdata/java", Main: "Bench", JVMOptions: []string{"-Xmx1g"},
			Args: []string{o.brokers, o.app, o.mode, o.in, o.out, state},
		})
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(state))
		}
		return &contestant{p.Pid(), func() { p.Kill(); os.RemoveAll(state) }, p.Lines}, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var stdout, stderr output
	cmd := exec.CommandContext(ctx, self, "-child", name, "-mode", o.mode, "-brokers", o.brokers, "-app", o.app, "-in", o.in, "-out", o.out, "-state", state, "-profiles", o.profiles)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(state))
	}
	return &contestant{cmd.Process.Pid, func() {
		end := os.Kill
		if o.profiles != "" { // which are written at the end
			end = os.Interrupt
		}
		cmd.Process.Signal(end)
		cmd.Wait()
		os.Stderr.WriteString(strings.Join(stderr.lines(), "\n"))
		os.RemoveAll(state)
	}, stdout.lines}, nil
}

// output is what a process has printed.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Split(strings.TrimSpace(o.text.String()), "\n")
}

// odradek is this library.
func odradek(ctx context.Context, o options) error {
	cfg := streams.Config{
		ApplicationID: o.app, Brokers: []string{o.brokers}, Logger: slog.New(slog.DiscardHandler),
		StateDir: o.state, StateStoreCacheMaxBytes: -1,
		RestoreListener: func(p streams.RestoreProgress) {
			switch p.Phase {
			case streams.RestoreBegin:
				fmt.Println("begin", time.Now().UnixMilli())
			case streams.RestoreEnd:
				fmt.Println("end", time.Now().UnixMilli())
			}
		},
	}
	mode, exactlyOnce := strings.CutSuffix(o.mode, "-eos")
	if exactlyOnce {
		cfg.ProcessingGuarantee = streams.ExactlyOnceV2
	}
	var topology *streams.Topology
	switch mode {
	case "map":
		topology = streams.NewTopology()
		streams.AddSource(topology, "source", streams.Consumed[string, []byte]{}, o.in)
		streams.AddProcessor(topology, "upper", func() streams.Processor[string, []byte, string, []byte] { return &upper{} }, "source")
		streams.AddSink(topology, "sink", o.out, streams.Produced[string, []byte]{}, "upper")
	case "count", "disk":
		counts := streams.MaterializedWith("counts", serde.String, serde.Int64)
		if mode == "count" {
			counts.StoreType = streams.InMemory
		}
		b := streams.NewBuilder()
		streams.Stream[string, []byte](b, o.in).GroupByKey().Count(counts).ToStream().To(o.out)
		topology = b.Build()
	case "restore":
		b := streams.NewBuilder()
		streams.Stream[string, []byte](b, o.in).GroupByKey().
			Reduce(func(_, now []byte) []byte { return now }, streams.MaterializedWith("store", serde.String, serde.Bytes)).ToStream().To(o.out)
		topology = b.Build()
	default:
		return fmt.Errorf("unknown mode %q", o.mode)
	}
	app, err := streams.NewApp(topology, cfg)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// upper is a processor that puts values into upper case.
type upper struct {
	ctx *streams.ProcessorContext[string, []byte]
}

func (u *upper) Init(ctx *streams.ProcessorContext[string, []byte]) error { u.ctx = ctx; return nil }
func (u *upper) Close() error                                             { return nil }

func (u *upper) Process(r streams.Record[string, []byte]) error {
	r.Value = upperCase(r.Value)
	return u.ctx.Forward(r)
}

func upperCase(in []byte) []byte {
	out := make([]byte, len(in))
	for i, c := range in {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		out[i] = c
	}
	return out
}

// plainLoop is what could be written with franz-go alone: consume, compute,
// produce; for a count also a changelog. It has no group, no restore and no
// commits.
func plainLoop(ctx context.Context, o options) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(o.brokers), kgo.ConsumeTopics(o.in), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(100_000),
		kgo.AllowAutoTopicCreation(),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	failed := kgo.AbortingFirstErrPromise(client)
	counts := make(map[string]int64)
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 10_000)
		fetches.EachRecord(func(r *kgo.Record) {
			out := &kgo.Record{Topic: o.out, Key: r.Key, Timestamp: r.Timestamp}
			if strings.HasPrefix(o.mode, "map") {
				out.Value = upperCase(r.Value)
			} else {
				counts[string(r.Key)]++
				out.Value = binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(counts[string(r.Key)]))
				client.Produce(ctx, &kgo.Record{Topic: o.out + "-changelog", Key: r.Key, Value: out.Value, Timestamp: r.Timestamp}, failed.Promise())
			}
			client.Produce(ctx, out, failed.Promise())
		})
		if err := failed.Err(); err != nil {
			return err
		}
		if len(fetches) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}
