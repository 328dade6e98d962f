package mirror

import (
	"errors"
	"maps"
	"slices"
)

// slot is a partition that is asked about, or a whole topic.
type slot struct {
	topic     string
	partition int32
}

// wholeTopic stands for all partitions of a topic.
const wholeTopic = -1

// batch is what is asked in one request, and again for as long as it takes: what a
// broker sends elsewhere, or can't say yet, stays pending.
type batch struct {
	op, mirror string
	pending    []slot
	all        bool           // all topics are asked for, and nothing was answered yet
	last       map[slot]error // why slots are still pending
	errs       []error        // for good
}

// inBatches calls do for slots, so many at a time, and joins the errors.
func (c *Client) inBatches(slots []slot, do func([]slot) error) error {
	var errs []error
	for some := range slices.Chunk(slots, c.cfg.BatchPartitions) {
		errs = append(errs, do(slices.Clone(some)))
	}
	return errors.Join(errs...)
}

// takeRead takes an answer over into states. It returns nil when nothing is
// pending any more.
func (b *batch) takeRead(resp *ReadMirrorStatesResponse, numbers StateNumbers, states States) error {
	if err := errorForCode(resp.ErrorCode); err != nil {
		return err
	}
	results := make(map[slot]error)
	for _, t := range resp.Topics {
		results[slot{t.Name, wholeTopic}] = nil
		if _, known := states[t.Name]; !known {
			states[t.Name] = nil
		}
		for _, p := range t.Partitions {
			err := errorForCode(p.ErrorCode)
			results[slot{t.Name, p.PartitionIndex}] = err
			if err == nil {
				states.Set(t.Name, p.PartitionIndex, Partition{LastMirroredOffset: p.LastMirroredOffset, State: numbers[p.State]})
			}
		}
	}
	return b.take(results)
}

func (b *batch) takeWritten(resp *WriteMirrorStatesResponse) error {
	if err := errorForCode(resp.ErrorCode); err != nil {
		return err
	}
	results := make(map[slot]error)
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			results[slot{t.Name, p.PartitionIndex}] = errorForCode(p.ErrorCode)
		}
	}
	return b.take(results)
}

// take settles slots. What was asked for as a whole may have partitions that are
// to be asked about once more. It returns an error of those still pending.
func (b *batch) take(results map[slot]error) error {
	asked := make(map[slot]bool, len(b.pending))
	for _, s := range b.pending {
		asked[s] = true
		if _, answered := results[s]; !answered {
			results[s] = ErrNoAnswer
		}
	}
	b.pending, b.last = nil, make(map[slot]error)
	var why error
	for _, s := range sortSlots(slices.Collect(maps.Keys(results))) {
		err := results[s]
		if err == nil || !b.all && !asked[s] && !asked[slot{s.topic, wholeTopic}] {
			continue
		}
		if !elsewhere(err) && !passes(err) {
			b.errs = append(b.errs, b.errorOf(s, err))
			continue
		}
		b.pending = append(b.pending, s)
		b.last[s] = err
		if why == nil || elsewhere(why) {
			why = err
		}
	}
	b.all = false
	return why
}

func (b *batch) errorOf(s slot, err error) error {
	return &PartitionError{Op: b.op, Mirror: b.mirror, Topic: s.topic, Partition: s.partition, Err: err}
}

// close returns all errors: those of partitions, also of the ones that are still
// pending because of what was answered for them, and err, why asking has ended.
func (b *batch) close(err error) error {
	errs := b.errs
	for _, s := range b.pending {
		if last := b.last[s]; last != nil {
			errs = append(errs, b.errorOf(s, last))
		}
	}
	return errors.Join(append(errs, err)...)
}
