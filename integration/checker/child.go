package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// job is what a process that runs the pipeline is told.
type job struct {
	Application, Proxy, Dir string
	Brokers                 []string
	Users, In, Out          string
	Guarantee               streams.ProcessingGuarantee
	Cache, Verbose          bool
}

// transactionTimeout is short, so that those who wait for a process that was killed
// or stopped soon go on.
const transactionTimeout = 5 * time.Second

// runChild runs the pipeline until the process is killed.
func runChild(j job) error {
	options := []kgo.Opt{kgo.Dialer(through(j.Proxy))}
	if j.Verbose {
		options = append(options, kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, func() string { return time.Now().Format("15:04:05.000 ") })))
	}
	cache := int64(-1) // none: every count is sent
	if j.Cache {
		cache = 0 // the default
	}
	app, err := streams.NewApp(pipeline(j.Users, j.In, j.Out), streams.Config{
		ApplicationID: j.Application, Brokers: j.Brokers, StateDir: j.Dir,
		ProcessingGuarantee: j.Guarantee, TransactionTimeout: transactionTimeout,
		CommitInterval: 100 * time.Millisecond, NumStreamThreads: 2,
		StateStoreCacheMaxBytes:  cache,
		ClientOptions:            options,
		StartTimeout:             5 * time.Minute,
		UncaughtExceptionHandler: func(error) streams.UncaughtExceptionResponse { return streams.ReplaceThread },
		Logger:                   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		return err
	}
	return app.Run(context.Background())
}

// pipeline counts, for each pair of a user's group and a value, how often it comes: a
// join with the table of users, a repartition, and a count in a store on disk. A user
// that isn't found, which must not be, makes a pair that nobody has sent.
func pipeline(users, in, out string) *streams.Topology {
	b := streams.NewBuilder()
	groups := streams.Table[string, string](b, users)
	joined := streams.LeftJoinTable(streams.Stream[string, string](b, in), groups, func(value, group string) string { return group + value })
	streams.GroupBy(joined, func(_, value string) string { return value }, streams.Grouped[string, string]{Name: "pairs"}).
		Count(streams.MaterializedWith("counts", serde.String, serde.Int64)).ToStream().To(out)
	return b.Build()
}

// through dials by way of the proxy, which is told the address on the first line.
func through(proxy string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, proxy)
		if err != nil {
			return nil, err
		}
		if _, err := fmt.Fprintf(conn, "%s\n", address); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
}
