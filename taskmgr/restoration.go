package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/state"
)

// restoration is one changelog partition on its way into a store. How far it has
// come is the store's position.
type restoration struct {
	of      *updating
	store   *taskStore
	target  int64 // the offset at which the store of a task that is to run is complete
	end     int64 // the changelog's end, as known last
	records int64
	began   time.Time
	moved   time.Time // when something of it came last
	topicID [16]byte
}

func (r *restoration) key() changelogKey {
	return changelogKey{r.store.log.Topic, r.store.log.Partition}
}

// complete says whether the store has what it needs to run. It is decided by the
// position: the last offsets may be taken by transaction markers.
func (r *restoration) complete() bool { return r.store.position >= r.target }

// bulkFrom is how many offsets a store is behind by that is loaded in bulk.
const bulkFrom = 10_000

// loadInBulk has the store loaded in bulk while it is far behind, and not otherwise.
func (r *restoration) loadInBulk(on bool) error {
	r.of.task.gate.Lock()
	defer r.of.task.gate.Unlock()
	if loader, ok := r.store.Store.(state.BulkLoader); ok && on != r.store.bulk {
		r.store.bulk = on
		return loader.BulkLoad(on)
	}
	return nil
}

// restore writes records of the changelog to the store.
func (r *restoration) restore(records []*kgo.Record) error {
	r.of.task.gate.Lock()
	defer r.of.task.gate.Unlock()
	for _, rec := range records {
		r.of.task.gate.Yield()
		if r.store.source && rec.Offset >= r.target {
			r.store.position = r.target // what follows is yet to be processed
			return nil
		}
		if !rec.Attrs.IsControl() {
			if rec.Key == nil {
				if r.store.source {
					r.store.position = rec.Offset + 1
					continue // as when it was processed
				}
				return fmt.Errorf("offset %d has a record without a key, which no store writes: does something else produce to the topic?", rec.Offset)
			}
			if err := RestoreRecord(r.store.Store, rec); err != nil {
				return fmt.Errorf("offset %d: %w", rec.Offset, err)
			}
			r.records++
		}
		r.store.position = rec.Offset + 1
	}
	return nil
}

// checkpoint has the store found as it is now.
func (r *restoration) checkpoint() error {
	r.of.task.gate.Lock()
	defer r.of.task.gate.Unlock()
	return r.store.checkpoint()
}

// skipTo passes over offsets that have no records.
func (r *restoration) skipTo(next int64) {
	r.of.task.gate.Lock()
	defer r.of.task.gate.Unlock()
	r.store.position = next
}

// begin looks up where the changelogs of pending tasks start and end, and has
// them read. What is the end now is enough for a task that is to run: its last
// owner has written all that it ever will. If ctx ends, the tasks stay pending.
//
// Where only what is committed is read, the end is still that of all records. The last
// owner's last transaction may be committed and not marked so in the changelog yet,
// though its offsets count already: up to the last stable offset, the store would be
// without it. What is open now ends soon, if not before the transaction time-out, and
// only then the end is reached (KAFKA-10167).
func (u *updater) begin(ctx context.Context) {
	if len(u.pending) == 0 {
		return
	}
	var names []string
	for _, of := range u.pending {
		for _, s := range of.task.stores {
			if s.log != nil && !slices.Contains(names, s.log.Topic) {
				names = append(names, s.log.Topic)
			}
		}
	}
	ids, starts, ends, err := u.list(ctx, names)
	limits, limitsErr := u.limits(ctx)
	if err = errors.Join(err, limitsErr); err != nil && ctx.Err() != nil {
		return
	}
	tasks := u.pending
	u.pending, u.shuffled, u.moved = nil, true, true
	consume := make(map[string]map[int32]kgo.Offset)
	for _, of := range tasks {
		if err == nil {
			err = of.task.trust(ids)
		}
		if err := errors.Join(err, u.beginTask(of, ids, starts, ends, limits, consume)); err != nil {
			u.fail(of, err)
		}
	}
	u.client.AddConsumePartitions(consume)
	for _, of := range tasks {
		if u.tasks[of.task.id] == of {
			u.finish(of)
		}
	}
}

func (u *updater) beginTask(of *updating, ids topics, starts, ends kadm.ListedOffsets, limits map[changelogKey]int64, consume map[string]map[int32]kgo.Offset) error {
	for _, s := range of.task.stores {
		if s.log == nil || s.source && !of.run {
			continue
		}
		topic, partition := s.log.Topic, s.log.Partition
		start, ok1 := starts.Lookup(topic, partition)
		end, ok2 := ends.Lookup(topic, partition)
		if !ok1 || !ok2 {
			return fmt.Errorf("the changelog %s has no partition %d: was it recreated with fewer? Reset the application", topic, partition)
		}
		target := end.Offset
		if s.source {
			target = min(target, max(start.Offset, limits[changelogKey{topic, partition}]))
		}
		r := u.changelogs[changelogKey{topic, partition}]
		if r == nil {
			r = &restoration{of: of, store: s}
			of.changelogs = append(of.changelogs, r)
			u.changelogs[r.key()] = r
			if s.position < start.Offset || s.position > target {
				// It is empty, or holds what the changelog no longer vouches for.
				if err := u.wipe(r, start.Offset); err != nil {
					return err
				}
			}
			if consume[topic] == nil {
				consume[topic] = make(map[int32]kgo.Offset)
			}
			consume[topic][partition] = kgo.NewOffset().At(s.position)
		}
		r.target, r.end = target, max(r.end, end.Offset)
		r.records, r.began, r.topicID = 0, time.Now(), ids[topic].id
		r.moved = r.began
		if err := r.loadInBulk(r.end-s.position >= bulkFrom); err != nil {
			return err
		}
		u.tell(r, RestoreBegin)
	}
	return nil
}

// wipe empties a store, to be filled from offset start on.
func (u *updater) wipe(r *restoration, start int64) error {
	r.of.task.gate.Lock()
	defer r.of.task.gate.Unlock()
	if r.store.position != beginning {
		u.log.Warn("a state store is rebuilt from the start of its changelog, which no longer has where the store is",
			"task", r.of.task.id, "store", r.store.Name(), "position", r.store.position, "start", start)
		if err := r.store.reopen(); err != nil {
			return err
		}
	}
	r.store.position = start
	return nil
}

// limits are the committed offsets of the source topics that serve as changelogs of
// pending tasks that are to run. What follows them is yet to be processed, and must
// not be in the stores. It is −1 where nothing was committed.
func (u *updater) limits(ctx context.Context) (map[changelogKey]int64, error) {
	var names []string
	var inputs []*input
	for _, of := range u.pending {
		for _, s := range of.task.stores {
			if s.source && of.run {
				inputs = append(inputs, &input{topic: s.log.Topic, partition: s.log.Partition})
				if !slices.Contains(names, s.log.Topic) {
					names = append(names, s.log.Topic)
				}
			}
		}
	}
	if len(inputs) == 0 {
		return nil, nil
	}
	err := backoff.Retry(func() error {
		topics, err := fetchTopics(ctx, u.client, names)
		if err == nil {
			// As nobody in particular: the last owner has committed and is gone.
			err = fetchOffsets(ctx, u.client, identity{group: u.group, epoch: -1}, topics, inputs)
		}
		if err != nil && !retriable(err) {
			return backoff.Permanent(err)
		}
		return err
	}, retries(ctx, listTimeout))
	if err != nil {
		return nil, fmt.Errorf("fetch the committed offsets of %v, to restore stores up to them: %w", names, err)
	}
	limits := make(map[changelogKey]int64, len(inputs))
	for _, in := range inputs {
		limits[changelogKey{in.topic, in.partition}] = in.next
	}
	return limits, nil
}

// listTimeout bounds how long a changelog that the coordinator says exists may
// be unknown to the broker that we ask: its metadata spreads within seconds.
const listTimeout = 30 * time.Second

// list looks up changelogs: the ids of their topics, and where their partitions
// start and end.
func (u *updater) list(ctx context.Context, names []string) (ids topics, starts, ends kadm.ListedOffsets, err error) {
	if len(names) == 0 {
		return nil, nil, nil, nil
	}
	adm := kadm.NewClient(u.client)
	err = backoff.Retry(func() (err error) {
		if ids, err = fetchTopics(ctx, u.client, names); err == nil {
			starts, err = adm.ListStartOffsets(ctx, names...)
		}
		if err == nil {
			err = starts.Error()
		}
		if err == nil {
			if ends, err = adm.ListEndOffsets(ctx, names...); err == nil {
				err = ends.Error()
			}
		}
		if err != nil && !kerr.IsRetriable(err) && !retriable(err) {
			return backoff.Permanent(err)
		}
		return err
	}, retries(ctx, listTimeout))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("list the offsets of changelogs %v: %w", names, err)
	}
	return ids, starts, ends, nil
}

// retries is how we retry what may pass: 100 ms doubling to 1 s, with jitter,
// for at most that long.
func retries(ctx context.Context, atMost time.Duration) backoff.BackOff {
	return retriesFrom(ctx, 100*time.Millisecond, atMost)
}

// retriesFrom is retries with the first wait.
func retriesFrom(ctx context.Context, first, atMost time.Duration) backoff.BackOff {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(atMost),
	)
	return backoff.WithContext(b, ctx)
}
