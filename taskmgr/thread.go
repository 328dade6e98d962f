package taskmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// Config describes a thread.
type Config struct {
	// Topology is what the thread runs.
	Topology Topology

	// Member describes the thread as a member of the group.
	Member membership.Config

	// Client are the options of the thread's clients: seed brokers, TLS, SASL.
	Client []kgo.Opt

	// ClientID names the thread to the broker, and in logs.
	ClientID string

	// Directory is where persistent stores are; nil where the topology has none.
	Directory *Directory

	// Disk is what persistent stores share; nil where the topology has none.
	Disk *state.Disk

	// Global are the instance's global stores; nil where the topology has none.
	Global *GlobalState

	// Readable is where the stores of the thread's tasks can be found by those who
	// read them on other goroutines; nil: nobody does.
	Readable *state.Registry

	// OnEndpoints is told which source partitions each endpoint of the group has,
	// whenever that has changed. It must return quickly. May be nil.
	OnEndpoints func(epoch int32, endpoints []membership.EndpointPartitions)

	// CacheBytes is how much memory changes of stores are held back in, 0 for
	// none (statestore.cache.max.bytes, divided by the number of threads).
	CacheBytes int64

	// CommitInterval is how often offsets are committed (commit.interval.ms).
	CommitInterval time.Duration

	// TransactionalID has all that the thread does committed in transactions, under
	// this id, and only what is committed read (exactly_once_v2, KIP-447). No two
	// threads that run have the same; a thread that replaces another one does. Empty:
	// at least once.
	TransactionalID string

	// TransactionTimeout is after how long the broker aborts a transaction that goes
	// on (transaction.timeout.ms); 0: DefaultTransactionTimeout.
	TransactionTimeout time.Duration

	// Reset is where a partition without a committed offset begins
	// (auto.offset.reset).
	Reset Reset

	// CloseTimeout bounds how long the thread takes to end after its context
	// has: to commit, to close its tasks, and to leave the group.
	CloseTimeout time.Duration

	// Leave is how the member leaves the group when the thread ends.
	Leave membership.LeaveMode

	// OnFailure is asked when the thread has failed of itself, after its tasks
	// are closed: true stops the whole application, on every host.
	OnFailure func(err error) (shutdownApplication bool)

	// OnRecordError is asked about a record that its task could not process, with
	// the error. It may send records to out, such as a dead letter. Nil goes on
	// with the next record, and any error fails the thread. It is not asked where
	// the record is not to blame. A nil function fails the thread.
	OnRecordError func(task membership.TaskID, rec *kgo.Record, err error, out Collector) error

	// OnSendError is asked about a record that the broker refused: true goes on
	// without it. It is called from one of the client's goroutines and must not
	// block. A nil function fails the thread.
	OnSendError func(rec *kgo.Record, err error) bool

	// OnRestore is told how stores are restored, from one of the thread's
	// goroutines. It must return quickly. May be nil.
	OnRestore func(RestoreProgress)

	// Paused has the thread begin paused; see Thread.SetPaused.
	Paused bool

	// MaxTaskIdle is how long a task waits for records of a partition that has
	// none (max.task.idle.ms); negative: not at all.
	MaxTaskIdle time.Duration

	// OnRunning is called from the thread's goroutine when the thread begins to
	// process all that it is assigned, and when it no longer does.
	OnRunning func(running bool)

	// Logger takes what the thread has to say; never nil.
	Logger *slog.Logger
}

const (
	// maxPollRecords bounds how much is taken from the client at a time.
	maxPollRecords = 10_000

	// confirmWait is how long a thread waits before it looks again whether it is
	// confirmed as a member.
	confirmWait = 20 * time.Millisecond

	// directoryWait is how long a thread waits before it looks again whether
	// another thread has left a task's directory.
	directoryWait = 50 * time.Millisecond

	// turnTime bounds how long a thread processes before it looks up.
	turnTime = 200 * time.Millisecond

	// taskTimeout bounds how long a commit or a fetch of offsets is retried
	// (Java's task.timeout.ms).
	taskTimeout = 5 * time.Minute
)

// Thread is one stream thread: one member of the group and its tasks.
type Thread struct {
	cfg     Config
	log     *slog.Logger
	client  *kgo.Client
	loop    *membership.Loop
	updater *updater
	out     *producer
	mail    *mailbox
	storage storage
	paused  atomic.Bool

	tasks    map[membership.TaskID]*task
	inputs   map[string]map[int32]*input // of the running tasks
	queued   []*task                     // those that have records to process
	idle     []*task                     // those that have, and wait for others
	ready    bool                        // the group is ready to process
	becoming bool                        // it is, from the next assignment on
	assigned bool                        // an assignment was taken
	waiting  bool                        // a task's directory is still another thread's
	running  bool                        // as last told to OnRunning
	patterns bool                        // there are patterns of source topics
	scanned  scan
	commitAt time.Time

	unfinished *news           // that an error has interrupted
	aborts     backoff.BackOff // since the last commit; nil: none
}

// NewThread returns a thread that has not begun to do anything.
func NewThread(cfg Config) (*Thread, error) {
	t := &Thread{
		cfg:    cfg,
		log:    cfg.Logger.With("thread", cfg.ClientID),
		tasks:  make(map[membership.TaskID]*task),
		inputs: make(map[string]map[int32]*input),
		ready:  true,
		mail:   newMailbox(),

		patterns: cfg.Topology.hasPatterns(),
	}
	t.storage = storage{dir: cfg.Directory, disk: cfg.Disk, global: cfg.Global, log: t.log, exactlyOnce: cfg.TransactionalID != ""}
	t.storage.readable, t.storage.confirmed = cfg.Readable, func() bool { return t.loop.Confirmed() }
	if cfg.CacheBytes > 0 {
		t.storage.cache = state.NewCache(cfg.CacheBytes)
	}
	if t.cfg.Member.RebalanceTimeout == 0 {
		t.cfg.Member.RebalanceTimeout = membership.DefaultRebalanceTimeout
	}
	opts := append(slices.Clone(cfg.Client), kgo.ClientID(cfg.ClientID))
	if t.storage.exactlyOnce {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	var err error
	if t.client, err = kgo.NewClient(append(slices.Clone(opts),
		kgo.RecordPartitioner(Partitioner()),
		kgo.ConsumeResetOffset(cfg.Reset(time.Now())),
		kgo.KeepControlRecords(), // or a partition that ends with one would seem to have more
	)...); err != nil {
		return nil, err
	}
	if t.updater, err = newUpdater(cfg.Member.Group, append(opts, kgo.ClientID(cfg.ClientID+"-restore")), t.log, t.mail.restored, t.tellPositions); err != nil {
		t.client.Close()
		return nil, err
	}
	t.updater.onRestore, t.updater.committed = cfg.OnRestore, t.storage.exactlyOnce
	t.SetPaused(cfg.Paused)
	if t.loop, err = membership.NewLoop(t.client, t.cfg.Member, membership.Callbacks{
		OnAssignment: t.mail.assignment,
		OnTasksLost:  t.mail.lost,
		OnReady:      func(ready bool, _ []membership.Status) { t.mail.ready(ready) },
		OnEndpoints:  cfg.OnEndpoints,
	}); err != nil {
		t.discard()
		return nil, err
	}
	return t, nil
}

// discard frees what a thread holds that will not be run.
func (t *Thread) discard() {
	t.client.Close()
	t.updater.client.Close()
}

// Run joins the group and processes until ctx ends, and then commits, closes its
// tasks and leaves, all within CloseTimeout. It returns nil, or the error that
// stopped the thread: one of membership's, a *TaskError, *ProduceError or
// *CommitError. A thread runs once.
func (t *Thread) Run(ctx context.Context) error {
	// What has to go on while the thread closes lives in a context of its own.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		deadline := time.AfterFunc(t.cfg.CloseTimeout, end)
		context.AfterFunc(life, func() { deadline.Stop() })
	})()

	t.tellPositions(make(map[membership.TaskID]int64), nil) // of what is on disk
	t.out = newProducer(life, t.client, t.transactions(), t.cfg.OnSendError)
	var group errgroup.Group
	group.Go(func() error { t.updater.run(life); return nil })
	group.Go(func() error {
		err := t.loop.Run(life)
		t.mail.left(err)
		return nil
	})

	err := t.close(life, t.work(ctx, life))
	end()
	group.Wait()
	t.out.disconnect()
	t.client.Close()
	return err
}

// transactions are those of the thread, nil where there are none.
func (t *Thread) transactions() *transactions {
	if t.cfg.TransactionalID == "" {
		return nil
	}
	return &transactions{
		id: t.cfg.TransactionalID, timeout: cmp.Or(t.cfg.TransactionTimeout, DefaultTransactionTimeout),
		opts: append(slices.Clone(t.cfg.Client), kgo.ClientID(t.cfg.ClientID+"-producer")),
	}
}

// work is the thread's main loop: take the news, poll, process, commit.
func (t *Thread) work(ctx, life context.Context) error {
	t.commitAt = time.Now().Add(t.cfg.CommitInterval)
	for ctx.Err() == nil {
		if err := t.turn(ctx, life); err != nil {
			if err := t.survive(ctx, life, err); err != nil {
				return err
			}
		}
		t.loop.Progress()
	}
	return nil
}

func (t *Thread) turn(ctx, life context.Context) error {
	if err := t.takeNews(life); err != nil {
		return err
	}
	if t.waiting {
		if err := t.openTasks(); err != nil {
			return err
		}
	}
	if err := t.takeNewTopics(life); err != nil {
		return err
	}
	t.tellRunning()
	if err := t.process(ctx, t.poll(ctx)); err != nil {
		return err
	}
	if err := t.punctuate(); err != nil {
		return err
	}
	now := time.Now()
	if now.Before(t.commitAt) {
		if tasks := t.requestedCommits(); len(tasks) > 0 {
			return t.commit(life, tasks)
		}
		return nil
	}
	t.commitAt = now.Add(t.cfg.CommitInterval)
	return t.commit(life, t.runningTasks())
}

// punctuate makes the calls that tasks have scheduled and that are due.
func (t *Thread) punctuate() (err error) {
	defer recovered(&err)
	if !t.mayProcess() {
		return nil
	}
	for _, task := range t.tasks {
		if task.state == running {
			if err := task.punctuate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestedCommits are the tasks whose code has asked for a commit.
func (t *Thread) requestedCommits() []*task {
	var tasks []*task
	for _, task := range t.tasks {
		if task.ctx.commit {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// noWait has kgo return what it has fetched already.
var noWait context.Context

// poll returns what was fetched; it waits for it until there is news, the time
// to commit has come, or progress has to be shown. What is queued is processed
// before more is fetched.
func (t *Thread) poll(ctx context.Context) kgo.Fetches {
	held := !t.mayProcess()
	if !held {
		t.wakeIdle(ctx)
	}
	if !held && len(t.queued) > 0 {
		return nil
	}
	if !held {
		if fetches := t.client.PollRecords(noWait, maxPollRecords); len(fetches) > 0 {
			return fetches
		}
	}
	wait := min(time.Until(t.commitAt), t.cfg.Member.RebalanceTimeout/3)
	if t.waiting {
		wait = min(wait, directoryWait)
	}
	if len(t.idle) > 0 {
		wait = min(wait, idleWait)
	}
	for _, task := range t.tasks {
		if due, any := task.ctx.nextPunctuation(); any && task.state == running {
			wait = min(wait, time.Until(due))
		}
	}
	if held && t.ready && !t.paused.Load() {
		wait = min(wait, confirmWait)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if !t.mail.wakes(cancel) {
		return nil
	}
	if held {
		<-ctx.Done()
		return nil
	}
	return t.client.PollRecords(ctx, maxPollRecords)
}

// mayProcess says whether records may be processed: the group is ready, and has
// lately confirmed that the thread is its member. A process that was stopped for
// a while may have lost its tasks to others without knowing.
func (t *Thread) mayProcess() bool { return t.ready && t.loop.Confirmed() && !t.paused.Load() }

// SetPaused stops processing, punctuations and restoring, or lets them go on. The
// thread stays the group's member, with its tasks (KIP-834).
func (t *Thread) SetPaused(paused bool) {
	if t.paused.Swap(paused) != paused {
		t.updater.setPaused(paused)
		t.mail.post(func(*news) {})
	}
}

// process runs what was fetched through the tasks. A panic of the code that it
// calls is an error like any other.
func (t *Thread) process(ctx context.Context, fetches kgo.Fetches) (err error) {
	defer recovered(&err)
	fetches.EachError(func(topic string, partition int32, e error) {
		var lost *kgo.ErrDataLoss
		switch {
		case errors.Is(e, context.Canceled), errors.Is(e, context.DeadlineExceeded):
		case errors.As(e, &lost), retriable(e):
			t.log.Warn("reading a source topic met an error", "topic", topic, "partition", partition, "err", e)
		default:
			err = errors.Join(err, fmt.Errorf("read %s-%d: %w", topic, partition, e))
		}
	})
	if err != nil {
		return err
	}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		in := t.inputs[p.Topic][p.Partition]
		if in == nil || len(p.Records) == 0 {
			return
		}
		t.idle = slices.DeleteFunc(t.idle, func(idle *task) bool { return idle == in.task })
		in.take(&p)
		if !slices.Contains(t.queued, in.task) {
			t.queued = append(t.queued, in.task)
		}
	})
	// However slow a record is, the thread looks up in time: at the end of its
	// context, at news, at the time to commit, and to show progress.
	until := time.Now().Add(turnTime)
	if t.commitAt.Before(until) {
		until = t.commitAt
	}
	mayGoOn := func() bool {
		return time.Now().Before(until) && ctx.Err() == nil && !t.mail.waiting() && t.mayProcess()
	}
	for len(t.queued) > 0 {
		task := t.queued[0]
		if err := task.process(mayGoOn); err != nil {
			return err
		}
		t.queued = t.queued[1:]
		if len(task.inputs) > 1 {
			t.hold(task)
		}
		switch {
		case !task.queued():
		case task.waits():
			t.idle = append(t.idle, task)
		default:
			t.queued = append(t.queued, task) // the others have their turn first
			return nil
		}
	}
	return nil
}

func (t *Thread) runningTasks() []*task {
	var tasks []*task
	for _, task := range t.tasks {
		if task.state == running {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// tellPositions is called by the updater.
func (t *Thread) tellPositions(offsets, ends map[membership.TaskID]int64) {
	if t.storage.dir != nil {
		t.storage.dir.addDormant(offsets)
	}
	t.loop.SetTaskOffsets(offsets, ends)
}

func (t *Thread) tellRunning() {
	is := t.ready && t.assigned
	for _, task := range t.tasks {
		is = is && (task.state == running || task.state == standby)
	}
	if is != t.running {
		t.running = is
		t.cfg.OnRunning(is)
	}
}

// close ends all tasks and the membership after the thread has ended for a reason,
// nil where it was told to. It returns the reason, with what else went wrong.
//
// Tasks are committed where the thread is still the group's member and they are
// whole. Java's member that fails goes without a word; ours leaves, so that its
// tasks move on at once and not after the session time-out.
func (t *Thread) close(ctx context.Context, reason error) error {
	shutdown := errors.Is(reason, membership.ErrShutdownRequested)
	err, untrusted := reason, reason
	if reason == nil || shutdown {
		untrusted = nil
		switch e := t.commit(ctx, t.runningTasks()); {
		case errors.Is(e, errFenced):
			untrusted = e
			t.log.Warn("the last commit was refused: another member repeats what it held", "err", e)
		case e != nil && ctx.Err() != nil:
			untrusted = e
			err = errors.Join(err, fmt.Errorf("%w of %v: %v", ErrCloseTimeout, t.cfg.CloseTimeout, e))
		case e != nil:
			untrusted = e
			err = errors.Join(err, e)
		}
	}
	var task *TaskError
	if errors.As(reason, &task) && !t.out.transactional() { // where they would be aborted
		t.flushLetters(ctx)
	}
	if untrusted != nil {
		err = errors.Join(err, t.undo(ctx, t.all(), untrusted))
	} else {
		err = errors.Join(err, t.closeTasks(t.all(), nil))
	}
	if reason == nil || shutdown {
		err = errors.Join(err, t.flushLast(ctx))
	}
	switch {
	case shutdown:
		// The coordinator tells the others as long as the member that asked for
		// the shutdown is there. So nobody leaves: the session time-out ends it.
		return err
	case reason != nil && t.cfg.OnFailure(reason):
		return errors.Join(err, t.shutdownApplication(ctx))
	}
	leave := t.cfg.Leave
	if reason != nil && leave == membership.LeaveDefault && t.cfg.Member.InstanceID == "" {
		leave = membership.LeaveGroup // the default is Java's, which says nothing
	}
	if e := t.loop.Leave(ctx, leave); e != nil && reason == nil {
		err = errors.Join(err, fmt.Errorf("leave the group: %w", e))
	}
	return err
}

// flushLast writes what processors have sent when they were closed.
func (t *Thread) flushLast(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	if t.out.inTransaction() {
		return t.commit(ctx, nil)
	}
	if t.out.sent.pending.Load() == 0 {
		return nil
	}
	return t.out.flush(ctx)
}

// letterTimeout is how long a thread that fails waits until its dead letter, if
// there is one, is written.
const letterTimeout = 5 * time.Second

func (t *Thread) flushLetters(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, letterTimeout)
	defer cancel()
	if err := t.out.flush(ctx); err != nil {
		t.log.Warn("what was sent before the failure may not be written", "err", err)
	}
}

// shutdownApplication asks the group coordinator to stop every member, and waits
// until it has taken that in.
func (t *Thread) shutdownApplication(ctx context.Context) error {
	t.loop.RequestShutdown()
	if err := t.mail.waitLeft(ctx); !errors.Is(err, membership.ErrShutdownRequested) {
		return fmt.Errorf("ask the group to shut the application down: %w", err)
	}
	return nil
}

// RequestShutdown asks the group coordinator to stop every member of the group,
// this one included: its Run ends with membership.ErrShutdownRequested.
func (t *Thread) RequestShutdown() { t.loop.RequestShutdown() }

func (t *Thread) all() []*task {
	var tasks []*task
	for _, task := range t.tasks {
		tasks = append(tasks, task)
	}
	return tasks
}
