package taskmgr

import (
	"cmp"
	"context"
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
		kgo.ConsumeResetOffset(cfg.Reset.client()),
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

// SetPaused stops processing, punctuations and restoring, or lets them go on. The
// thread stays the group's member, with its tasks (KIP-834).
func (t *Thread) SetPaused(paused bool) {
	if t.paused.Swap(paused) != paused {
		t.updater.setPaused(paused)
		t.mail.post(func(*news) {})
	}
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

func (t *Thread) all() []*task {
	var tasks []*task
	for _, task := range t.tasks {
		tasks = append(tasks, task)
	}
	return tasks
}
