package streams

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/taskmgr"
)

// App is one instance of an application: one process of the streams group, with
// one member for each of its stream threads.
type App struct {
	cfg      Config
	compiled *Compiled
	process  string // the process id that its members share
	storage  storage
	global   *taskmgr.GlobalThread // nil: no global stores
	queries  *queries

	mu      sync.Mutex
	state   State
	paused  bool
	threads []threadSlot
}

// threadSlot is the place of one stream thread, which can be replaced.
type threadSlot struct {
	thread  *taskmgr.Thread // nil where none runs
	running bool            // it processes all that it is assigned
}

// NewApp returns an App that does nothing until it is run. The error, if any,
// lists all that is wrong: it is ErrTopology or ErrConfig.
func NewApp(t *Topology, cfg Config) (*App, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	compiled, err := t.Compile(cfg)
	if err != nil {
		return nil, err
	}
	queries, err := newQueries(t, cfg)
	if err != nil {
		return nil, err
	}
	return &App{cfg: cfg, compiled: compiled, process: newUUID(), queries: queries, threads: make([]threadSlot, cfg.NumStreamThreads)}, nil
}

// State is the application's state at the moment.
func (a *App) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// Run joins the streams group and processes until ctx ends; then it commits,
// closes its tasks, leaves the group and returns nil. It returns earlier, with
// the error, when a stream thread fails and the configuration's handler does not
// have it replaced: the others are then closed as well.
//
// Among the errors are membership's (errors.Is with [membership.ErrUnsupported],
// [membership.ErrShutdownRequested] …), *taskmgr.TaskError for a record that
// could not be processed, and *taskmgr.ProduceError.
func (a *App) Run(ctx context.Context) error {
	if !a.begin() {
		return ErrStarted
	}
	if err := a.openStorage(); err != nil {
		a.set(PendingError)
		a.set(Error)
		return err
	}
	orDefault(&a.cfg.ClientID, a.cfg.ApplicationID+"-"+a.process)
	if err := a.openGlobal(ctx); err != nil {
		err = errors.Join(err, a.closeStorage())
		if ctx.Err() != nil {
			a.set(NotRunning)
			return nil
		}
		a.set(PendingError)
		a.set(Error)
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(gctx, func() {
		if ctx.Err() != nil {
			a.set(PendingShutdown)
		} else {
			a.set(PendingError)
		}
	})
	var threads sync.WaitGroup
	threads.Add(len(a.threads))
	for i := range a.threads {
		group.Go(func() error {
			defer threads.Done()
			return a.keepRunning(gctx, i)
		})
	}
	// What the threads use, or others ask of their stores, ends after them.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error { threads.Wait(); end(); return nil })
	if a.global != nil {
		group.Go(func() error { return a.global.Run(life) })
	}
	group.Go(func() error { return a.runQueries(life) })
	cleaning, stopCleaning := context.WithCancel(gctx)
	var cleaner sync.WaitGroup
	cleaner.Go(func() { a.keepClean(cleaning) })
	err := group.Wait()
	stop()
	stopCleaning()
	cleaner.Wait()
	if err = errors.Join(err, a.closeStorage()); err != nil {
		a.set(PendingError)
		a.set(Error)
		return err
	}
	a.set(PendingShutdown)
	a.set(NotRunning)
	return nil
}

// ShutdownApplication asks the group coordinator to stop the whole application:
// the Run of every instance, on every host, in Go or Java, ends with an error
// that says so ([membership.ErrShutdownRequested]). It returns at once, and does
// nothing where Run is not under way.
func (a *App) ShutdownApplication() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.threads {
		if t.thread != nil {
			t.thread.RequestShutdown()
		}
	}
}

// Pause stops processing, punctuations and restoring on this instance, before or
// while it runs, until Resume. It stays a member of the group and keeps its tasks,
// which nobody processes meanwhile (KIP-834).
func (a *App) Pause() { a.setPaused(true) }

// Resume ends what Pause began.
func (a *App) Resume() { a.setPaused(false) }

// Paused says whether the instance is paused.
func (a *App) Paused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.paused
}

func (a *App) setPaused(paused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paused = paused
	for _, t := range a.threads {
		if t.thread != nil {
			t.thread.SetPaused(paused)
		}
	}
}

// keepRunning runs a stream thread, and new ones in its place as long as they
// fail and the handler says so, with a growing pause in between.
func (a *App) keepRunning(ctx context.Context, i int) error {
	pause := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(10*time.Second),
		backoff.WithMaxElapsedTime(0),
	)
	for {
		began := time.Now()
		response := ShutdownClient
		err := a.runThread(ctx, i, &response)
		if err == nil || response != ReplaceThread || ctx.Err() != nil {
			return err
		}
		if time.Since(began) > time.Minute {
			pause.Reset()
		}
		wait := pause.NextBackOff()
		a.cfg.Logger.Error("a stream thread failed and is replaced", "thread", i+1, "in", wait, "err", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// runThread runs one stream thread; response is what the handler says to its
// failure.
func (a *App) runThread(ctx context.Context, i int, response *UncaughtExceptionResponse) error {
	endpoint, err := a.cfg.endpoint()
	if err != nil {
		return err
	}
	description := a.compiled.Description
	if a.cfg.TopologyDescriptionPushDisabled {
		description = nil
	}
	id := fmt.Sprintf("%s-StreamThread-%d", a.cfg.ClientID, i+1)
	t, err := taskmgr.NewThread(taskmgr.Config{
		Topology: a.compiled.Tasks,
		Member: membership.Config{
			Group:            a.cfg.ApplicationID,
			ProcessID:        a.process,
			InstanceID:       a.cfg.instanceID(i + 1),
			RackID:           a.cfg.RackID,
			Endpoint:         endpoint,
			ClientTags:       a.cfg.ClientTags,
			RebalanceTimeout: a.cfg.MaxPollInterval,
			StartTimeout:     a.cfg.StartTimeout,
			Topology:         a.compiled.Heartbeat,
			Description:      description,
			Logger:           a.cfg.Logger.With("thread", id),
		},
		Readable:       &a.queries.registry,
		OnEndpoints:    a.queries.endpointsChanged,
		Global:         a.globalState(),
		Directory:      a.storage.ofStores(),
		Disk:           a.storage.disk,
		CacheBytes:     max(0, a.cfg.StateStoreCacheMaxBytes) / int64(a.cfg.NumStreamThreads),
		Client:         a.cfg.clientOptions(),
		ClientID:       id,
		CommitInterval: a.cfg.CommitInterval,

		TransactionalID:    a.cfg.transactionalID(a.process, i+1),
		TransactionTimeout: a.cfg.TransactionTimeout,

		Reset:        a.cfg.AutoOffsetReset.offset,
		CloseTimeout: a.cfg.CloseTimeout,
		Leave:        a.cfg.Leave,
		OnFailure: func(err error) bool {
			if a.cfg.UncaughtExceptionHandler != nil {
				*response = a.cfg.UncaughtExceptionHandler(err)
			}
			return *response == ShutdownApplication
		},
		OnRecordError: a.compiled.OnRecordError,
		OnSendError:   a.onSendError,
		OnRestore:     a.cfg.RestoreListener,
		Paused:        a.Paused(),
		MaxTaskIdle:   a.cfg.MaxTaskIdle,
		OnRunning:     func(running bool) { a.threadRunning(i, running) },
		Logger:        a.cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	a.setThread(i, t)
	t.SetPaused(a.Paused()) // it may have changed meanwhile
	defer a.setThread(i, nil)
	return t.Run(ctx)
}

func (a *App) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != Created {
		return false
	}
	a.change(Rebalancing)
	return true
}

func (a *App) setThread(i int, t *taskmgr.Thread) {
	a.threadRunning(i, false)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.threads[i].thread = t
}

func (a *App) threadRunning(thread int, running bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.threads[thread].running = running
	to := Running
	for _, t := range a.threads {
		if !t.running {
			to = Rebalancing
		}
	}
	if a.state == Rebalancing || a.state == Running {
		a.change(to)
	}
}

// set moves to a state of the way out, which is never gone back.
func (a *App) set(to State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if to > a.state && !(a.state == PendingShutdown && to == PendingError) {
		a.change(to)
	}
}

// change is called with mu held, so that the listener sees the changes in order.
func (a *App) change(to State) {
	from := a.state
	if from == to {
		return
	}
	a.state = to
	a.cfg.Logger.Info("state changed", "application", a.cfg.ApplicationID, "from", from, "to", to)
	if a.cfg.StateListener != nil {
		a.cfg.StateListener(from, to)
	}
}

// newUUID is a random UUID (version 4), the form of Java's process ids.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}
