package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
)

// updater restores the stores of tasks from their changelogs, off the thread's
// processing loop and on a client of its own, many partitions at once.
//
// A task that was given to add belongs to the updater, stores included, until
// done was called for it or cancel has returned.
type updater struct {
	client *kgo.Client
	log    *slog.Logger

	// done is called from the updater's goroutine when a task's stores are
	// complete, or with the error for which they can't be.
	done func(*task, error)

	mu      sync.Mutex
	added   []*task
	removed []removal
	wake    context.CancelFunc // ends the poll under way
	stopped chan struct{}      // closed when run has ended

	tasks      map[membership.TaskID]int // changelogs that are still being read
	changelogs map[changelogKey]*restoration
}

type changelogKey struct {
	topic     string
	partition int32
}

// restoration is one changelog partition on its way into a store.
type restoration struct {
	task    *task
	store   taskStore
	start   int64 // the offset it began at
	next    int64 // the offset that comes next
	end     int64 // where it is complete
	records int64
	began   time.Time
}

type removal struct {
	id   membership.TaskID
	done chan struct{}
}

// newUpdater returns an updater whose client is made with opts and is closed
// when run ends. It fetches only what it is told to, starts nowhere by itself
// (an offset that is out of range must surface), and sees transaction markers,
// since a changelog may end with one.
func newUpdater(opts []kgo.Opt, log *slog.Logger, done func(*task, error)) (*updater, error) {
	client, err := kgo.NewClient(append(slices.Clone(opts),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepControlRecords(),
	)...)
	if err != nil {
		return nil, err
	}
	return &updater{
		client:     client,
		log:        log,
		done:       done,
		wake:       func() {},
		stopped:    make(chan struct{}),
		tasks:      make(map[membership.TaskID]int),
		changelogs: make(map[changelogKey]*restoration),
	}, nil
}

// add has a task restored.
func (u *updater) add(t *task) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.added = append(u.added, t)
	u.wake()
}

// cancel stops restoring a task and returns when its stores are no longer
// touched. done may or may not have been called for it.
func (u *updater) cancel(id membership.TaskID) {
	r := removal{id, make(chan struct{})}
	u.mu.Lock()
	u.removed = append(u.removed, r)
	u.wake()
	u.mu.Unlock()
	select {
	case <-r.done:
	case <-u.stopped:
	}
}

// run restores until ctx ends.
func (u *updater) run(ctx context.Context) {
	defer close(u.stopped)
	defer u.client.Close()
	for ctx.Err() == nil {
		added, removed, poll, cancel := u.take(ctx)
		for _, r := range removed {
			added = slices.DeleteFunc(added, func(t *task) bool { return t.id == r.id })
			u.drop(r.id)
			close(r.done)
		}
		u.begin(ctx, added)
		u.apply(u.client.PollFetches(poll))
		cancel()
	}
}

// take takes over what was added and removed, and returns the context of the
// next poll, which ends when more is.
func (u *updater) take(ctx context.Context) ([]*task, []removal, context.Context, context.CancelFunc) {
	poll, cancel := context.WithCancel(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	added, removed := u.added, u.removed
	u.added, u.removed, u.wake = nil, nil, cancel
	return added, removed, poll, cancel
}

// begin starts reading the changelogs of tasks, each from its start to what is
// its end now: the tasks' last owners have written all that they ever will.
func (u *updater) begin(ctx context.Context, tasks []*task) {
	if len(tasks) == 0 {
		return
	}
	var names []string
	for _, t := range tasks {
		for _, s := range t.stores {
			if s.changelog != "" && !slices.Contains(names, s.changelog) {
				names = append(names, s.changelog)
			}
		}
	}
	starts, ends, err := u.list(ctx, names)
	if ctx.Err() != nil {
		return
	}
	consume := make(map[string]map[int32]kgo.Offset)
	for _, t := range tasks {
		if err := errors.Join(err, u.beginTask(t, starts, ends, consume)); err != nil {
			u.drop(t.id)
			u.done(t, t.fail(err))
		} else if u.tasks[t.id] == 0 {
			delete(u.tasks, t.id)
			u.done(t, nil)
		}
	}
	u.client.AddConsumePartitions(consume)
}

func (u *updater) beginTask(t *task, starts, ends kadm.ListedOffsets, consume map[string]map[int32]kgo.Offset) error {
	u.tasks[t.id] = 0
	for _, s := range t.stores {
		if s.changelog == "" {
			continue
		}
		partition := t.id.Partition
		start, ok1 := starts.Lookup(s.changelog, partition)
		end, ok2 := ends.Lookup(s.changelog, partition)
		if !ok1 || !ok2 {
			return fmt.Errorf("the changelog %s has no partition %d: was it recreated with fewer? Reset the application", s.changelog, partition)
		}
		if start.Offset >= end.Offset {
			continue
		}
		u.changelogs[changelogKey{s.changelog, partition}] = &restoration{
			task: t, store: s, start: start.Offset, next: start.Offset, end: end.Offset, began: time.Now(),
		}
		if consume[s.changelog] == nil {
			consume[s.changelog] = make(map[int32]kgo.Offset)
		}
		consume[s.changelog][partition] = kgo.NewOffset().At(start.Offset)
		u.tasks[t.id]++
	}
	return nil
}

// listTimeout bounds how long a changelog that the coordinator says exists may
// be unknown to the broker that we ask: its metadata spreads within seconds.
const listTimeout = 30 * time.Second

func (u *updater) list(ctx context.Context, topics []string) (starts, ends kadm.ListedOffsets, err error) {
	if len(topics) == 0 {
		return nil, nil, nil
	}
	adm := kadm.NewClient(u.client)
	err = backoff.Retry(func() (err error) {
		if starts, err = adm.ListStartOffsets(ctx, topics...); err == nil {
			err = starts.Error()
		}
		if err == nil {
			if ends, err = adm.ListEndOffsets(ctx, topics...); err == nil {
				err = ends.Error()
			}
		}
		if err != nil && !kerr.IsRetriable(err) {
			return backoff.Permanent(err)
		}
		return err
	}, retries(ctx, listTimeout))
	if err != nil {
		return nil, nil, fmt.Errorf("list the offsets of changelogs %v: %w", topics, err)
	}
	return starts, ends, nil
}

// apply writes what was fetched to the stores.
func (u *updater) apply(fetches kgo.Fetches) {
	fetches.EachError(func(topic string, partition int32, err error) {
		if errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) {
			return
		}
		if r := u.changelogs[changelogKey{topic, partition}]; r != nil {
			u.fail(r, fmt.Errorf("read the changelog %s-%d at offset %d: %w", topic, partition, r.next, err))
			return
		}
		u.log.Warn("reading changelogs met an error", "topic", topic, "partition", partition, "err", err)
	})
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		key := changelogKey{p.Topic, p.Partition}
		r := u.changelogs[key]
		if r == nil {
			return
		}
		for _, rec := range p.Records {
			r.next = rec.Offset + 1
			if rec.Attrs.IsControl() {
				continue
			}
			if rec.Key == nil {
				u.fail(r, fmt.Errorf("the changelog %s-%d has a record without a key at offset %d, which no store writes: does something else produce to it?", p.Topic, p.Partition, rec.Offset))
				return
			}
			if err := r.store.Restore(rec.Key, rec.Value, rec.Timestamp.UnixMilli()); err != nil {
				u.fail(r, err)
				return
			}
			r.records++
		}
		if r.next >= r.end {
			u.complete(key, r)
		}
	})
}

func (u *updater) complete(key changelogKey, r *restoration) {
	u.log.Info("restored a state store", "task", r.task.id, "store", r.store.Name(), "records", r.records, "took", time.Since(r.began))
	u.forget(key)
	if u.tasks[r.task.id]--; u.tasks[r.task.id] == 0 {
		delete(u.tasks, r.task.id)
		u.done(r.task, nil)
	}
}

func (u *updater) fail(r *restoration, err error) {
	u.drop(r.task.id)
	u.done(r.task, r.task.fail(err))
}

// drop forgets a task.
func (u *updater) drop(id membership.TaskID) {
	delete(u.tasks, id)
	for key, r := range u.changelogs {
		if r.task.id == id {
			u.forget(key)
		}
	}
}

func (u *updater) forget(key changelogKey) {
	delete(u.changelogs, key)
	u.client.RemoveConsumePartitions(map[string][]int32{key.topic: {key.partition}})
}

// retries is how we retry what may pass: 100 ms doubling to 1 s, with jitter,
// for at most that long.
func retries(ctx context.Context, atMost time.Duration) backoff.BackOff {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(atMost),
	)
	return backoff.WithContext(b, ctx)
}
