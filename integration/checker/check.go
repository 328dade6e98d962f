package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

const (
	application = "checker"
	partitions  = 4
	userCount   = 1000
	groupCount  = 10
)

// check runs the pipeline, makes faults, and compares what comes of it with what has
// to.
func check(ctx context.Context, o options) (err error) {
	if reason, ok := kafkatest.Available(); !ok {
		return errors.New(reason)
	}
	dir, err := os.MkdirTemp("", "odradek-checker-")
	if err != nil {
		return err
	}
	config := kafkatest.Config{Dir: filepath.Join(dir, "kafka"), Nodes: o.nodes}
	if o.nodes > 1 { // the others soon do without a broker that is killed
		config.BrokerConfig = kafkatest.MissedSoon
	}
	kafka, err := kafkatest.Start(ctx, config)
	if err != nil {
		return err
	}
	defer kafka.Close()
	proxy, err := newProxy()
	if err != nil {
		return err
	}
	defer proxy.close()
	w, err := newWorkload(ctx, kafka, o)
	if err != nil {
		return err
	}
	defer w.client.Close()
	b := &breaker{kafka: kafka, proxy: proxy, client: w.client, adm: w.adm, rand: rand.New(rand.NewPCG(o.seed, 0)), made: make(map[string]int)}
	defer func() {
		for _, c := range b.children {
			c.Kill()
		}
		if err == nil {
			kafka.Close()
			err = os.RemoveAll(dir)
		} else {
			o.say("what the processes and Kafka have on disk, and their logs, are left in %s", dir)
		}
	}()
	for i := range o.processes {
		process := filepath.Join(dir, fmt.Sprint("process-", i+1))
		c := &kafkatest.Child{Log: process + ".log", Job: job{
			Application: application, Proxy: proxy.addr(), Dir: process,
			Brokers: kafka.Addrs(), Users: "users", In: "in", Out: "out", Guarantee: o.guarantee, Cache: o.cache, Verbose: o.verbose,
		}}
		b.children = append(b.children, c)
		if err := c.Start(); err != nil {
			return err
		}
	}
	o.say("%s, %d processes, seed %d", o.guarantee, o.processes, o.seed)
	began := time.Now()
	for b.total() < o.faults || w.sent < o.records {
		if err := w.send(ctx, max(1, o.records/max(1, o.faults))); err != nil {
			return err
		}
		if b.total() < o.faults {
			if err := b.fault(ctx); err != nil {
				return err
			}
			if b.total()%10 == 0 {
				o.say("%v: %d records, %d faults", time.Since(began).Round(time.Second), w.sent, b.total())
			}
		}
		for _, c := range b.children {
			if err := c.Lives(); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if err := w.sendEach(ctx); err != nil { // so that each count is looked at after the last fault
		return err
	}
	read, err := w.verify(ctx, o)
	for _, what := range slices.Sorted(maps.Keys(b.made)) {
		o.say("%5d  %s", b.made[what], what)
	}
	o.say("%d faults made, %d records processed, %d records checked, in %v", b.total(), w.sent, read, time.Since(began).Round(time.Second))
	return err
}

// workload is what is sent, and what has to come of it.
type workload struct {
	client *kgo.Client
	failed *kgo.FirstErrPromise
	adm    *kadm.Client
	rand   *rand.Rand
	keys   int
	sent   int
	want   map[string]int64 // how often each pair was sent
}

func newWorkload(ctx context.Context, kafka *kafkatest.Kafka, o options) (*workload, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...), kgo.UnknownTopicRetries(-1)) // as while a broker restarts
	if err != nil {
		return nil, err
	}
	w := &workload{client: client, failed: kgo.AbortingFirstErrPromise(client), adm: kadm.NewClient(client), rand: rand.New(rand.NewPCG(o.seed, 1)), keys: o.keys, want: make(map[string]int64)}
	if err := w.prepare(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return w, nil
}

// prepare makes the topics, the group's settings and the table of users.
func (w *workload) prepare(ctx context.Context) error {
	created, err := w.adm.CreateTopics(ctx, partitions, -1, nil, "users", "in", "out")
	if err = errors.Join(err, created.Error()); err != nil {
		return err
	}
	if err := kafkatest.ConfigureGroup(ctx, w.client, application, map[string]string{
		"streams.session.timeout.ms":    fmt.Sprint(sessionTimeout.Milliseconds()),
		"streams.heartbeat.interval.ms": "300",
		"streams.num.standby.replicas":  "1",
	}); err != nil {
		return err
	}
	var users []*kgo.Record
	for i := range userCount {
		users = append(users, &kgo.Record{Topic: "users", Key: user(i), Value: []byte(group(i)), Timestamp: time.UnixMilli(1)})
	}
	return w.client.ProduceSync(ctx, users...).FirstErr()
}

func user(i int) []byte    { return fmt.Appendf(nil, "user-%d", i) }
func group(i int) string   { return fmt.Sprintf("group-%d ", i%groupCount) }
func (w *workload) n() int { return max(1, w.keys/groupCount) }

// send sends n records.
func (w *workload) send(ctx context.Context, n int) error {
	for range n {
		w.one(ctx, w.rand.IntN(userCount), w.rand.IntN(w.n()))
	}
	return ctx.Err()
}

// sendEach sends one for each pair, and waits until all is sent.
func (w *workload) sendEach(ctx context.Context) error {
	for g := range groupCount {
		for v := range w.n() {
			w.one(ctx, g, v)
		}
	}
	if err := w.failed.Err(); err != nil {
		return fmt.Errorf("send the input: %w", err)
	}
	return nil
}

func (w *workload) one(ctx context.Context, u, v int) {
	value := fmt.Sprintf("value-%d", v)
	w.want[group(u)+value]++
	number := kgo.RecordHeader{Key: numberHeader, Value: binary.BigEndian.AppendUint64(nil, uint64(w.sent))}
	w.sent++
	w.client.Produce(ctx, &kgo.Record{Topic: "in", Key: user(u), Value: []byte(value), Headers: []kgo.RecordHeader{number}}, w.failed.Promise())
}
