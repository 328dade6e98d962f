package streams

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/taskmgr"
)

// suppressNode holds changes back.
type suppressNode[K, V any] struct {
	emitter[K, change[V]]
	suppression[K]
	ctx        *taskContext
	node       string
	buffer     *state.ChangeBuffer[K, V]
	limits     Suppressed
	streamTime int64 // that the node has seen
}

func (n *suppressNode[K, V]) receive(r Record[K, change[V]]) error {
	n.streamTime = max(n.streamTime, r.Timestamp)
	source := recordContext(n.ctx.Context)
	from := state.RecordContext{
		Topic: source.Topic, Partition: source.Partition, Offset: source.Offset,
		Timestamp: r.Timestamp, Headers: StoreHeaders(r.Headers),
	}
	for i, h := range from.Headers {
		from.Headers[i].Value = bytes.Clone(h.Value) // it stays longer than what was fetched
	}
	c := state.Change[K, V]{
		Key: r.Key, New: r.Value.new.v, HasNew: r.Value.new.ok, Old: r.Value.old.v, HasOld: r.Value.old.ok,
	}
	if err := n.buffer.Put(n.time(r.Key, r.Timestamp), c, from); err != nil {
		return err
	}
	for n.due() || n.full() && !n.limits.ShutDownWhenFull {
		if err := n.emit(); err != nil {
			return err
		}
	}
	if !n.full() {
		return nil
	}
	return &BufferFullError{
		Operator: n.node, Records: int64(n.buffer.Len()), MaxRecords: n.limits.MaxRecords,
		Bytes: n.buffer.Size(), MaxBytes: n.limits.MaxBytes,
	}
}

// due says whether the first change has been held back for long enough.
func (n *suppressNode[K, V]) due() bool {
	first, ok := n.buffer.MinTime()
	return ok && first <= n.streamTime-n.wait
}

func (n *suppressNode[K, V]) full() bool {
	return n.limits.MaxRecords > 0 && int64(n.buffer.Len()) > n.limits.MaxRecords ||
		n.limits.MaxBytes > 0 && n.buffer.Size() > n.limits.MaxBytes
}

// emit sends the first change on, as it would have been sent when it came, and then
// forgets it: those below that look it up meanwhile don't know it yet.
func (n *suppressNode[K, V]) emit() error {
	c, from, _, err := n.buffer.First()
	if err != nil {
		return err
	}
	if c.HasNew || !n.dropTombstones {
		r := Record[K, change[V]]{Key: c.Key, Timestamp: from.Timestamp}
		for _, h := range from.Headers {
			r.Headers = append(r.Headers, Header(h))
		}
		r.Value.new, r.Value.old = nullable[V]{c.New, c.HasNew}, nullable[V]{c.Old, c.HasOld}
		leave := n.ctx.Resume(&taskmgr.Moment{Headers: r.Headers, Record: &kgo.Record{
			Topic: from.Topic, Partition: from.Partition, Offset: from.Offset, Headers: r.Headers,
		}})
		err := n.forward(r)
		leave()
		if err != nil {
			return err
		}
	}
	n.buffer.DropFirst()
	return nil
}
