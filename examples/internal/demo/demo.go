package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// Program is an example.
type Program struct {
	// Name is the command's, and the application's id.
	Name string

	// Partitions is how many each input topic has.
	Partitions int32

	// Inputs are the topics that the application reads.
	Inputs []string

	// Outputs are the topics that it writes.
	Outputs []Output

	// Sample returns records for the inputs, when it is now, in steps: what is in
	// one step is processed before the next one comes.
	Sample func(now time.Time) (steps [][]*kgo.Record, err error)

	// Run runs the application until ctx ends.
	Run func(ctx context.Context, cfg streams.Config) error
}

// options are the command line.
type options struct {
	brokers       string
	applicationID string
	feed          bool
	verbose       bool
}

var errUsage = errors.New("usage") // of which the flag set has told

// Main is the program's main function.
func Main(p Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	switch err := Run(ctx, p, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.Name, strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}

// Run runs the program with a command line. It returns when all of the sample is
// processed or, on a real cluster, when ctx ends.
func Run(ctx context.Context, p Program, args []string, stdout, stderr io.Writer) error {
	var o options
	f := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.brokers, "brokers", "", "be an instance of the application on the Kafka cluster at `host:port,…`, until Ctrl-C, instead of on an embedded broker")
	f.StringVar(&o.applicationID, "application-id", p.Name, "the application's id, which is its group's")
	f.BoolVar(&o.feed, "feed", false, "with -brokers: produce the sample to the input topics")
	f.BoolVar(&o.verbose, "v", false, "log what the application does to standard error")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return errUsage
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: flags begin with -", f.Arg(0))
	}
	cfg := streams.Config{ApplicationID: o.applicationID, Logger: logger(o, stderr)}
	if o.brokers != "" {
		cfg.Brokers = strings.Split(o.brokers, ",")
		return p.onCluster(ctx, o, cfg, stdout)
	}
	return p.embedded(ctx, cfg, stdout)
}

func logger(o options, stderr io.Writer) *slog.Logger {
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
}

// embedded runs the sample through the application on an embedded broker.
func (p Program) embedded(ctx context.Context, cfg streams.Config, stdout io.Writer) error {
	broker, err := streamstest.NewBroker()
	if err != nil {
		return err
	}
	defer broker.Close()
	dir, err := os.MkdirTemp("", "odradek-example-")
	if err != nil {
		return fmt.Errorf("a directory for state stores: %w", err)
	}
	defer os.RemoveAll(dir)
	cfg.Brokers, cfg.StateDir = broker.Addrs(), dir
	cfg.CommitInterval = 100 * time.Millisecond // not 30 s, because we wait for commits

	w, err := open(ctx, p, cfg, stdout)
	if err != nil {
		return err
	}
	defer w.client.Close()
	steps, err := p.Sample(time.Now())
	if err != nil {
		return err
	}
	work, done := context.WithCancel(ctx)
	defer done()
	group, gctx := errgroup.WithContext(work)
	group.Go(func() error { return p.Run(gctx, cfg) })
	group.Go(func() error {
		defer done()
		for _, records := range steps {
			if err := w.step(gctx, records); err != nil {
				return ended(gctx, err)
			}
		}
		return nil
	})
	return group.Wait()
}

// onCluster runs an instance of the application on a real cluster.
func (p Program) onCluster(ctx context.Context, o options, cfg streams.Config, stdout io.Writer) error {
	w, err := open(ctx, p, cfg, stdout)
	if err != nil {
		return err
	}
	defer w.client.Close()
	if o.feed {
		steps, err := p.Sample(time.Now())
		if err != nil {
			return err
		}
		if err := w.feed(ctx, slices.Concat(steps...)); err != nil {
			return err
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Run(gctx, cfg) })
	group.Go(func() error { return ended(gctx, w.print(gctx)) })
	return group.Wait()
}

// ended is nil where an error is only that the context has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
