// Wordcount counts the words of a text with a streams application.
//
//	go run ./examples/wordcount
//
// starts an embedded broker, feeds it a text, prints counts as they change and
// the totals at the end. With -brokers it is an instance of the application on a
// real cluster, Apache Kafka 4.1 or later. See -help.
//
// The application is in topology.go; the rest is what a program needs around it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	switch err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case ctx.Err() != nil && errors.Is(err, context.Canceled): // interrupted before there was anything to end
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "wordcount:", oneLine(err))
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	input         string
	brokers       string
	applicationID string
	threads       int
	once          bool
	inputTopic    string
	outputTopic   string
	partitions    int
	stateDir      string
	verbose       bool
}

// errUsage is a wrong command line, of which the flag set has said what is wrong.
var errUsage = errors.New("usage")

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("wordcount", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.input, "input", "", "count the words of `FILE`, a record a line; - is standard input (default: a text of ours on the embedded broker, nothing with -brokers)")
	f.StringVar(&o.brokers, "brokers", "", "use the Kafka cluster at `host:port,…` instead of an embedded broker")
	f.StringVar(&o.applicationID, "application-id", "wordcount", "the application's id, which is its group's")
	f.IntVar(&o.threads, "threads", 1, "stream threads, each of them a member of the group")
	f.BoolVar(&o.once, "once", false, "stop when all that is in the input topic has been counted, and print word<TAB>count sorted by word, nothing else")
	f.StringVar(&o.inputTopic, "input-topic", "wordcount-input", "the topic with the lines")
	f.StringVar(&o.outputTopic, "output-topic", "wordcount-output", "the topic for the counts")
	f.IntVar(&o.partitions, "partitions", 4, "partitions of topics that are created because they are missing")
	f.StringVar(&o.stateDir, "state-dir", "", "keep the counts on disk below `DIR`, which each instance has for itself, and find them again after a restart (default: in memory)")
	f.BoolVar(&o.verbose, "v", false, "log what the application does to standard error")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, errUsage
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: flags come first, the text with -input", f.Arg(0))
	case o.brokers != "" && len(addresses(o.brokers)) == 0:
		return o, fmt.Errorf("-brokers %q names no broker: give host:port", o.brokers)
	case o.threads < 1:
		return o, fmt.Errorf("-threads is %d; it takes at least one", o.threads)
	case o.inputTopic == o.outputTopic:
		return o, fmt.Errorf("-input-topic and -output-topic are both %q; counts are no lines", o.inputTopic)
	case o.partitions > maxPartitions:
		return o, fmt.Errorf("-partitions is %d; %d is more than enough", o.partitions, maxPartitions)
	case o.partitions < 1:
		return o, fmt.Errorf("-partitions is %d; it takes at least one", o.partitions)
	}
	return o, nil
}

// maxPartitions keeps a slip of the finger from a broker.
const maxPartitions = 10_000

// commitInterval is shorter than Kafka Streams' 30 s because the program waits
// for commits to know that all has been counted.
const commitInterval = 200 * time.Millisecond

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	input, err := open(o, stdin)
	if err != nil {
		return err
	}
	if input != nil {
		defer input.Close()
	}
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))

	brokers := addresses(o.brokers)
	var clientOptions []kgo.Opt
	if len(brokers) == 0 {
		broker, err := streamstest.NewBroker(streamstest.WithKfake(
			kfake.BrokerConfigs(map[string]string{"message.max.bytes": fmt.Sprint(maxLine + batchOverhead)}),
		))
		if err != nil {
			return fmt.Errorf("start the embedded broker: %w", err)
		}
		defer broker.Close()
		brokers = broker.Addrs()
		clientOptions = append(clientOptions, kgo.ProducerBatchMaxBytes(maxLine+batchOverhead)) // the embedded broker takes them
	}
	client, err := newClient(ctx, brokers)
	if err != nil {
		return err
	}
	defer client.Close()
	topics, err := prepareTopics(ctx, client, o)
	if err != nil {
		return err
	}

	var restoring func(streams.RestoreProgress)
	if isTerminal(stderr) {
		restoring = newProgress(stderr).listen
	}
	ready := make(chan struct{})
	app, err := streams.NewApp(topology(o), streams.Config{
		ApplicationID:    o.applicationID,
		Brokers:          brokers,
		NumStreamThreads: o.threads,
		CommitInterval:   commitInterval,
		StateDir:         o.stateDir,
		// Every count is sent, not only the last of each word before a commit.
		StateStoreCacheMaxBytes: -1,
		RestoreListener:         restoring,
		ClientOptions:           clientOptions,
		StateListener: func(_, to streams.State) {
			fmt.Fprintln(stderr, "wordcount:", to)
			if to == streams.Running {
				select {
				case <-ready:
				default:
					close(ready)
				}
			}
		},
		Logger: logger,
	})
	if err != nil {
		return err
	}

	// The application runs until what the program is for is done, or one of its
	// parts fails; an interrupt is a normal end.
	work, done := context.WithCancel(ctx)
	defer done()
	group, gctx := errgroup.WithContext(work)
	group.Go(func() error { defer done(); return app.Run(gctx) })
	if !o.once {
		group.Go(func() error { return printChanges(gctx, brokers, topics.outputEnds, stdout) })
	}
	counted := false
	group.Go(func() error {
		if input != nil {
			lines, err := feed(gctx, client, o.inputTopic, input)
			if err != nil {
				return ended(gctx, err)
			}
			fmt.Fprintln(stderr, "wordcount: fed", lines, "lines")
		}
		if !o.once && o.brokers != "" {
			return nil // one more instance of the application, until it is told to stop
		}
		if err := waitCounted(gctx, client, o, ready); err != nil {
			return ended(gctx, err)
		}
		counted = true
		done()
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if !counted {
		return nil
	}
	totals, err := readTotals(ctx, brokers, client, o.outputTopic)
	if err != nil {
		return err
	}
	if !o.once {
		fmt.Fprintln(stdout, "\ntotals:")
	}
	return printTotals(stdout, totals)
}

// addresses splits a list of brokers.
func addresses(list string) (brokers []string) {
	for b := range strings.SplitSeq(list, ",") {
		if b = strings.TrimSpace(b); b != "" {
			brokers = append(brokers, b)
		}
	}
	return brokers
}

// ended is nil where an error is only that the context has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// open opens the text to count; nil where there is none.
func open(o options, stdin io.Reader) (io.ReadCloser, error) {
	switch {
	case o.input == "-":
		return io.NopCloser(stdin), nil
	case o.input != "":
		f, err := os.Open(o.input)
		if err != nil {
			return nil, fmt.Errorf("%w: name an existing text file with -input", err)
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			f.Close()
			return nil, fmt.Errorf("%s is a directory: name a text file with -input", o.input)
		}
		return f, nil
	case o.brokers == "":
		return io.NopCloser(strings.NewReader(sample)), nil
	}
	return nil, nil
}

// oneLine is an error's text on a single line.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
