package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// job is what a process that runs the application is told.
type job struct {
	Brokers      []string
	Address, Dir string
	Guarantee    streams.ProcessingGuarantee
}

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

// runChild runs the application until it is told to stop.
func runChild(j job) error {
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
	return app.Run(ctx)
}

// stopPatience is how long a process has to stop by itself.
const stopPatience = 20 * time.Second

// process runs the application, one child after the other, at the same address and in
// the same directory.
type process struct {
	kafkatest.Child
	address string
}

func newProcess(j job) *process {
	return &process{kafkatest.Child{Job: j, Log: j.Dir + ".log"}, j.Address}
}
