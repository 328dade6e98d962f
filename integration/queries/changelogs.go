package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var stores = []string{latestStore, countsStore, windowsStore}

// changelogs is what is committed to the changelogs of the stores, and since when that
// is known: what is in there must be in every active store, and in copies, as far as
// they may be behind, too. With exactly once no number in there gets smaller.
type changelogs struct {
	client  *kgo.Client
	storeOf map[string]string // by topic

	mu      sync.RWMutex
	changes map[string]map[id][]change  // by store
	marks   map[string]map[int32][]mark // by store and partition
}

// change is a number of an id, at an offset.
type change struct{ offset, number int64 }

// mark says that at a moment all up to an offset was there.
type mark struct {
	at   time.Time
	next int64
}

func followChangelogs(brokers []string) (*changelogs, error) {
	c := &changelogs{storeOf: make(map[string]string), changes: make(map[string]map[id][]change), marks: make(map[string]map[int32][]mark)}
	var topics []string
	for _, store := range stores {
		topic := applicationID + "-" + store + "-changelog"
		topics = append(topics, topic)
		c.storeOf[topic] = store
		c.changes[store], c.marks[store] = make(map[id][]change), make(map[int32][]mark)
	}
	var err error
	c.client, err = kgo.NewClient(
		kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.MetadataMinAge(100*time.Millisecond), kgo.MetadataMaxAge(time.Second), kgo.UnknownTopicRetries(-1), // they are yet to be made
	)
	return c, err
}

// run follows until ctx ends.
func (c *changelogs) run(ctx context.Context) error {
	defer c.client.Close()
	for {
		fetches := c.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := c.take(fetches, time.Now()); err != nil {
			return err
		}
	}
}

func (c *changelogs) take(fetches kgo.Fetches, now time.Time) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		store := c.storeOf[r.Topic]
		if !r.Attrs.IsControl() {
			err = errors.Join(err, c.add(store, r))
		}
		marks := c.marks[store][r.Partition]
		if n := len(marks); n == 0 || marks[n-1].at != now {
			marks = append(marks, mark{at: now})
		}
		marks[len(marks)-1].next = r.Offset + 1
		c.marks[store][r.Partition] = marks
	})
	return err
}

func (c *changelogs) add(store string, r *kgo.Record) (err error) {
	of, n := id{key: string(r.Key)}, int64(0)
	if store == windowsStore { // the key, the start and a sequence number
		at := len(r.Key) - 12
		of = id{string(r.Key[:at]), int64(binary.BigEndian.Uint64(r.Key[at:]))}
	}
	if store == latestStore {
		n, err = number(of.key, string(r.Value))
	} else {
		n = int64(binary.BigEndian.Uint64(r.Value))
	}
	if err != nil {
		return fmt.Errorf("%s-%d@%d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	c.changes[store][of] = append(c.changes[store][of], change{r.Offset, n})
	return nil
}

// number is what an id had in a store at a moment, as far as that is known, or in a copy
// that was then so many records behind.
func (c *changelogs) number(store string, partition int32, of id, at time.Time, behind int64) int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	marks := c.marks[store][partition]
	i := sort.Search(len(marks), func(i int) bool { return marks[i].at.After(at) })
	if i == 0 {
		return 0
	}
	changes := c.changes[store][of]
	j := sort.Search(len(changes), func(j int) bool { return changes[j].offset >= marks[i-1].next-behind })
	if j == 0 {
		return 0
	}
	return changes[j-1].number
}
