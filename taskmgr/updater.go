package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
)

// updater brings the stores of tasks up to date with their changelogs, off the
// thread's processing loop and on a client of its own, many partitions at once:
// those of active tasks until they are complete, those of standby and warm-up
// tasks as long as they are that. While something is restored, standbys wait.
//
// A task that was given to update belongs to the updater, stores included, until
// done was called for it or cancel has returned.
type updater struct {
	client *kgo.Client
	group  string // the application's
	log    *slog.Logger

	// done is called from the updater's goroutine when the stores of a task that
	// is to run are complete, or with the error for which a task's can't be.
	done func(*task, error)

	// report is called from the updater's goroutine with the positions of all its
	// tasks, in the form that a member reports them in (KIP-1071): sums over a
	// task's changelogs of the next offset, and of the end offset − 1.
	report func(offsets, ends map[membership.TaskID]int64)

	// onRestore, if not nil, is called from the updater's goroutine.
	onRestore func(RestoreProgress)

	// committed says that only what is committed is read.
	committed bool

	mu       sync.Mutex
	orders   []order
	pause    bool               // nothing is to be read
	wake     context.CancelFunc // ends the poll under way
	stopped  chan struct{}      // closed when run has ended
	reported time.Time

	tasks      map[membership.TaskID]*updating
	changelogs map[changelogKey]*restoration
	paused     bool        // nothing is read
	pending    []*updating // their changelogs are still to be looked up
	shuffled   bool        // who has to wait may have changed
	moved      bool        // positions have changed since they were reported
}

// order is what the thread wants of the updater.
type order struct {
	task   *task
	run    bool          // it is to run: done when its stores are complete
	cancel chan struct{} // not nil: the task is taken away; closed when it is
}

type changelogKey struct {
	topic     string
	partition int32
}

// updating is a task that is with the updater.
type updating struct {
	task       *task
	run        bool // done when its stores are complete
	changelogs []*restoration
}

// reportEvery bounds how often positions are reported. When they are sent is the
// member's business.
const reportEvery = 100 * time.Millisecond

// newUpdater returns an updater whose client is made with opts and is closed
// when run ends. It fetches only what it is told to, starts nowhere by itself
// (an offset that is out of range must surface), and sees transaction markers,
// since a changelog may end with one.
func newUpdater(group string, opts []kgo.Opt, log *slog.Logger, done func(*task, error), report func(offsets, ends map[membership.TaskID]int64)) (*updater, error) {
	client, err := kgo.NewClient(append(slices.Clone(opts),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepControlRecords(),
	)...)
	if err != nil {
		return nil, err
	}
	return &updater{
		client:     client,
		group:      group,
		log:        log,
		done:       done,
		report:     report,
		wake:       func() {},
		stopped:    make(chan struct{}),
		tasks:      make(map[membership.TaskID]*updating),
		changelogs: make(map[changelogKey]*restoration),
	}, nil
}

// update takes a task over and keeps its stores up to date; where it is to run,
// until they are complete. It may be called again for a standby that is to run.
func (u *updater) update(t *task, run bool) { u.order(order{task: t, run: run}) }

// cancel takes a task away and returns when its stores are no longer touched.
// done may or may not have been called for it.
func (u *updater) cancel(t *task) {
	o := order{task: t, cancel: make(chan struct{})}
	u.order(o)
	select {
	case <-o.cancel:
	case <-u.stopped:
	}
}

func (u *updater) order(o order) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.orders = append(u.orders, o)
	u.wake()
}

// run works until ctx ends.
func (u *updater) run(ctx context.Context) {
	defer close(u.stopped)
	defer u.client.Close()
	for ctx.Err() == nil {
		orders, poll, cancel := u.take(ctx)
		for _, o := range orders {
			u.obey(o)
		}
		u.begin(poll)
		u.yieldToRestores()
		u.tellPositions()
		wait := u.probe(poll)
		if u.moved { // too early to tell
			wait = reportEvery
		}
		stop := context.CancelFunc(func() {})
		if wait > 0 {
			poll, stop = context.WithTimeout(poll, wait)
		}
		u.apply(u.client.PollFetches(poll))
		stop()
		cancel()
	}
}

// setPaused says whether nothing is to be read, however long.
func (u *updater) setPaused(paused bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pause = paused
	u.wake()
}

// probe looks whether restorations that nothing comes of wait for offsets that have
// no records. It returns when to do so again, or 0.
func (u *updater) probe(ctx context.Context) (again time.Duration) {
	if u.paused {
		return 0
	}
	for _, r := range u.changelogs {
		if !r.of.run || r.complete() {
			continue
		}
		again = probeAfter
		if time.Since(r.moved) < probeAfter {
			continue
		}
		next, err := probe(ctx, u.client, r.topicID, r.store.log.Topic, r.store.log.Partition, r.store.position, r.target)
		if err != nil {
			u.log.Debug("a look at a changelog that nothing comes of met an error", "topic", r.store.log.Topic, "partition", r.store.log.Partition, "err", err)
		}
		r.moved = time.Now()
		if next > r.store.position {
			r.skipTo(next)
			u.finish(r.of)
		}
	}
	return again
}

// take takes the orders over, and returns the context of the next poll, which
// ends when there is another.
func (u *updater) take(ctx context.Context) ([]order, context.Context, context.CancelFunc) {
	poll, cancel := context.WithCancel(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	orders := u.orders
	u.orders, u.wake = nil, cancel
	if u.pause != u.paused {
		u.paused, u.shuffled = u.pause, true
	}
	return orders, poll, cancel
}

// obey carries an order out as far as that needs no request.
func (u *updater) obey(o order) {
	known := u.tasks[o.task.id]
	if o.cancel != nil {
		if known != nil && known.task == o.task {
			u.drop(known)
		}
		close(o.cancel)
		return
	}
	if known == nil {
		known = &updating{task: o.task}
		u.tasks[o.task.id] = known
	}
	known.run = o.run
	u.lookUp(known)
}

// lookUp has a task's changelogs looked up before the next poll.
func (u *updater) lookUp(of *updating) {
	if !slices.Contains(u.pending, of) {
		u.pending = append(u.pending, of)
	}
}

// yieldToRestores has standbys wait while there are tasks that are to run, and all
// while the application is paused.
func (u *updater) yieldToRestores() {
	if !u.shuffled {
		return
	}
	u.shuffled = false
	restores, standbys := make(map[string][]int32), make(map[string][]int32)
	for key, r := range u.changelogs {
		if r.of.run {
			restores[key.topic] = append(restores[key.topic], key.partition)
		} else {
			standbys[key.topic] = append(standbys[key.topic], key.partition)
		}
	}
	set := func(partitions map[string][]int32, paused bool) {
		if paused {
			u.client.PauseFetchPartitions(partitions)
		} else {
			u.client.ResumeFetchPartitions(partitions)
		}
	}
	set(restores, u.paused)
	set(standbys, u.paused || len(restores) > 0)
}

// apply writes what was fetched to the stores.
func (u *updater) apply(fetches kgo.Fetches) {
	fetches.EachError(func(topic string, partition int32, err error) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrClientClosed) {
			return
		}
		r := u.changelogs[changelogKey{topic, partition}]
		switch {
		case r == nil || retriable(err):
			u.log.Warn("reading a changelog met an error", "topic", topic, "partition", partition, "err", err)
		case errors.Is(err, kerr.OffsetOutOfRange):
			u.stop(r)
			u.lookUp(r.of)
		default:
			u.fail(r.of, fmt.Errorf("read the changelog %s-%d at offset %d: %w", topic, partition, r.store.position, err))
		}
	})
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		r := u.changelogs[changelogKey{p.Topic, p.Partition}]
		if r == nil {
			return
		}
		r.end = max(r.end, endOf(&p, u.committed))
		u.moved, r.moved = true, time.Now()
		err := r.restore(p.Records)
		if err == nil {
			err = r.checkpoint()
		}
		if err == nil && r.store.position >= min(r.end, r.target) {
			err = r.loadInBulk(false)
		}
		if err != nil {
			u.fail(r.of, fmt.Errorf("restore from the changelog %s-%d: %w", p.Topic, p.Partition, err))
			return
		}
		u.tell(r, RestoreBatch)
		u.finish(r.of)
	})
}

// finish hands a task that is to run back when its stores are complete.
func (u *updater) finish(of *updating) {
	if !of.run || slices.ContainsFunc(of.changelogs, func(r *restoration) bool { return !r.complete() }) {
		return
	}
	for _, r := range of.changelogs {
		u.log.Info("restored a state store", "task", of.task.id, "store", r.store.Name(), "records", r.records, "took", time.Since(r.began))
		u.tell(r, RestoreEnd)
	}
	u.drop(of)
	u.done(of.task, nil)
}

func (u *updater) fail(of *updating, err error) {
	u.drop(of)
	u.done(of.task, of.task.fail(err))
}

// drop forgets a task.
func (u *updater) drop(of *updating) {
	u.moved = true
	delete(u.tasks, of.task.id)
	u.pending = slices.DeleteFunc(u.pending, func(p *updating) bool { return p == of })
	for len(of.changelogs) > 0 {
		r := of.changelogs[0]
		if !r.complete() {
			u.tell(r, RestoreSuspended)
		}
		u.stop(r)
	}
}

// stop stops reading a changelog.
func (u *updater) stop(r *restoration) {
	key := r.key()
	partition := map[string][]int32{key.topic: {key.partition}}
	u.client.RemoveConsumePartitions(partition)
	u.client.ResumeFetchPartitions(partition)   // or it would be paused when it comes again
	if err := r.loadInBulk(false); err != nil { // the store says it again when it is used
		u.log.Warn("what was restored of a state store could not be written", "task", r.of.task.id, "store", r.store.Name(), "err", err)
	}
	delete(u.changelogs, key)
	r.of.changelogs = slices.DeleteFunc(r.of.changelogs, func(o *restoration) bool { return o == r })
	u.shuffled = true
}

// tellPositions reports where the tasks are, if that has changed and the last
// report is not too young.
func (u *updater) tellPositions() {
	now := time.Now()
	if !u.moved || now.Sub(u.reported) < reportEvery {
		return
	}
	u.reported, u.moved = now, false
	offsets, ends := make(map[membership.TaskID]int64, len(u.tasks)), make(map[membership.TaskID]int64, len(u.tasks))
	for id, of := range u.tasks {
		if len(of.changelogs) == 0 && !of.task.logged() {
			continue
		}
		var next, end int64
		for _, r := range of.changelogs {
			next += r.store.position
			end += r.end - 1
		}
		offsets[id], ends[id] = next, end
	}
	u.report(offsets, ends)
}
