package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/streams"
)

// patience is how long nothing may come before it counts as lost.
const patience = 2 * time.Minute

// verify reads what is committed of the output until all is there that has to be, and
// of the changelog, and says what is wrong with it. It returns how many records it has
// read.
func (w *workload) verify(ctx context.Context, o options) (read int, err error) {
	exactly := o.guarantee == streams.ExactlyOnceV2
	got := make(map[string]int64)
	open := len(w.want)
	var wrong []error
	err = w.follow(ctx, "out", func(r *kgo.Record) (done bool) {
		read++
		key, n := string(r.Key), int64(binary.BigEndian.Uint64(r.Value))
		if w.want[key] == 0 && len(wrong) < 20 {
			wrong = append(wrong, fmt.Errorf("%q: nobody has sent that (out-%d@%d)", key, r.Partition, r.Offset))
		}
		if exactly && (o.cache && n <= got[key] || !o.cache && n != got[key]+1) && len(wrong) < 20 {
			wrong = append(wrong, fmt.Errorf("%q: count %d follows %d (out-%d@%d)", key, n, got[key], r.Partition, r.Offset))
		}
		if got[key] < w.want[key] && n >= w.want[key] {
			open--
		}
		got[key] = n
		return open == 0
	})
	if err != nil {
		if n, e := w.readAll(ctx, "in", func(*kgo.Record) {}); e != nil || n != w.sent {
			err = errors.Join(err, fmt.Errorf("of %d records sent, the input has %d", w.sent, n), e)
		}
		for key, n := range w.want {
			if got[key] < n && len(wrong) < 20 {
				wrong = append(wrong, fmt.Errorf("%q: %d of %d are counted", key, got[key], n))
			}
		}
		wrong = append(wrong, w.trace(ctx)...)
		return read, errors.Join(append(wrong, err)...)
	}
	if !exactly {
		return read, errors.Join(wrong...)
	}
	// Whatever came after the last count that was waited for is one too many.
	last := make(map[string]int64)
	n, err := w.readAll(ctx, "out", func(r *kgo.Record) { last[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value)) })
	if err != nil {
		return read, err
	}
	if !o.cache && n != w.sent || !maps.Equal(last, w.want) {
		wrong = append(wrong, fmt.Errorf("the output has %d counts of %d records", n, w.sent))
	}
	clear(last)
	n, err = w.readAll(ctx, application+"-counts-changelog", func(r *kgo.Record) { last[string(r.Key)] = int64(binary.BigEndian.Uint64(r.Value)) })
	if read += n; err != nil {
		return read, err
	}
	if !maps.Equal(last, w.want) {
		wrong = append(wrong, errors.New("the changelog doesn't end with the counts"))
	}
	return read, errors.Join(wrong...)
}

// follow reads a topic from its start until done.
func (w *workload) follow(ctx context.Context, topic string, record func(*kgo.Record) (done bool)) error {
	client, err := w.reader(kgo.ConsumeTopics(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	deadline := time.Now().Add(patience)
	for {
		wait, cancel := context.WithDeadline(ctx, deadline)
		fetches := client.PollFetches(wait)
		err := wait.Err()
		cancel()
		if err != nil {
			return fmt.Errorf("nothing comes to %q any more: %w", topic, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			if r.Attrs.IsControl() {
				continue
			}
			deadline = time.Now().Add(patience)
			if record(r) {
				return nil
			}
		}
	}
}

// readAll reads what is committed of a topic now.
func (w *workload) readAll(ctx context.Context, topic string, record func(*kgo.Record)) (n int, err error) {
	return w.read(ctx, topic, kgo.ReadCommitted(), record)
}

// read reads what is in a topic now, up to the first open transaction.
func (w *workload) read(ctx context.Context, topic string, level kgo.IsolationLevel, record func(*kgo.Record)) (n int, err error) {
	ends, err := w.adm.ListCommittedOffsets(ctx, topic)
	if err = errors.Join(err, ends.Error()); err != nil {
		return 0, err
	}
	left := make(map[int32]int64)
	ends.Each(func(end kadm.ListedOffset) {
		if end.Offset > 0 {
			left[end.Partition] = end.Offset
		}
	})
	client, err := w.reader(kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(level))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return n, fmt.Errorf("read %q to its end: %w", topic, ctx.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				n++
				record(r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return n, nil
}

func (w *workload) reader(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(w.client.OptValue(kgo.SeedBrokers).([]string)...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
	}, opts...)...)
}
