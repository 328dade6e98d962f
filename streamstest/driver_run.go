package streamstest

import (
	"bytes"
	"container/heap"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/taskmgr"
)

// driverInput is the only partition of a topic that the topology reads.
type driverInput struct {
	task   *driverTask
	source taskmgr.Source
	queue  []*kgo.Record
	head   int64 // the time of queue[0]
	time   int64 // the highest record time yet, -1 before the first
	next   int64 // the offset of the next record that comes in
}

func newDriverInput(task *driverTask, topic string) *driverInput {
	return &driverInput{task: task, source: task.graph.Source(topic), time: -1}
}

// input returns the partition of a topic, nil if the topology does not read it.
func (d *Driver) input(topic string) *driverInput {
	if in := d.inputs[topic]; in != nil {
		return in
	}
	for _, task := range d.tasks {
		if slices.ContainsFunc(task.patterns, func(p taskmgr.SourcePattern) bool { return p.Match(topic) }) {
			d.inputs[topic] = newDriverInput(task, topic)
			return d.inputs[topic]
		}
	}
	return nil
}

// complete processes all that is queued, and all that comes of it.
func (d *Driver) complete() error {
	for {
		if err := d.capture(); err != nil {
			return err
		}
		if len(d.queued) == 0 {
			return nil
		}
		if err := d.step(); err != nil {
			return err
		}
	}
}

// step processes the next record.
func (d *Driver) step() error {
	in := heap.Pop(&d.queued).(*driverInput)
	rec, timestamp := in.queue[0], in.head
	in.queue = in.queue[1:]
	in.time = max(in.time, timestamp)
	if err := d.offer(in); err != nil {
		return err
	}
	in.task.ctx.Processing(rec, timestamp)
	if err := in.source.Process(rec, timestamp); err != nil {
		if err := d.handle(in, rec, err); err != nil {
			return err
		}
	}
	return in.task.punctuate(taskmgr.StreamTime)
}

// punctuateAll makes the calls that are due by the wall clock, and processes what comes of them.
func (d *Driver) punctuateAll() error {
	if d.global != nil {
		d.global.SetSystemTime(d.now.UnixMilli())
	}
	for _, task := range d.tasks {
		task.ctx.SetSystemTime(d.now.UnixMilli())
		if err := task.punctuate(taskmgr.WallClockTime); err != nil {
			return err
		}
	}
	return d.complete()
}

// punctuate makes the calls that are due, and then commits.
func (t *driverTask) punctuate(by taskmgr.PunctuationType) error {
	if _, err := t.ctx.Punctuate(by); err != nil {
		return err
	}
	return t.flush()
}

// flush is what a commit does with stores.
func (t *driverTask) flush() error {
	t.ctx.Processing(nil, 0)
	return taskmgr.FlushStores(t.stores)
}

// capture hands what was sent to the output topics, and to the topics that the topology reads itself.
func (d *Driver) capture() error {
	for ; d.captured < len(d.out.records); d.captured++ {
		rec := d.out.records[d.captured]
		d.outputs[rec.Topic] = append(d.outputs[rec.Topic], rec)
		if err := d.take(rec); err != nil {
			d.captured++
			return err
		}
	}
	return nil
}

// reads says whether the topology reads a topic.
func (d *Driver) reads(topic string) bool { return d.global.reads(topic) || d.input(topic) != nil }

// take gives a record to what reads its topic, if anything does.
func (d *Driver) take(rec *kgo.Record) error {
	if d.global.reads(rec.Topic) {
		if err := d.global.process(rec); err != nil {
			return err
		}
	}
	if in := d.input(rec.Topic); in != nil {
		return d.enqueue(in, rec)
	}
	return nil
}

// enqueue queues a copy of a record.
func (d *Driver) enqueue(in *driverInput, rec *kgo.Record) error {
	read := *rec
	read.Partition, read.Offset = 0, in.next
	in.next++
	in.queue = append(in.queue, &read)
	if len(in.queue) > 1 {
		return nil
	}
	return d.offer(in)
}

// offer puts an input that has records among those to process from.
func (d *Driver) offer(in *driverInput) (err error) {
	for len(in.queue) > 0 {
		rec := in.queue[0]
		if in.head, err = in.source.Timestamp(rec, in.time); err != nil {
			if err := d.handle(in, rec, err); err != nil {
				in.queue = in.queue[1:]
				return errors.Join(err, d.offer(in))
			}
		} else if in.head >= 0 {
			heap.Push(&d.queued, in)
			return nil
		}
		in.queue = in.queue[1:]
	}
	return nil
}

// handle asks what to do about a record that could not be processed. It returns nil to go on.
func (d *Driver) handle(in *driverInput, rec *kgo.Record, err error) error {
	var store *state.Error
	if !errors.As(err, &store) {
		err = d.compiled.OnRecordError(in.task.ctx.Task, rec, err, &d.out)
	}
	if err == nil {
		return nil
	}
	return &taskmgr.TaskError{Task: in.task.ctx.Task, Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Err: err}
}

// byHead is a heap of inputs by the time of their first records. Java's PriorityQueue orders equal times as
// container/heap does.
type byHead []*driverInput

func (h byHead) Len() int           { return len(h) }
func (h byHead) Less(i, j int) bool { return h[i].head < h[j].head }
func (h byHead) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byHead) Push(x any)        { *h = append(*h, x.(*driverInput)) }
func (h *byHead) Pop() any {
	last := len(*h) - 1
	in := (*h)[last]
	*h = (*h)[:last]
	return in
}

// collector is a taskmgr.Collector that keeps what is sent.
type collector struct{ records []*kgo.Record }

func (*collector) Grab() []byte         { return make([]byte, 0, 16) }
func (*collector) Keep(b []byte) []byte { return b }

func (c *collector) Send(topic string, partition int32, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	rec := &kgo.Record{Topic: topic, Partition: partition, Key: key, Value: value, Headers: headers}
	if timestamp != state.NoTimestamp {
		rec.Timestamp = time.UnixMilli(timestamp)
	}
	c.records = append(c.records, rec)
	return nil
}

func (*collector) Partitions(string) (int, error) { return 1, nil }

func (c *collector) Log(to *taskmgr.Changelog, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	return c.Send(to.Topic, to.Partition, key, value, timestamp, headers)
}

// changelog appends the changes of a store to its changelog topic.
type changelog struct {
	out   *collector
	topic string
}

func (c changelog) Append(key, value []byte, timestamp int64, headers []state.Header) error {
	var out []kgo.RecordHeader
	for _, h := range headers {
		out = append(out, kgo.RecordHeader(h))
	}
	return c.out.Send(c.topic, 0, bytes.Clone(key), bytes.Clone(value), timestamp, out)
}

// writtenTopics are the topics that a topology can write to: sinks, changelogs and dead letters are. It is nil where
// that isn't known, because a sink chooses the topic of each record.
func writtenTopics(c *streams.Compiled, deadLetters string) map[string]bool {
	written := make(map[string]bool)
	if deadLetters != "" {
		written[deadLetters] = true
	}
	for _, sub := range c.Description.Subtopologies {
		for _, n := range sub.Nodes {
			switch {
			case n.SinkTopic != nil:
				written[*n.SinkTopic] = true
			case n.NodeType == sinkNodeType:
				return nil
			}
		}
	}
	for _, sub := range c.Heartbeat.Subtopologies {
		for _, topic := range sub.StateChangelogTopics {
			written[topic.Topic] = true
		}
	}
	return written
}

// sinkNodeType is the type of a sink in a topology description (KIP-1331).
const sinkNodeType = 3
