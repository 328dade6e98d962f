package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/odradek-go/odradek/iq"
)

// truth is what was written. The n-th record of a key has the value "key:n", counted
// from 1, and a time that is no earlier than the one before.
type truth struct {
	mu    sync.RWMutex
	keys  map[string]*history
	names []string        // of the keys, as they came
	ends  map[int32]int64 // the last offset of each partition that is known to be written
	acked int
}

// history is what was written of a key.
type history struct {
	partition int32
	times     []int64 // of all that was sent, in milliseconds
	offsets   []int64 // of all that is known to be written
}

func newTruth() *truth {
	return &truth{keys: make(map[string]*history), ends: make(map[int32]int64)}
}

// next is the value and the time of a key's next record, which is about to be sent.
func (t *truth) next(key string) (value string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.keys[key]
	if h == nil {
		h = &history{partition: iq.DefaultPartition([]byte(key), partitions)}
		t.keys[key] = h
		t.names = append(t.names, key)
	}
	now := time.Now().UnixMilli()
	if n := len(h.times); n > 0 {
		now = max(now, h.times[n-1])
	}
	h.times = append(h.times, now)
	return key + ":" + strconv.Itoa(len(h.times)), time.UnixMilli(now)
}

// written says that a key's next record is written, at an offset.
func (t *truth) written(key string, partition int32, offset int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.keys[key]
	if h.partition != partition {
		return fmt.Errorf("%s is in partition %d, and not in %d", key, partition, h.partition)
	}
	h.offsets = append(h.offsets, offset)
	t.ends[partition] = max(t.ends[partition], offset)
	t.acked++
	return nil
}

// since are how many records of keys a query must have seen, and as a position where
// these are.
type since struct {
	position iq.Position
	records  map[string]int
}

// of is what is known to be written of a key.
func (t *truth) of(key string) (s since) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	h := t.keys[key]
	n := len(h.offsets)
	if n == 0 {
		return s
	}
	return since{iq.Position{}.With(inputTopic, h.partition, h.offsets[n-1]), map[string]int{key: n}}
}

// all is what is known to be written of all keys.
func (t *truth) all() since {
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := since{iq.Position{inputTopic: make(map[int32]int64)}, make(map[string]int)}
	for partition, offset := range t.ends {
		s.position[inputTopic][partition] = offset
	}
	for key, h := range t.keys {
		s.records[key] = len(h.offsets)
	}
	return s
}

// id is what a store has a number for: a key, and in windows the start of one.
type id struct {
	key   string
	start int64
}

// expected is a store's number for an id after n records of the key.
func (h *history) expected(store string, of id, n int) int64 {
	if store != windowsStore {
		return int64(n)
	}
	from, _ := slices.BinarySearch(h.times[:n], of.start)
	to, _ := slices.BinarySearch(h.times[:n], of.start+windowSize.Milliseconds())
	return int64(to - from)
}

// timeOf is the time of the record that makes a store's number for an id n, or −1.
func (h *history) timeOf(store string, of id, n int64) int64 {
	from := 0
	if store == windowsStore {
		from, _ = slices.BinarySearch(h.times, of.start)
	}
	if at := from + int(n) - 1; at >= 0 && at < len(h.times) {
		return h.times[at]
	}
	return -1
}

// ids are what a store may have of a key: all windows that it has records in.
func (h *history) ids(store, key string) (all []id) {
	if store != windowsStore {
		return []id{{key: key}}
	}
	for _, t := range h.times {
		start := t - t%windowSize.Milliseconds()
		if n := len(all); n == 0 || all[n-1].start != start {
			all = append(all, id{key, start})
		}
	}
	return all
}

// number is which record of the key a value is from, if it is the key's.
func number(key, value string) (int64, error) {
	text, ok := strings.CutPrefix(value, key+":")
	if !ok {
		return 0, fmt.Errorf("%q is another key's value", value)
	}
	return strconv.ParseInt(text, 10, 64)
}
