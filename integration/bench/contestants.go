package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// contestants in the order in which they take turns.
var contestants = []string{"odradek", "java", "kgo"}

// children are the contestants that are this program, as a process of its own.
var children = map[string]func(context.Context, options) error{"odradek": odradek, "kgo": plainLoop}

// start starts a contestant and returns its process id and how to end it.
func start(ctx context.Context, kafka *kafkatest.Kafka, o options, name string) (pid int, kill func(), err error) {
	if name == "java" {
		state, err := os.MkdirTemp("", "odradek-bench-")
		if err != nil {
			return 0, nil, err
		}
		p, err := kafka.Java(ctx, kafkatest.JavaProgram{
			Sources: "integration/bench/testdata/java", Main: "Bench", JVMOptions: []string{"-Xmx1g"},
			Args: []string{o.brokers, o.app, o.mode, o.in, o.out, state},
		})
		if err != nil {
			return 0, nil, errors.Join(err, os.RemoveAll(state))
		}
		return p.Pid(), func() { p.Kill(); os.RemoveAll(state) }, nil
	}
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "-child", name, "-mode", o.mode, "-brokers", o.brokers, "-app", o.app, "-in", o.in, "-out", o.out)
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	return cmd.Process.Pid, func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.Stderr.Write(stderr.Bytes())
	}, nil
}

// odradek is this library.
func odradek(ctx context.Context, o options) error {
	var topology *streams.Topology
	switch o.mode {
	case "map":
		topology = streams.NewTopology()
		streams.AddSource(topology, "source", streams.Consumed[string, []byte]{}, o.in)
		streams.AddProcessor(topology, "upper", func() streams.Processor[string, []byte, string, []byte] { return &upper{} }, "source")
		streams.AddSink(topology, "sink", o.out, streams.Produced[string, []byte]{}, "upper")
	case "count":
		b := streams.NewBuilder()
		streams.Stream[string, []byte](b, o.in).GroupByKey().
			Count(streams.MaterializedWith("counts", serde.String, serde.Int64)).ToStream().To(o.out)
		topology = b.Build()
	default:
		return fmt.Errorf("unknown mode %q", o.mode)
	}
	app, err := streams.NewApp(topology, streams.Config{
		ApplicationID: o.app, Brokers: []string{o.brokers}, Logger: slog.New(slog.DiscardHandler),
	})
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
			if o.mode == "map" {
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
