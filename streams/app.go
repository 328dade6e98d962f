package streams

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/taskmgr"
)

// App is one instance of an application: one process of the streams group, with
// one member for each of its stream threads.
type App struct {
	cfg      Config
	compiled *compiled
	process  string // the process id that its members share

	mu      sync.Mutex
	state   State
	running []bool // by thread
}

// NewApp returns an App that does nothing until it is run. The error, if any,
// lists all that is wrong: it is ErrTopology or ErrConfig.
func NewApp(t *Topology, cfg Config) (*App, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	compiled, err := t.compile(cfg.ApplicationID, cfg.ReplicationFactor)
	if err != nil {
		return nil, err
	}
	a := &App{cfg: cfg, compiled: compiled, process: newUUID(), running: make([]bool, cfg.NumStreamThreads)}
	if a.cfg.ClientID == "" {
		a.cfg.ClientID = cfg.ApplicationID + "-" + a.process
	}
	return a, nil
}

// State is the application's state at the moment.
func (a *App) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// Run joins the streams group and processes until ctx ends; then it commits,
// closes its tasks, leaves the group and returns nil. It returns earlier, with
// the error, when a stream thread fails: the others are then closed as well.
//
// Among the errors are membership's (errors.Is with [membership.ErrUnsupported],
// [membership.ErrShutdownRequested] …), *taskmgr.TaskError for a record that
// could not be processed, and *taskmgr.ProduceError.
func (a *App) Run(ctx context.Context) error {
	if !a.begin() {
		return ErrStarted
	}
	threads, err := a.threads()
	if err != nil {
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
	for _, t := range threads {
		group.Go(func() error { return t.Run(gctx) })
	}
	err = group.Wait()
	stop()
	if err != nil {
		a.set(PendingError)
		a.set(Error)
		return err
	}
	a.set(PendingShutdown)
	a.set(NotRunning)
	return nil
}

func (a *App) threads() ([]*taskmgr.Thread, error) {
	threads := make([]*taskmgr.Thread, a.cfg.NumStreamThreads)
	for i := range threads {
		id := fmt.Sprintf("%s-StreamThread-%d", a.cfg.ClientID, i+1)
		t, err := taskmgr.NewThread(taskmgr.Config{
			Topology: a.compiled.topology,
			Member: membership.Config{
				Group:            a.cfg.ApplicationID,
				ProcessID:        a.process,
				RebalanceTimeout: a.cfg.MaxPollInterval,
				StartTimeout:     a.cfg.StartTimeout,
				Topology:         a.compiled.wire,
				Description:      a.compiled.description,
				Logger:           a.cfg.Logger.With("thread", id),
			},
			Client:         a.cfg.clientOptions(),
			ClientID:       id,
			CommitInterval: a.cfg.CommitInterval,
			Reset:          a.cfg.AutoOffsetReset.offset(),
			CloseTimeout:   a.cfg.CloseTimeout,
			OnRunning:      func(running bool) { a.threadRunning(i, running) },
			Logger:         a.cfg.Logger,
		})
		if err != nil {
			for _, made := range threads[:i] {
				made.Discard()
			}
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		threads[i] = t
	}
	return threads, nil
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

func (a *App) threadRunning(thread int, running bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[thread] = running
	to := Running
	for _, r := range a.running {
		if !r {
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
