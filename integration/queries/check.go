package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streams"
)

const (
	applicationID = "queries"
	inputTopic    = "events"
	partitions    = 6
	processes     = 3
)

// check runs the application, writes, asks and makes faults, and says what was wrong
// with the answers.
func check(ctx context.Context, o options) (err error) {
	if reason, ok := kafkatest.Available(); !ok {
		return errors.New(reason)
	}
	kafka, err := kafkatest.Start(ctx, kafkatest.Config{})
	if err != nil {
		return err
	}
	defer kafka.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := prepare(ctx, client); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "odradek-queries-")
	if err != nil {
		return err
	}
	b := &breaker{kafka: kafka, rand: rand.New(rand.NewPCG(o.seed, 0)), made: make(map[string]int)}
	defer func() {
		for _, p := range b.processes {
			p.Kill()
		}
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			o.say("what the processes have on disk, and their logs, are left in %s", dir)
		}
	}()
	if err := b.launch(dir, kafka.Addrs(), o.guarantee); err != nil {
		return err
	}
	l, err := newLoad(o, client, b)
	if err != nil {
		return err
	}
	return l.run(ctx)
}

// prepare makes the topic and the group's settings.
func prepare(ctx context.Context, client *kgo.Client) error {
	if _, err := kadm.NewClient(client).CreateTopic(ctx, partitions, 1, nil, inputTopic); err != nil {
		return err
	}
	return kafkatest.ConfigureGroup(ctx, client, applicationID, map[string]string{
		"streams.session.timeout.ms":    fmt.Sprint(sessionTimeout.Milliseconds()),
		"streams.heartbeat.interval.ms": "300",
		"streams.num.standby.replicas":  "1",
	})
}

// launch starts all processes but the last.
func (b *breaker) launch(dir string, brokers []string, guarantee streams.ProcessingGuarantee) error {
	for i := range processes + 1 {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		b.processes = append(b.processes, newProcess(job{
			Brokers: brokers, Address: address, Dir: filepath.Join(dir, fmt.Sprint("process-", i+1)), Guarantee: guarantee,
		}))
		if i < processes {
			if err := b.start(b.processes[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// freeAddress is one that nothing listens on, below those that systems give to clients,
// so that it stays free while its process is not there.
func freeAddress() (string, error) {
	var err error
	for range 100 {
		var listener net.Listener
		if listener, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", 15_000+rand.IntN(17_000))); err == nil {
			return listener.Addr().String(), listener.Close()
		}
	}
	return "", err
}
