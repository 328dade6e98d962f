package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
)

var vocabulary = strings.Fields("the cares of a family man some say the word odradek is of slavonic origin and try to account for it on that basis")

// load produces lines of words.
type load struct {
	to     *cluster
	random *rand.Rand
	sent   int // lines so far
}

func (l *load) produce(ctx context.Context, lines int) error {
	records := make([]*kgo.Record, lines)
	for i := range records {
		words := make([]string, 1+l.random.IntN(6))
		for j := range words {
			words[j] = vocabulary[l.random.IntN(len(vocabulary))]
		}
		records[i] = &kgo.Record{Topic: input, Partition: int32(l.random.IntN(2)), Value: []byte(strings.Join(words, " "))}
	}
	if err := l.to.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("produce lines: %w", err)
	}
	l.sent += lines
	return nil
}

// truth counts the words of all lines that are on the cluster, without the
// application.
func (c *cluster) truth(ctx context.Context) (map[string]int64, error) {
	counts := make(map[string]int64)
	err := c.each(ctx, input, func(rec *kgo.Record) error {
		for _, word := range strings.Fields(string(rec.Value)) {
			counts[word]++
		}
		return nil
	})
	return counts, err
}

// counted are the application's counts, which its changelog has.
func (c *cluster) counted(ctx context.Context) (map[string]int64, error) {
	counts := make(map[string]int64)
	err := c.each(ctx, changelog, func(rec *kgo.Record) error {
		count, err := serde.Int64.Decode(rec.Value)
		counts[string(rec.Key)] = count
		return err
	})
	return counts, err
}

// each calls f for all records of a topic.
func (c *cluster) each(ctx context.Context, topic string, f func(*kgo.Record) error) error {
	ends, err := c.ends(ctx, topic)
	if err != nil {
		return err
	}
	for partition, end := range ends {
		records, err := c.read(ctx, topic, partition, 0, end)
		if err != nil {
			return err
		}
		for _, rec := range records {
			if err := f(rec); err != nil {
				return fmt.Errorf("%s-%d@%d: %w", topic, partition, rec.Offset, err)
			}
		}
	}
	return nil
}
