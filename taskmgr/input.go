package taskmgr

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// input is one partition of a source topic: what is known of it and what is to
// be processed of it.
type input struct {
	task      *task
	topic     string
	partition int32
	source    Source

	queue []*kgo.Record // polled, not processed
	head  int64         // the time of queue[0], once it is known
	timed bool          // head is known

	// What there is beyond the queue, of tasks with several inputs: see waits.
	topicID   [16]byte
	fetched   int64     // the offset of what is fetched next
	end       int64     // the partition's, as known last, −1 where it isn't
	heard     time.Time // when something came, or was asked for, last
	idleUntil int64     // by the system time; 0: not idle
	held      bool      // fetching is paused

	time        int64            // the highest record time yet, −1 before the first
	processors  map[string]int64 // the task's processor metadata, as committed with this one
	next        int64            // the offset to commit: that of the next record
	leaderEpoch int32            // of the last processed record
	dirty       bool             // next has moved since it was last committed
}

// dropped is the time of a record that is not processed.
const dropped = -1

// step processes the first record of an input.
func (t *task) step(in *input) error {
	if err := in.look(); err != nil {
		return err
	}
	rec, ts := in.queue[0], in.head
	in.queue[0] = nil
	in.queue = in.queue[1:]
	in.timed = false
	if ts >= 0 {
		in.time = max(in.time, ts)
		t.ctx.Processing(rec, ts)
		if err := in.source.Process(rec, ts); err != nil {
			if err := t.handle(rec, err); err != nil {
				return in.fail(rec, err)
			}
		}
	}
	in.next, in.leaderEpoch = rec.Offset+1, rec.LeaderEpoch
	// A transaction marker is not worth a commit.
	in.dirty = in.dirty || !rec.Attrs.IsControl()
	return nil
}

// look makes the time of the input's first record known.
func (in *input) look() (err error) {
	if in.timed {
		return nil
	}
	rec := in.queue[0]
	if rec.Attrs.IsControl() {
		in.head, in.timed = dropped, true
		return nil
	}
	if in.head, err = in.source.Timestamp(rec, in.time); err != nil {
		if err := in.task.handle(rec, err); err != nil {
			return in.fail(rec, err)
		}
		in.head = dropped
	}
	in.timed = true
	return nil
}

func (in *input) fail(rec *kgo.Record, err error) error {
	return &TaskError{Task: in.task.id, Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Err: err}
}
