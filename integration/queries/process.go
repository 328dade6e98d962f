package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// childEnv holds a child's job; where it is set this program is a child.
const childEnv = "ODRADEK_QUERIES_CHILD"

// job is what a process that runs the application is told.
type job struct {
	Brokers      []string
	Address, Dir string
	Guarantee    streams.ProcessingGuarantee
}

func isChild() bool { return os.Getenv(childEnv) != "" }

// The stores.
const (
	latestStore  = "latest"  // of each key the last value
	countsStore  = "counts"  // how many it has had
	windowsStore = "windows" // how many in each window
)

// windowSize is that of the windows, which begin at multiples of it.
const windowSize = 5 * time.Second

// application is what the processes run.
func application() *streams.Topology {
	b := streams.NewBuilder()
	events := streams.Stream[string, string](b, inputTopic)
	events.ToTable(streams.MaterializedWith(latestStore, serde.String, serde.String))
	byKey := events.GroupByKey()
	byKey.Count(streams.MaterializedWith(countsStore, serde.String, serde.Int64))
	windowed := streams.MaterializedWith(windowsStore, serde.String, serde.Int64)
	windowed.Retention = 24 * time.Hour
	streams.WindowedBy(byKey, streams.TimeWindows{Size: windowSize, Grace: time.Hour}).Count(windowed)
	return b.Build()
}

// transactionTimeout is short, so that those who wait for a process that was killed
// or paused soon go on.
const transactionTimeout = 5 * time.Second

// runChild runs the application until it is told to stop, or its parent has ended,
// which the end of its input says.
func runChild() error {
	var j job
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &j); err != nil {
		return err
	}
	app, err := streams.NewApp(application(), streams.Config{
		ApplicationID: applicationID, Brokers: j.Brokers, StateDir: j.Dir, ApplicationServer: j.Address,
		ProcessingGuarantee: j.Guarantee, TransactionTimeout: transactionTimeout,
		CommitInterval: 100 * time.Millisecond, NumStreamThreads: 2, StartTimeout: time.Minute,
		Queries:                  iq.Options{Listen: true, Server: iq.ServerOptions{MaxEntries: 10_000_000}},
		UncaughtExceptionHandler: func(error) streams.UncaughtExceptionResponse { return streams.ReplaceThread },
		Logger:                   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return app.Run(ctx)
}

// process runs the application, one child after the other, at the same address and in
// the same directory.
type process struct {
	job   job
	cmd   *exec.Cmd
	stdin io.Closer // keeps the child alive
	ended chan error
}

func (p *process) logFile() string { return p.job.Dir + ".log" }

func (p *process) start() error {
	text, err := json.Marshal(p.job)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.ended = cmd, make(chan error, 1)
	go func(ended chan<- error) { ended <- cmd.Wait() }(p.ended)
	return nil
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// stopPatience is how long a process has to stop by itself.
const stopPatience = 20 * time.Second

// stop asks the process to end, and waits until it has.
func (p *process) stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		p.cmd = nil
		if err != nil {
			return fmt.Errorf("the process at %s was asked to end: %w; see %s", p.job.Address, err, p.logFile())
		}
		return nil
	case <-time.After(stopPatience):
		return fmt.Errorf("the process at %s did not end within %v; see %s", p.job.Address, stopPatience, p.logFile())
	}
}

func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // fails only if it has ended
		<-p.ended
		p.cmd = nil
	}
}

// lives is an error if the process has ended by itself, which it must not.
func (p *process) lives() error {
	if p.cmd == nil {
		return nil
	}
	select {
	case err := <-p.ended:
		p.cmd = nil
		return errors.Join(fmt.Errorf("the process at %s ended by itself; see %s", p.job.Address, p.logFile()), err)
	default:
		return nil
	}
}
