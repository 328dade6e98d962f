package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// childEnv holds a child's job; where it is set this program is a child.
const childEnv = "ODRADEK_CHECKER_CHILD"

// job is what a process that runs the pipeline is told.
type job struct {
	Application, Proxy, Dir string
	Brokers                 []string
	Users, In, Out          string
	Guarantee               streams.ProcessingGuarantee
	Cache, Verbose          bool
}

func isChild() bool { return os.Getenv(childEnv) != "" }

// transactionTimeout is short, so that those who wait for a process that was killed
// or stopped soon go on.
const transactionTimeout = 5 * time.Second

// runChild runs the pipeline until the process is killed.
func runChild() error {
	var j job
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &j); err != nil {
		return err
	}
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

// child is a process that runs the pipeline, one after the other in the same directory.
type child struct {
	job job
	cmd *exec.Cmd
	log *os.File
}

func (c *child) start() error {
	text, err := json.Marshal(c.job)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if c.log == nil {
		if c.log, err = os.Create(c.job.Dir + ".log"); err != nil {
			return err
		}
	}
	c.cmd = exec.Command(self)
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	return c.cmd.Start()
}

func (c *child) signal(s syscall.Signal) error { return c.cmd.Process.Signal(s) }

func (c *child) kill() {
	if c.cmd != nil {
		c.cmd.Process.Kill()
		c.cmd.Wait()
		c.cmd = nil
	}
}

// ended says whether the process has ended by itself, which it must not.
func (c *child) ended() error {
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WNOHANG, nil)
	if err == nil && pid == 0 {
		return nil
	}
	return fmt.Errorf("process %s ended by itself (status %v, %v); its log ends:\n%s", filepath.Base(c.job.Dir), status, err, c.tail(20))
}

func (c *child) tail(n int) string {
	file, err := os.Open(c.log.Name())
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	var lines []string
	for s := bufio.NewScanner(file); s.Scan(); {
		if lines = append(lines, s.Text()); len(lines) > n {
			lines = lines[1:]
		}
	}
	return strings.Join(lines, "\n")
}
