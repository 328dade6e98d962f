package main

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/mirror"
)

// mirrorName is the name under which the mirror keeps its states.
const mirrorName = "a-to-b"

// copier mirrors cluster A on cluster B, as brokers with KIP-1279 do. It runs where
// B is.
//
// Inputs are copied as their records come. Internal topics are copied from one
// exact checkpoint to the next, and all records are fetched before the first one is
// written: A may die at any time, and on B they still end where a checkpoint says.
type copier struct {
	from, to   *cluster
	checkpoint mirror.Checkpoint // the last one that is copied
}

// createTopics makes internal topics on B as they are on A.
func (c *copier) createTopics(ctx context.Context) error {
	from, to := kadm.NewClient(c.from.client), kadm.NewClient(c.to.client)
	for _, topic := range []string{repartition, changelog} {
		details, err := from.ListTopics(ctx, topic)
		if err == nil {
			err = details.Error()
		}
		if err != nil {
			return fmt.Errorf("look at %s: %w", topic, err)
		}
		described, err := from.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return fmt.Errorf("look at the configs of %s: %w", topic, err)
		}
		configs := make(map[string]*string)
		for _, config := range described[0].Configs {
			if config.Source.String() == "DYNAMIC_TOPIC_CONFIG" {
				configs[config.Key] = config.Value
			}
		}
		if _, err := to.CreateTopic(ctx, int32(len(details[topic].Partitions)), 1, configs, topic); err != nil {
			return fmt.Errorf("create %s on the mirror: %w", topic, err)
		}
	}
	return nil
}

// round copies what there is to copy, and writes states. It reports whether there is
// a new checkpoint.
func (c *copier) round(ctx context.Context) (bool, error) {
	checkpoint, err := mirror.Capture(ctx, c.from.client, applicationID, topics)
	if err != nil {
		return false, err
	}
	// What is committed has to be copied, so inputs are looked at after the
	// checkpoint was taken.
	ends, err := c.from.ends(ctx, input)
	if err != nil {
		return false, err
	}
	records, err := c.fetch(ctx, input, ends)
	if err != nil {
		return false, err
	}
	fresh := checkpoint.Exact && !reflect.DeepEqual(checkpoint, c.checkpoint)
	if fresh {
		for _, topic := range []string{repartition, changelog} {
			more, err := c.fetch(ctx, topic, checkpoint.Ends[topic])
			if err != nil {
				return false, err
			}
			records = append(records, more...)
		}
	}
	if err := c.store(ctx, records); err != nil {
		return false, err
	}
	if fresh {
		c.checkpoint = checkpoint
	}
	return fresh, writeStates(ctx, c.to, mirror.Mirroring)
}

// fetch returns the records of a topic before given ends that B doesn't have.
func (c *copier) fetch(ctx context.Context, topic string, ends map[int32]int64) ([]*kgo.Record, error) {
	have, err := c.to.ends(ctx, topic)
	if err != nil {
		return nil, err
	}
	var records []*kgo.Record
	for _, partition := range slices.Sorted(maps.Keys(ends)) {
		some, err := c.from.read(ctx, topic, partition, have[partition], ends[partition])
		if err != nil {
			return nil, err
		}
		records = append(records, some...)
	}
	return records, nil
}

// store writes records of A to B, where they get the offsets that they had.
func (c *copier) store(ctx context.Context, records []*kgo.Record) error {
	copies := make([]*kgo.Record, len(records))
	for i, rec := range records {
		copies[i] = &kgo.Record{
			Topic: rec.Topic, Partition: rec.Partition,
			Key: rec.Key, Value: rec.Value, Headers: rec.Headers, Timestamp: rec.Timestamp,
		}
	}
	if err := c.to.client.ProduceSync(ctx, copies...).FirstErr(); err != nil {
		return fmt.Errorf("write to the mirror: %w", err)
	}
	for i, rec := range records {
		if copies[i].Offset != rec.Offset {
			return fmt.Errorf("the record at %s-%d@%d got offset %d on the mirror: the log has a gap", rec.Topic, rec.Partition, rec.Offset, copies[i].Offset)
		}
	}
	return nil
}

// writeStates says on B how far its topics are mirrored.
func writeStates(ctx context.Context, b *cluster, state mirror.State) error {
	states := make(mirror.States)
	for _, topic := range []string{input, repartition, changelog} {
		ends, err := b.ends(ctx, topic)
		if err != nil {
			return err
		}
		for partition, end := range ends {
			states.Set(topic, partition, mirror.Partition{LastMirroredOffset: end - 1, State: state})
		}
	}
	return b.states.Write(ctx, mirrorName, states)
}
