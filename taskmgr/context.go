package taskmgr

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// Context is a task as its graph sees it.
type Context struct {
	// Task is the task's id.
	Task membership.TaskID

	// Out takes what the task sends.
	Out Collector

	// EmitInterval is how long, in milliseconds of the wall clock, operators wait
	// at least between two looks for results whose windows have closed. It is 0
	// where no thread runs the task, as in Java's test driver.
	EmitInterval int64

	// Logger takes what is worth knowing when something is looked into; nil:
	// nothing.
	Logger *slog.Logger

	stores       map[string]state.Store
	record       *kgo.Record
	headers      []kgo.RecordHeader
	moment       *Moment // of what is being processed, once it is asked for
	streamTime   int64
	systemTime   int64
	punctuations [2]punctuations
	commit       bool // a commit was asked for
	dropped      int64

	processorMetadata map[string]int64
	metadataChanged   bool // since it was last committed
}

// NewContext returns the context of a task that no thread runs: a test driver's.
// The stores are open, or will be before the graph is made.
func NewContext(task membership.TaskID, out Collector, stores ...state.Store) *Context {
	c := &Context{Task: task, Out: out, stores: make(map[string]state.Store, len(stores)), streamTime: -1}
	c.AddStores(stores...)
	return c
}

// AddStores lets the graph use more stores, such as views of global ones. It is
// called before the graph is made.
func (c *Context) AddStores(stores ...state.Store) {
	for _, s := range stores {
		c.stores[s.Name()] = s
	}
}

// Processing says which record is processed next, and its time in milliseconds. A
// driver that is no thread says it before each record, and nil after the last.
func (c *Context) Processing(rec *kgo.Record, timestamp int64) {
	c.record, c.moment, c.headers = rec, nil, nil
	if rec != nil {
		c.headers = rec.Headers
		c.streamTime = max(c.streamTime, timestamp)
	}
}

// Store returns the task's store of that name, or nil.
func (c *Context) Store(name string) state.Store { return c.stores[name] }

// Record is the record of a source topic that is being processed, nil outside of
// processing. Its timestamp is the topic's, not what an extractor made of it. While
// a change leaves a cache it is the record that led to the change, without key and
// value.
func (c *Context) Record() *kgo.Record { return c.record }

// StreamTime is the highest record time that the task has seen, in
// milliseconds, and -1 before the first record.
func (c *Context) StreamTime() int64 { return c.streamTime }

// SystemTime is the time of the wall clock in milliseconds, as it was when the
// batch of records began that is being processed.
func (c *Context) SystemTime() int64 { return c.systemTime }

// SetSystemTime says what the time of the wall clock is, in milliseconds.
func (c *Context) SetSystemTime(now int64) { c.systemTime = now }

// RequestCommit has the task committed soon, before its interval has passed.
func (c *Context) RequestCommit() { c.commit = true }

// DropRecord counts a record that a processor leaves out, as Java's metric
// dropped-records does, such as one that comes too late. The attributes are slog's.
func (c *Context) DropRecord(processor, reason string, attrs ...any) {
	c.dropped++
	if c.Logger == nil || !c.Logger.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	log := c.Logger.With("task", c.Task, "processor", processor, "reason", reason)
	if c.record != nil {
		log = log.With("topic", c.record.Topic, "partition", c.record.Partition, "offset", c.record.Offset)
	}
	log.Debug("a record is dropped", attrs...)
}

// DroppedRecords is how many records the task's processors have left out.
func (c *Context) DroppedRecords() int64 { return c.dropped }

// Moment is what a task was processing when a change went into a cache, which is
// passed on later.
type Moment struct {
	// Record is the record of a source topic, without key and value; nil outside
	// of processing.
	Record *kgo.Record

	// Headers are those of the record that made the change.
	Headers []kgo.RecordHeader
}

// SetHeaders says which headers the record has that makes the next changes. The
// record of the source topic may have had others.
func (c *Context) SetHeaders(headers []kgo.RecordHeader) {
	if !sameSlice(headers, c.headers) {
		c.headers, c.moment = headers, nil
	}
}

func sameSlice(a, b []kgo.RecordHeader) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Moment is what is being processed now. It holds on to nothing that was fetched,
// however long it is kept.
func (c *Context) Moment() *Moment {
	if c.moment == nil {
		c.moment = &Moment{Headers: cloneHeaders(c.headers)}
		if r := c.record; r != nil {
			c.moment.Record = &kgo.Record{
				Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch,
				Timestamp: r.Timestamp, Headers: c.moment.Headers,
			}
		}
	}
	return c.moment
}

func cloneHeaders(headers []kgo.RecordHeader) []kgo.RecordHeader {
	headers = slices.Clone(headers)
	for i := range headers {
		headers[i].Value = bytes.Clone(headers[i].Value)
	}
	return headers
}

// Resume goes back to a moment, until the function that it returns is called.
func (c *Context) Resume(m *Moment) (leave func()) {
	record, headers, moment := c.record, c.headers, c.moment
	c.record, c.headers, c.moment = m.Record, m.Headers, m
	return func() { c.record, c.headers, c.moment = record, headers, moment }
}

// PunctuationType is the time that a punctuation goes by.
type PunctuationType int8

// The types of punctuation.
const (
	StreamTime    PunctuationType = iota // advances with the records' times
	WallClockTime                        // advances by itself
)

// Schedule has f called every so often, with the time in milliseconds, from the
// task's goroutine, between records. It is at least a millisecond. After a gap of
// several intervals it is called once. Stream time punctuates as soon as there is
// one; the wall clock after an interval. The function that it returns ends that.
func (c *Context) Schedule(interval time.Duration, by PunctuationType, f func(now int64) error) (cancel func()) {
	first := int64(0)
	if by == WallClockTime {
		first = c.systemTime + interval.Milliseconds()
	}
	return c.punctuations[by].add(&punctuation{at: first, every: interval.Milliseconds(), f: f})
}

// ScheduleFrom is Schedule with the first call at start, or where that is past at
// what follows it in whole intervals (KIP-1146).
func (c *Context) ScheduleFrom(start time.Time, interval time.Duration, by PunctuationType, f func(now int64) error) (cancel func()) {
	p := &punctuation{at: start.UnixMilli(), every: interval.Milliseconds(), f: f}
	if now := c.now(by); p.at < now {
		p.next(now)
	}
	return c.punctuations[by].add(p)
}

func (c *Context) now(by PunctuationType) int64 {
	if by == WallClockTime {
		return c.systemTime
	}
	return c.streamTime
}

// Punctuate makes the calls that are due. It says whether there were any.
func (c *Context) Punctuate(by PunctuationType) (any bool, err error) {
	if len(c.punctuations[by]) == 0 {
		return false, nil
	}
	now := c.now(by)
	if now < 0 {
		return false, nil
	}
	c.Processing(nil, 0)
	return c.punctuations[by].run(now)
}

// ProcessorMetadata is a number that a processor has set for a key of its own, in
// this task or before it moved here; ok is false where there is none.
func (c *Context) ProcessorMetadata(key string) (value int64, ok bool) {
	value, ok = c.processorMetadata[key]
	return value, ok
}

// SetProcessorMetadata sets such a number. It is committed along with what was
// processed up to now, in the metadata of the offsets (KIP-825).
func (c *Context) SetProcessorMetadata(key string, value int64) {
	if c.processorMetadata == nil {
		c.processorMetadata = make(map[string]int64)
	}
	c.processorMetadata[key], c.metadataChanged = value, true
}

// recall takes over processor metadata that was committed. Of several values, which
// partitions may have whose commits lie apart, the highest counts.
func (c *Context) recall(committed map[string]int64) {
	for key, value := range committed {
		if known, ok := c.processorMetadata[key]; !ok || value > known {
			if c.processorMetadata == nil {
				c.processorMetadata = make(map[string]int64)
			}
			c.processorMetadata[key] = value
		}
	}
}

// OffsetMetadata is the metadata that is committed with the offset of a partition
// whose time is partitionTime, in milliseconds.
func (c *Context) OffsetMetadata(partitionTime int64) string {
	return offsetMetadata{partitionTime, c.processorMetadata}.encode()
}

// nextPunctuation is when the wall clock's next call is due, if there is one.
func (c *Context) nextPunctuation() (time.Time, bool) {
	ps := c.punctuations[WallClockTime]
	if len(ps) == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(ps[0].at), true
}
