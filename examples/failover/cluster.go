package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/mirror"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// mirrorKeys are the API keys that the embedded clusters have for the requests of
// KIP-1279. Any will do: they are not assigned yet.
var mirrorKeys = mirror.Keys{ReadMirrorStates: 1000, WriteMirrorStates: 1001}

// cluster is an embedded Kafka cluster, and what runs on it.
type cluster struct {
	broker *streamstest.Broker
	client *kgo.Client
	states *mirror.Client
	log    *slog.Logger
}

// startCluster starts a cluster that has some topics.
func startCluster(log *slog.Logger, topics ...string) (_ *cluster, err error) {
	c := &cluster{log: log}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	c.broker, err = streamstest.NewBroker(
		streamstest.WithMirrorStates(mirrorKeys),
		streamstest.WithKfake(
			kfake.SeedTopics(2, topics...),
			// A log that was compacted has gaps, which a mirror of our kind can't copy.
			kfake.BrokerConfigs(map[string]string{"log.cleaner.backoff.ms": fmt.Sprint(time.Hour.Milliseconds())}),
		),
	)
	if err != nil {
		return nil, err
	}
	if c.client, err = kgo.NewClient(
		kgo.SeedBrokers(c.broker.Addrs()...),
		mirrorKeys.ClientOption(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.MetadataMinAge(50*time.Millisecond), // new topics are soon written to
	); err != nil {
		return nil, err
	}
	c.states, err = mirror.NewClient(c.client, mirror.Config{Keys: mirrorKeys, Logger: log})
	return c, err
}

// stop ends the cluster at once, as a power cut does.
func (c *cluster) stop() {
	if c.client != nil {
		c.client.Close()
	}
	if c.broker != nil {
		c.broker.Close()
	}
}

// startApp starts the application on the cluster. stop ends it, and returns why it
// ended before, if it did.
func (c *cluster) startApp() (stop func() error, err error) {
	app, err := streams.NewApp(topology(), streams.Config{
		ApplicationID:  applicationID,
		Brokers:        c.broker.Addrs(),
		CommitInterval: 20 * time.Millisecond,
		CloseTimeout:   200 * time.Millisecond, // its cluster may be gone
		Logger:         c.log,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

// waitIdle waits until the application has processed and committed all that there
// is, and returns where it stands.
func (c *cluster) waitIdle(ctx context.Context) (mirror.Checkpoint, error) {
	for {
		checkpoint, err := mirror.Capture(ctx, c.client, applicationID, topics)
		if err != nil && ctx.Err() != nil || err == nil && checkpoint.Exact {
			return checkpoint, err
		}
		select {
		case <-ctx.Done():
			return checkpoint, errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ends are where the partitions of a topic end.
func (c *cluster) ends(ctx context.Context, topic string) (map[int32]int64, error) {
	listed, err := kadm.NewClient(c.client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("list the ends of %s: %w", topic, err)
	}
	ends := make(map[int32]int64)
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}

// read returns the records of a partition from one offset to another, exclusive.
func (c *cluster) read(ctx context.Context, topic string, partition int32, from, to int64) ([]*kgo.Record, error) {
	if from >= to {
		return nil, nil
	}
	reader, err := kgo.NewClient(
		kgo.SeedBrokers(c.broker.Addrs()...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(from)}}),
	)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	var records []*kgo.Record
	for {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read %s-%d: %w", topic, partition, err)
		}
		for _, rec := range fetches.Records() {
			if rec.Offset < to {
				records = append(records, rec)
			}
			if rec.Offset >= to-1 {
				return records, nil
			}
		}
	}
}
