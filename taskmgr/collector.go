package taskmgr

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/state"
)

// AnyPartition leaves the partition of a record to the default partitioner:
// murmur2 of the key as in Java, and sticky for a record without a key.
const AnyPartition int32 = -1

// Collector takes the records that tasks send, in order and without waiting until the
// broker has them.
type Collector interface {
	// Grab returns an empty buffer to serialize a key or a value into. It is
	// valid until the next Grab or Keep.
	Grab() []byte

	// Keep takes what was appended to the last grabbed buffer over for a
	// record and returns it.
	Keep(b []byte) []byte

	// Send sends a record. Key and value must not be changed afterwards; nil is
	// null. The timestamp is in milliseconds, or state.NoTimestamp for the time of
	// day. An error is one that an earlier
	// record met: nothing more can be sent.
	Send(topic string, partition int32, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error

	// Partitions is how many partitions a topic has. It waits for the broker where
	// that is not known.
	Partitions(topic string) (int, error)

	// Log sends a record to a changelog, likewise.
	Log(to *Changelog, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error
}

// Changelog is the partition of a changelog topic that a store's changes go to.
type Changelog struct {
	Topic     string
	Partition int32

	// Context makes it the context of its records, by which the producer knows
	// them when they are written.
	context.Context
	written atomic.Int64 // the offset behind the last record that was written
}

const (
	bufferSize = 64 << 10 // shared by the keys and values of about a thousand records
	bufferRoom = 1 << 10  // a grabbed buffer has room for at least that much
	recordSlab = 128      // records allocated at a time
)

// buffer hands out parts of large allocations, so that a record's key and value
// cost none of their own.
type buffer struct{ free []byte }

func (b *buffer) Grab() []byte {
	if cap(b.free) < bufferRoom {
		b.free = make([]byte, 0, bufferSize)
	}
	return b.free[:0]
}

func (b *buffer) Keep(used []byte) []byte {
	n := len(used)
	if n > 0 && cap(b.free) > 0 && &used[0] == &b.free[:1][0] {
		b.free = b.free[n:n:cap(b.free)]
	}
	return used[:n:n]
}

// producer is the Collector of a thread.
type producer struct {
	buffer
	ctx     context.Context // of the thread; its end stops waiting for room
	client  *kgo.Client     // the thread's
	ignore  func(*kgo.Record, error) bool
	records []kgo.Record

	sender  *kgo.Client // sends; client, unless there are transactions
	sent    *sent       // what has become of what it was given
	promise func(*kgo.Record, error)
	txn     *transactions // nil: at least once

	partitions map[string]partitionCount // of the topics that were asked for
}

// sent is what has become of the records that were sent with one client.
type sent struct {
	pending atomic.Int64                 // their promise has not been called
	stored  atomic.Int64                 // the broker has them
	failed  atomic.Pointer[ProduceError] // the first that it has not
	ignored atomic.Pointer[ProduceError] // the first that is done without
}

// newProducer returns a producer that sends with client or, where txn is not nil, in
// transactions. Ignore is Config.OnSendError.
func newProducer(ctx context.Context, client *kgo.Client, txn *transactions, ignore func(*kgo.Record, error) bool) *producer {
	p := &producer{ctx: ctx, client: client, txn: txn, ignore: ignore, partitions: make(map[string]partitionCount)}
	if txn == nil {
		p.sendWith(client)
	} else {
		p.sendWith(nil) // it comes with the first transaction
	}
	return p
}

// sendWith has records sent with client from now on. Whatever becomes of those that
// were sent with another does not count any more.
func (p *producer) sendWith(client *kgo.Client) {
	s := &sent{}
	p.sender, p.sent = client, s
	p.promise = func(r *kgo.Record, err error) {
		defer s.pending.Add(-1)
		if err == nil {
			s.stored.Add(1)
			if c, ok := r.Context.(*Changelog); ok {
				c.written.Store(r.Offset + 1)
			}
			return
		}
		e := &ProduceError{Topic: r.Topic, Partition: r.Partition, Err: err}
		if p.mayIgnore(err) && p.ignore(r, err) {
			s.ignored.CompareAndSwap(nil, e)
		} else {
			s.failed.CompareAndSwap(nil, e)
		}
	}
}

// mayIgnore says whether it is the record that an error is about.
func (p *producer) mayIgnore(err error) bool {
	if p.ignore == nil || errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) {
		return false
	}
	return p.txn == nil || !producerFenced(err) && !passing(err)
}

func (p *producer) Send(topic string, partition int32, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	return p.send(p.ctx, topic, partition, key, value, timestamp, headers)
}

func (p *producer) Log(to *Changelog, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	return p.send(to, to.Topic, to.Partition, key, value, timestamp, headers)
}

func (p *producer) send(ctx context.Context, topic string, partition int32, key, value []byte, timestamp int64, headers []kgo.RecordHeader) error {
	if p.txn != nil {
		if p.txn.undoing {
			return nil
		}
		if err := p.begin(); err != nil {
			p.sent.failed.CompareAndSwap(nil, &ProduceError{Topic: topic, Partition: partition, Err: err})
			return p.err()
		}
	}
	if len(p.records) == 0 {
		p.records = make([]kgo.Record, recordSlab)
	}
	r := &p.records[0]
	p.records = p.records[1:]
	r.Topic, r.Partition, r.Key, r.Value, r.Headers = topic, partition, key, value, headers
	if timestamp != state.NoTimestamp {
		r.Timestamp = time.UnixMilli(timestamp)
	}
	r.Context = ctx
	p.sent.pending.Add(1)
	p.sender.Produce(p.ctx, r, p.promise)
	return p.err()
}

// err is the first failure of a record, which every later commit must respect:
// what was sent before it may be missing from the topic.
func (p *producer) err() error {
	if e := p.sent.failed.Load(); e != nil {
		return e
	}
	return nil
}

// flush waits until all records that were sent are stored by the broker.
func (p *producer) flush(ctx context.Context) error {
	if p.sender == nil {
		return p.err()
	}
	if err := p.sender.Flush(ctx); err != nil {
		return err
	}
	// The client flushes what it has buffered. A record that it refused before,
	// one that is larger than all its buffers for instance, may fail later.
	for p.sent.pending.Load() > 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return p.err()
}

// Partitioner is the partitioner that a thread's client must have: a record
// that names its partition goes there, any other where Java would send it.
func Partitioner() kgo.Partitioner { return partitioner{kgo.StickyKeyPartitioner(nil)} }

type partitioner struct{ kgo.Partitioner }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	tp := p.Partitioner.ForTopic(topic)
	onNew, _ := tp.(kgo.TopicPartitionerOnNewBatch)
	return topicPartitioner{tp, onNew}
}

type topicPartitioner struct {
	kgo.TopicPartitioner
	onNew kgo.TopicPartitionerOnNewBatch
}

func (p topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.TopicPartitioner.RequiresConsistency(r)
}

func (p topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return p.TopicPartitioner.Partition(r, n)
}

func (p topicPartitioner) OnNewBatch() {
	if p.onNew != nil {
		p.onNew.OnNewBatch()
	}
}

// changelog appends the changes of a store to its changelog.
type changelog struct {
	out Collector
	to  *Changelog
}

func (c changelog) Append(key, value []byte, timestamp int64, headers []state.Header) error {
	key = c.out.Keep(append(c.out.Grab(), key...))
	if value != nil {
		value = c.out.Keep(append(c.out.Grab(), value...))
	}
	var out []kgo.RecordHeader
	for _, h := range headers {
		out = append(out, kgo.RecordHeader(h))
	}
	return c.out.Log(c.to, key, value, timestamp, out)
}

// unlogged is a changelog that nothing is written to.
type unlogged struct{}

func (unlogged) Append(_, _ []byte, _ int64, _ []state.Header) error { return nil }
