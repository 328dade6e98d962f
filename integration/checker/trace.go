package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// numberHeader has the number of an input record, which goes along with what comes of
// it.
const numberHeader = "number"

func number(r *kgo.Record) (n uint64, ok bool) {
	for _, h := range r.Headers {
		if h.Key == numberHeader && len(h.Value) == 8 {
			return binary.BigEndian.Uint64(h.Value), true
		}
	}
	return 0, false
}

// trace says how far the input records have come of which there is no output: which
// they are, and where they were sent on, in transactions that were aborted.
func (w *workload) trace(ctx context.Context) (lines []error) {
	const repartition = application + "-pairs-repartition"
	missing := make(map[uint64]*kgo.Record)
	aborted := make(map[uint64][]*kgo.Record)
	passed := make(map[uint64]*kgo.Record) // the repartition topic, committed
	for _, step := range []struct {
		topic string
		level kgo.IsolationLevel
		see   func(uint64, *kgo.Record)
	}{
		{"in", kgo.ReadCommitted(), func(n uint64, r *kgo.Record) { missing[n] = r }},
		{"out", kgo.ReadCommitted(), func(n uint64, _ *kgo.Record) { delete(missing, n) }},
		{repartition, kgo.ReadCommitted(), func(n uint64, r *kgo.Record) {
			if missing[n] != nil {
				passed[n] = r
			}
		}},
		{repartition, kgo.ReadUncommitted(), func(n uint64, r *kgo.Record) {
			if missing[n] != nil && passed[n] == nil {
				aborted[n] = append(aborted[n], r)
			}
		}},
	} {
		if _, err := w.read(ctx, step.topic, step.level, func(r *kgo.Record) {
			if n, ok := number(r); ok {
				step.see(n, r)
			}
		}); err != nil {
			return append(lines, fmt.Errorf("trace what is missing: %w", err))
		}
	}
	var records []*kgo.Record
	for _, r := range missing {
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b *kgo.Record) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	for i, r := range records {
		if i == 200 {
			return append(lines, fmt.Errorf("and %d more are missing", len(records)-i))
		}
		n, _ := number(r)
		line := fmt.Sprintf("missing: number %d, in-%d@%d of %v", n, r.Partition, r.Offset, r.Timestamp.Format("15:04:05.000"))
		if p := passed[n]; p != nil {
			line += "; was sent on as " + place(p)
		}
		for _, a := range aborted[n] {
			line += "; aborted was " + place(a)
		}
		lines = append(lines, fmt.Errorf("%s", line))
	}
	return lines
}

func place(r *kgo.Record) string {
	return fmt.Sprintf("%s-%d@%d by producer %d epoch %d", r.Topic, r.Partition, r.Offset, r.ProducerID, r.ProducerEpoch)
}
