package streams

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/taskmgr"
)

// pipe runs a topology as Java's TopologyTestDriver does: all of it as one task
// with one partition of each topic, repartition topics piped back at once.
type pipe struct {
	recorder
	inputs map[string]*pipeInput
	queued byHead
	stores map[string]state.Store
}

// pipeInput is the queue of one source topic.
type pipeInput struct {
	source taskmgr.Source
	ctx    *taskmgr.Context
	queue  []*kgo.Record
	time   int64 // of the partition
	head   int64 // the time of queue[0]
}

func newPipe(t *testing.T, c *compiled) *pipe {
	t.Helper()
	p := &pipe{inputs: make(map[string]*pipeInput), stores: make(map[string]state.Store)}
	for id, sub := range c.topology {
		var stores []state.Store
		for _, spec := range sub.Stores {
			s := spec.New()
			var open state.OpenContext
			if spec.Changelog != "" && !spec.ChangelogIsSource {
				open.Changelog = recordedChangelog{&p.recorder, spec.Changelog}
			}
			if err := s.Open(open); err != nil {
				t.Fatal(err)
			}
			stores = append(stores, s)
			p.stores[s.Name()] = s
		}
		ctx := taskmgr.NewContext(membership.TaskID{Subtopology: id}, &p.recorder, stores...)
		g, err := sub.NewGraph(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
		for _, topic := range sub.SourceTopics {
			p.inputs[topic] = &pipeInput{source: g.Source(topic), ctx: ctx, time: -1}
		}
	}
	return p
}

// run processes one input record and what comes of it, and returns all that was
// produced, in order.
func (p *pipe) run(rec *kgo.Record) ([]*kgo.Record, error) {
	p.records = nil
	if err := p.add(rec); err != nil {
		return nil, err
	}
	seen := 0
	for len(p.queued) > 0 {
		in := heap.Pop(&p.queued).(*pipeInput)
		rec := in.queue[0]
		in.queue = in.queue[1:]
		in.time = max(in.time, in.head)
		head := in.head
		if err := p.offer(in); err != nil {
			return nil, err
		}
		in.ctx.Processing(rec, head)
		if err := in.source.Process(rec, head); err != nil {
			return nil, err
		}
		for ; seen < len(p.records); seen++ {
			if err := p.add(p.records[seen]); err != nil {
				return nil, err
			}
		}
	}
	return p.records, nil
}

// add queues a record if its topic is a source.
func (p *pipe) add(rec *kgo.Record) error {
	in := p.inputs[rec.Topic]
	if in == nil {
		return nil
	}
	in.queue = append(in.queue, rec)
	if len(in.queue) > 1 {
		return nil
	}
	return p.offer(in)
}

// offer puts an input that has records among those to process from.
func (p *pipe) offer(in *pipeInput) (err error) {
	for len(in.queue) > 0 {
		if in.head, err = in.source.Timestamp(in.queue[0], in.time); err != nil {
			return err
		}
		if in.head >= 0 {
			heap.Push(&p.queued, in)
			return nil
		}
		in.queue = in.queue[1:]
	}
	return nil
}

// byHead is a heap of inputs by the time of their first records. Java's
// PriorityQueue orders equal times as container/heap does.
type byHead []*pipeInput

func (h byHead) Len() int           { return len(h) }
func (h byHead) Less(i, j int) bool { return h[i].head < h[j].head }
func (h byHead) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byHead) Push(x any)        { *h = append(*h, x.(*pipeInput)) }
func (h *byHead) Pop() any {
	last := len(*h) - 1
	in := (*h)[last]
	*h = (*h)[:last]
	return in
}

// checkPipe runs the vector's input and compares all that is produced, in order,
// and what is in the stores at the end.
func checkPipe(t *testing.T, c *compiled, v vector) {
	t.Helper()
	p := newPipe(t, c)
	for i, step := range v.Pipe.Steps {
		got, err := p.run(step.Input.record(t))
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		var want []*kgo.Record
		for _, r := range step.Output {
			want = append(want, r.record(t))
		}
		if dump(got) != dump(want) {
			t.Errorf("step %d produced\n%sin Java\n%s", i, dump(got), dump(want))
		}
	}
	if len(p.stores) != len(v.Pipe.FinalStores) {
		t.Errorf("%d stores, in Java %d", len(p.stores), len(v.Pipe.FinalStores))
	}
	for name, want := range v.Pipe.FinalStores {
		got := contents(t, p.stores[name])
		if len(got) != len(want.Entries) {
			t.Errorf("store %q has %v, in Java %d entries", name, got, len(want.Entries))
		}
		for _, e := range want.Entries {
			if got, want := got[string(e.Key)], compact(t, e.Value); got != want {
				t.Errorf("store %q has %s: %s, in Java %s", name, e.Key, got, want)
			}
		}
	}
}

// contents are the entries of a key-value store of whatever types as JSON, in the
// form of the vectors.
func contents(t *testing.T, s state.Store) map[string]string {
	entries := make(map[string]string)
	scan := reflect.ValueOf(s).MethodByName("Range")
	it := scan.Call([]reflect.Value{reflect.Zero(scan.Type().In(0)), reflect.Zero(scan.Type().In(1))})[0]
	get := func(method string) any { return it.MethodByName(method).Call(nil)[0].Interface() }
	for get("Next").(bool) {
		value := get("Value")
		if it.MethodByName("Timestamp").IsValid() {
			value = map[string]any{"value": value, "timestamp": get("Timestamp")}
		}
		entries[marshal(t, get("Key"))] = marshal(t, value)
	}
	if err := get("Close"); err != nil {
		t.Error(err)
	}
	return entries
}

func marshal(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func compact(t *testing.T, data json.RawMessage) string {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return marshal(t, v)
}

// recorder is a Collector that keeps what is sent.
type recorder struct{ records []*kgo.Record }

func (*recorder) Grab() []byte         { return make([]byte, 0, 16) }
func (*recorder) Keep(b []byte) []byte { return b }

func (r *recorder) Send(topic string, partition int32, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	r.records = append(r.records, &kgo.Record{
		Topic: topic, Partition: partition, Key: key, Value: value, Timestamp: time.UnixMilli(timestamp), Headers: headers,
	})
	return nil
}

func (r *recorder) SendPartitioned(topic string, choose func(int) int32, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	return r.Send(topic, choose(1), key, value, timestamp, headers)
}

func (r *recorder) Log(to *taskmgr.Changelog, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	return r.Send(to.Topic, to.Partition, key, value, timestamp, headers)
}

type recordedChangelog struct {
	out   *recorder
	topic string
}

func (c recordedChangelog) Append(key, value []byte, timestamp int64, headers []state.Header) error {
	var out []kgo.RecordHeader
	for _, h := range headers {
		out = append(out, kgo.RecordHeader(h))
	}
	return c.out.Send(c.topic, 0, bytes.Clone(key), bytes.Clone(value), timestamp, out)
}
