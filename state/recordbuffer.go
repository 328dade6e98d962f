package state

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"time"

	"github.com/odradek-go/odradek/serde"
)

// RecordBuffer holds back records of a stream for a grace period and gives them out in
// the order of their times: the store of a join with a versioned table (KIP-923), Java's
// RocksDBTimeOrderedKeyValueBuffer.
//
// In the changelog a key is a zero byte, the record's time in 8, the key's encoding and
// a sequence number in 4, and the value is that of a [ChangeBuffer] without a prior and an
// old value, at the time 0. Records of the changelog have no timestamp of their own.
type RecordBuffer[K, V any] struct {
	backing
	codec    codec[K, V]
	grace    int64
	observed int64 // the highest time of a record that was put yet, −1 before the first
	sequence uint32
}

const (
	recordHeadSize     = 1 + 8
	recordSequenceSize = 4
)

// appendRecordHead appends what the keys of records of a time begin with.
func appendRecordHead(dst []byte, timestamp int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 0), uint64(timestamp))
}

// NewRecordBuffer returns a buffer, not yet open, whose data is kept by the engine that
// open opens.
func NewRecordBuffer[K, V any](name string, keys serde.Serde[K], values serde.Serde[V], grace time.Duration, open OpenEngine) *RecordBuffer[K, V] {
	return &RecordBuffer[K, V]{backing: backing{name: name, make: open}, codec: newCodec(keys, values), grace: grace.Milliseconds()}
}

// Open implements [Store].
func (s *RecordBuffer[K, V]) Open(ctx OpenContext) error {
	if err := s.backing.Open(ctx); err != nil {
		return err
	}
	s.observed, s.sequence = -1, 0
	if c, ok := s.engine.Checkpointed(); ok {
		if len(c.Note) != 12 {
			return s.fail("open", errors.Join(ErrCorrupt, s.Close()))
		}
		s.observed, s.sequence = int64(binary.BigEndian.Uint64(c.Note)), binary.BigEndian.Uint32(c.Note[8:])
	}
	return nil
}

// Checkpoint implements [Store].
func (s *RecordBuffer[K, V]) Checkpoint(offset int64) error {
	if s.engine == nil {
		return s.fail("checkpoint", ErrClosed)
	}
	note := binary.BigEndian.AppendUint64(nil, uint64(s.observed))
	note = binary.BigEndian.AppendUint32(note, s.sequence)
	return s.fail("checkpoint", s.engine.Checkpoint(Checkpoint{Offset: offset, Note: note}))
}

// Flush implements [Store].
func (s *RecordBuffer[K, V]) Flush() error {
	if s.engine == nil {
		return s.fail("flush", ErrClosed)
	}
	if s.ctx.Changelog == nil {
		return s.Checkpoint(0)
	}
	return nil
}

// Put holds a record back. The time of from is the record's. held is false for a record
// that comes after its grace period: it is not held back.
func (s *RecordBuffer[K, V]) Put(k K, v V, from RecordContext) (held bool, err error) {
	if s.engine == nil {
		return false, s.fail("put", ErrClosed)
	}
	if from.Timestamp < s.observed-s.grace {
		return false, nil
	}
	if from.Timestamp < 0 {
		return false, s.fail("put", ErrNegativeTime)
	}
	s.sequence = (s.sequence + 1) & math.MaxInt32
	key, err := s.codec.appendKey(appendRecordHead(s.codec.key[:0], from.Timestamp), k)
	if err != nil {
		return false, s.fail("put: the key", err)
	}
	s.codec.key = binary.BigEndian.AppendUint32(key, s.sequence)
	encoded, err := s.codec.values.Append([]byte{}, v)
	if err != nil {
		return false, s.fail("put: the value", err)
	}
	record := bufferedChange{new: encoded, from: from}
	s.codec.value = record.append(s.codec.value[:0])
	if err := s.write(s.codec.key, s.codec.value, NoTimestamp, nil); err != nil {
		return false, s.fail("put", err)
	}
	s.observed = max(s.observed, from.Timestamp)
	return true, nil
}

// Evict takes the records out whose grace period has ended and gives them to f, in the
// order of their times. A record that f returns an error for stays.
func (s *RecordBuffer[K, V]) Evict(f func(k K, v V, from RecordContext) error) error {
	if s.engine != nil && s.observed < s.grace {
		return nil
	}
	return s.scanRecords("evict", appendRecordHead(nil, s.observed-s.grace+1), func(key []byte, k K, v V, from RecordContext) error {
		if err := f(k, v, from); err != nil {
			return err
		}
		return s.fail("evict", s.write(key, nil, NoTimestamp, nil))
	})
}

// Each calls f for each record that is held back, in the order of their times, until f
// returns an error.
func (s *RecordBuffer[K, V]) Each(f func(k K, v V, from RecordContext) error) error {
	return s.scanRecords("each", nil, func(_ []byte, k K, v V, from RecordContext) error { return f(k, v, from) })
}

// scanRecords calls f for each record before to, with its key as stored.
func (s *RecordBuffer[K, V]) scanRecords(op string, to []byte, f func(key []byte, k K, v V, from RecordContext) error) error {
	if s.engine == nil {
		return s.fail(op, ErrClosed)
	}
	w := s.walk(op, s.scan(nil, to, Forward), nil)
	defer w.Close()
	var stored []byte
	var k K
	var v V
	var from RecordContext
	for w.next(func(key, value []byte) (err error) {
		stored = append(stored[:0], key...)
		k, v, from, err = s.decode(key, value)
		return err
	}) {
		if err := f(stored, k, v, from); err != nil {
			return err
		}
	}
	return w.Err()
}

func (s *RecordBuffer[K, V]) decode(key, value []byte) (k K, v V, from RecordContext, err error) {
	n := len(key) - recordSequenceSize
	if n < recordHeadSize {
		return k, v, from, ErrMalformedKey
	}
	if k, err = s.codec.keys.Decode(key[recordHeadSize:n:n]); err != nil {
		return k, v, from, err
	}
	record, err := decodeBufferedChange("", append([]byte{}, value...)) // its headers are kept
	if err != nil {
		return k, v, from, err
	}
	if record.new != nil {
		v, err = s.codec.values.Decode(record.new)
	} else {
		err = io.ErrUnexpectedEOF
	}
	return k, v, record.from, err
}

// Restore implements [Store].
func (s *RecordBuffer[K, V]) Restore(key, value []byte, _ int64) error {
	if s.engine == nil {
		return s.fail("restore", ErrClosed)
	}
	n := len(key) - recordSequenceSize
	if n < recordHeadSize || key[0] != 0 || key[1] >= 0x80 { // the time would be negative
		return s.fail("restore", ErrMalformedKey)
	}
	s.observed = max(s.observed, int64(binary.BigEndian.Uint64(key[1:])))
	s.sequence = max(s.sequence, binary.BigEndian.Uint32(key[n:]))
	return s.fail("restore", s.engine.Put(key, value))
}
