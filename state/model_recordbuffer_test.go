package state_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
)

// bufferGrace is the grace period of the record buffer under test.
const bufferGrace = 60 * time.Second

// recordBufferSubject is modelled by a list of the records that are held back.
type recordBufferSubject struct {
	*state.RecordBuffer[string, []byte]
	held     []heldRecord
	observed int64
	sequence uint32
	log      []logged
}

type heldRecord struct {
	key      string
	sequence uint32
	value    string
	from     state.RecordContext
}

func newRecordBufferSubject(open state.OpenEngine, _ bool) subject {
	return &recordBufferSubject{RecordBuffer: state.NewRecordBuffer("s", raw, serde.Bytes, bufferGrace, open), observed: -1}
}

func (s *recordBufferSubject) step(t *rapid.T) {
	if rapid.Bool().Draw(t, "evict") {
		s.evict(t)
		return
	}
	k, v := drawKey(t), drawValue(t)
	from := state.RecordContext{Topic: "topic", Partition: 3, Offset: rapid.Int64Range(0, 100).Draw(t, "offset"), Timestamp: drawTime(t, s.observed)}
	if rapid.Bool().Draw(t, "headers") {
		from.Headers = []state.Header{{Key: "h", Value: []byte("1")}, {Key: "n"}}
	}
	got, err := s.Put(k, v, from)
	must(t, err)
	want := from.Timestamp >= s.observed-bufferGrace.Milliseconds()
	if got != want {
		t.Fatalf("a record of %d is held back: %v, when the latest is of %d", from.Timestamp, got, s.observed)
	}
	if !want {
		return
	}
	s.observed = max(s.observed, from.Timestamp)
	s.sequence++
	r := heldRecord{k, s.sequence, string(v), from}
	s.held = append(s.held, r)
	slices.SortFunc(s.held, func(a, b heldRecord) int { return cmp.Compare(a.stored(), b.stored()) })
	s.log = append(s.log, logged{key: r.stored(), value: r.encoded(), timestamp: state.NoTimestamp})
}

// evict takes out what is due, unless the receiver fails at one of the records.
func (s *recordBufferSubject) evict(t *rapid.T) {
	due := 0
	for due < len(s.held) && s.held[due].from.Timestamp <= s.observed-bufferGrace.Milliseconds() {
		due++
	}
	fails := rapid.IntRange(0, due).Draw(t, "fails at") // due: never
	failure := fmt.Errorf("no")
	var got []string
	err := s.Evict(func(k string, v []byte, from state.RecordContext) error {
		if len(got) == fails {
			return failure
		}
		got = append(got, recordText(k, string(v), from))
		return nil
	})
	if want := s.texts(fails); (err == nil) != (fails == due) || !slices.Equal(got, want) {
		t.Fatalf("evicted %q, %v, want %q and to fail %v", got, err, want, fails < due)
	}
	for _, r := range s.held[:fails] {
		s.log = append(s.log, logged{key: r.stored(), tombstone: true, timestamp: state.NoTimestamp})
	}
	s.held = slices.Clone(s.held[fails:])
}

// stored is the key in the changelog.
func (r heldRecord) stored() string {
	b := binary.BigEndian.AppendUint64([]byte{0}, uint64(r.from.Timestamp))
	return string(binary.BigEndian.AppendUint32(append(b, r.key...), r.sequence))
}

// encoded is the value in the changelog.
func (r heldRecord) encoded() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(r.from.Timestamp))
	b = binary.BigEndian.AppendUint64(b, uint64(r.from.Offset))
	b = append(b, "\x00\x00\x00\x05topic\x00\x00\x00\x03"...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.from.Headers)))
	if len(r.from.Headers) > 0 {
		b = append(b, "\x00\x00\x00\x01h\x00\x00\x00\x011\x00\x00\x00\x01n\xff\xff\xff\xff"...)
	}
	b = append(b, "\xff\xff\xff\xff\xff\xff\xff\xff"...) // no prior and no old value
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(r.value))), r.value...)
	return string(append(b, make([]byte, 8)...))
}

func recordText(k, v string, from state.RecordContext) string {
	return fmt.Sprintf("%q: %q of %d, %s-%d@%d, %q", k, v, from.Timestamp, from.Topic, from.Partition, from.Offset, from.Headers)
}

func (s *recordBufferSubject) texts(n int) (all []string) {
	for _, r := range s.held[:n] {
		all = append(all, recordText(r.key, r.value, r.from))
	}
	return all
}

func (s *recordBufferSubject) contents(t fataler) (got []string) {
	must(t, s.Each(func(k string, v []byte, from state.RecordContext) error {
		got = append(got, recordText(k, string(v), from))
		return nil
	}))
	return got
}

func (s *recordBufferSubject) want() []string   { return s.texts(len(s.held)) }
func (s *recordBufferSubject) logged() []logged { return s.log }

// TestRecordBufferErrors: what can't be is an error, and not held back.
func TestRecordBufferErrors(t *testing.T) {
	s := state.NewRecordBuffer("s", raw, serde.Bytes, bufferGrace, state.Memory)
	nothing := func(string, []byte, state.RecordContext) error { return nil }
	if _, err := s.Put("k", []byte("v"), state.RecordContext{}); !isErr(err, state.ErrClosed) {
		t.Errorf("put into a buffer that is not open: %v", err)
	}
	if err := s.Evict(nothing); !isErr(err, state.ErrClosed) {
		t.Errorf("evict from a buffer that is not open: %v", err)
	}
	must(t, s.Open(state.OpenContext{}))
	if _, err := s.Put("k", []byte("v"), state.RecordContext{Timestamp: -1}); !isErr(err, state.ErrNegativeTime) {
		t.Errorf("a record before 1970 is held back: %v", err)
	}
	for _, key := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00", "\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01", "\x00\x80\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01"} {
		if err := s.Restore([]byte(key), nil, 1); !isErr(err, state.ErrMalformedKey) {
			t.Errorf("the key %q is restored: %v", key, err)
		}
	}
	must(t, s.Restore([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x01k\x00\x00\x00\x01"), []byte("no record"), 1))
	if err := s.Each(nothing); err == nil {
		t.Error("garbage is read")
	}
	must(t, s.Close())
}
