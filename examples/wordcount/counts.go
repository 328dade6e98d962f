package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
)

// printChanges prints the counts that reach the output topic from given offsets
// on, until ctx ends.
func printChanges(ctx context.Context, brokers []string, from kadm.ListedOffsets, w io.Writer) error {
	offsets := make(map[string]map[int32]kgo.Offset)
	from.Each(func(o kadm.ListedOffset) {
		if offsets[o.Topic] == nil {
			offsets[o.Topic] = make(map[int32]kgo.Offset)
		}
		offsets[o.Topic][o.Partition] = kgo.NewOffset().At(o.Offset)
	})
	return consume(ctx, brokers, offsets, func(word string, count int64, _ *kgo.Record) bool {
		fmt.Fprintf(w, "%s\t%d\n", word, count)
		return true
	})
}

// readTotals returns the last count of each word in the output topic.
func readTotals(ctx context.Context, brokers []string, client *kgo.Client, topic string) (map[string]int64, error) {
	adm := kadm.NewClient(client)
	starts, err := listOffsets(ctx, adm.ListStartOffsets, topic)
	if err != nil {
		return nil, err
	}
	ends, err := listOffsets(ctx, adm.ListEndOffsets, topic)
	if err != nil {
		return nil, err
	}
	offsets := map[string]map[int32]kgo.Offset{topic: {}}
	left := make(map[int32]int64)
	ends.Each(func(end kadm.ListedOffset) {
		if start, _ := starts.Lookup(topic, end.Partition); start.Offset < end.Offset {
			offsets[topic][end.Partition] = kgo.NewOffset().At(start.Offset)
			left[end.Partition] = end.Offset
		}
	})
	totals := make(map[string]int64)
	if len(left) == 0 {
		return totals, nil
	}
	err = consume(ctx, brokers, offsets, func(word string, count int64, rec *kgo.Record) bool {
		totals[word] = count
		if end, ok := left[rec.Partition]; ok && rec.Offset+1 >= end {
			delete(left, rec.Partition)
		}
		return len(left) > 0
	})
	return totals, err
}

// consume calls use for each count from offsets on, until it returns false or
// ctx ends.
func consume(ctx context.Context, brokers []string, offsets map[string]map[int32]kgo.Offset, use func(string, int64, *kgo.Record) bool) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumePartitions(offsets))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err0(); err != nil {
			return fmt.Errorf("read the counts: %w", err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			rec := it.Next()
			count, err := serde.Int64.Decode(rec.Value)
			if err != nil {
				return fmt.Errorf("read the count at %s-%d@%d: %w", rec.Topic, rec.Partition, rec.Offset, err)
			}
			if !use(string(rec.Key), count, rec) {
				return nil
			}
		}
	}
}

// printTotals prints word<TAB>count, sorted by word in byte order.
func printTotals(w io.Writer, totals map[string]int64) error {
	out := bufio.NewWriter(w)
	for _, word := range slices.Sorted(maps.Keys(totals)) {
		fmt.Fprintf(out, "%s\t%d\n", word, totals[word])
	}
	return out.Flush()
}
