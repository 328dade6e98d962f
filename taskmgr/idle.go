package taskmgr

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A task that reads several partitions processes their records in the order of their
// times, as far as it can know it: it does not go on while one of them has nothing
// fetched though the broker has more of it, and with max.task.idle.ms also not for
// that long after the broker has no more (KIP-695).

const (
	// maxQueued is how many records of a partition are fetched ahead while its
	// task waits for another one.
	maxQueued = 10_000

	// idleWait is how long a thread waits before it looks again at a task that
	// waits for records.
	idleWait = 50 * time.Millisecond
)

// waits says whether the task has to wait for records of a partition that has none
// queued.
func (t *task) waits() bool {
	if t.maxIdle < 0 {
		return false
	}
	waits := false
	for _, in := range t.inputs {
		switch {
		case len(in.queue) > 0:
			in.idleUntil = 0
		case in.behind():
			waits = true
		case t.maxIdle > 0 && in.idleUntil == 0:
			in.idleUntil = t.ctx.systemTime + t.maxIdle.Milliseconds()
			waits = true
		case t.ctx.systemTime < in.idleUntil:
			waits = true
		}
	}
	return waits
}

// behind says whether the broker has records of the partition that were not
// fetched, or that isn't known.
func (in *input) behind() bool { return in.fetched < in.end || in.end < 0 }

// take queues what was fetched.
func (in *input) take(p *kgo.FetchTopicPartition) {
	in.end = max(in.end, endOf(p, in.task.storage.exactlyOnce))
	n := len(p.Records)
	if n == 0 {
		return
	}
	in.fetched, in.heard = p.Records[n-1].Offset+1, time.Now()
	if len(in.queue) == 0 {
		in.queue = p.Records
	} else {
		in.queue = append(in.queue, p.Records...)
	}
}

// endOf is where a partition ends, of which something was fetched; committed: where
// what is committed ends.
func endOf(p *kgo.FetchTopicPartition, committed bool) int64 {
	if committed {
		return p.LastStableOffset
	}
	return p.HighWatermark
}

// listEnds looks up where partitions end, likewise.
func listEnds(ctx context.Context, adm *kadm.Client, committed bool, topics []string) (kadm.ListedOffsets, error) {
	if committed {
		return adm.ListCommittedOffsets(ctx, topics...)
	}
	return adm.ListEndOffsets(ctx, topics...)
}

// listInputs looks up where partitions begin and end that are to be read together
// with others of their tasks.
func (t *Thread) listInputs(ctx context.Context, of map[*task][]*input) error {
	var topics []string
	var inputs []*input
	for task, more := range of {
		all := slices.Concat(task.inputs, more)
		if len(all) < 2 || t.cfg.MaxTaskIdle < 0 {
			continue
		}
		for _, in := range all {
			if in.end < 0 {
				topics, inputs = append(topics, in.topic), append(inputs, in)
			}
		}
	}
	if len(topics) == 0 {
		return nil
	}
	adm := kadm.NewClient(t.client)
	starts, err := adm.ListStartOffsets(ctx, topics...)
	if err != nil {
		return err
	}
	ends, err := listEnds(ctx, adm, t.storage.exactlyOnce, topics)
	if err != nil {
		return err
	}
	for _, in := range inputs {
		end, ok := ends.Lookup(in.topic, in.partition)
		if !ok || end.Err != nil {
			continue // it is known with the first records
		}
		in.end, in.heard = end.Offset, time.Now()
		start, _ := starts.Lookup(in.topic, in.partition)
		in.fetched = max(in.fetched, in.next, start.Offset)
	}
	return nil
}

// begin is where a partition without a committed offset begins.
func (t *Thread) begin(ctx context.Context, in *input) (kgo.Offset, error) {
	reset := in.task.spec.reset(in.topic)
	if reset == nil {
		reset = t.cfg.Reset
	}
	from, ok := reset(time.Now())
	if !ok {
		return from, &NoOffsetError{Topic: in.topic, Partition: in.partition}
	}
	if in.end < 0 {
		return from, nil
	}
	switch at := from.EpochOffset().Offset; {
	case at == -1: // the end
		in.fetched = in.end
		return kgo.NewOffset().At(in.end), nil
	case at >= 0: // a time
		listed, err := kadm.NewClient(t.client).ListOffsetsAfterMilli(ctx, at, in.topic)
		if err != nil {
			return from, err
		}
		if after, ok := listed.Lookup(in.topic, in.partition); ok && after.Err == nil {
			in.fetched = after.Offset
			return kgo.NewOffset().At(after.Offset), nil
		}
	}
	return from, nil
}

// wakeIdle puts the tasks that need not wait any more among those that have records
// to process.
func (t *Thread) wakeIdle(ctx context.Context) {
	idle := t.idle
	t.idle = nil
	now := time.Now()
	for _, task := range idle {
		task.ctx.SetSystemTime(now.UnixMilli())
		for _, in := range task.inputs {
			if len(in.queue) == 0 && in.end >= 0 && in.behind() && now.Sub(in.heard) >= probeAfter {
				t.probe(ctx, in)
			}
		}
		if task.waits() {
			t.idle = append(t.idle, task)
		} else {
			t.queued = append(t.queued, task)
		}
	}
}

// probe looks whether what the broker has more of a partition has records.
func (t *Thread) probe(ctx context.Context, in *input) {
	in.heard = time.Now()
	next, err := probe(ctx, t.client, in.topicID, in.topic, in.partition, in.fetched, in.end)
	if err != nil {
		t.log.Debug("a look at a source topic that nothing comes of met an error", "topic", in.topic, "partition", in.partition, "err", err)
	}
	in.fetched = max(in.fetched, next)
}

// hold stops fetching of partitions that have much queued while their tasks wait, and
// lets it go on when that has been processed.
func (t *Thread) hold(task *task) {
	for _, in := range task.inputs {
		if held := len(in.queue) >= maxQueued; held != in.held {
			in.held = held
			partition := map[string][]int32{in.topic: {in.partition}}
			if held {
				t.client.PauseFetchPartitions(partition)
			} else {
				t.client.ResumeFetchPartitions(partition)
			}
		}
	}
}
