// Iq is word count as a service: ask any of its instances for a word and get the
// word's count, and the host that had it.
//
//	go run ./examples/iq
//
// starts an embedded broker, feeds it a text, and runs three instances, at the ports
// 7071 to 7073. In another terminal:
//
//	curl localhost:7071/words/ship
//	curl localhost:7073/words/ship
//	curl 'localhost:7072/iq/v1/stores/counts/entries?prefix=sh'
//
// With -brokers it is one instance of the application on a real cluster, Apache Kafka
// 4.2 or later, at the address of -listen. See -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/odradek-go/odradek/streamstest"
)

const (
	inputTopic = "iq-example-lines"
	partitions = 6
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "iq:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("iq", flag.ContinueOnError)
	f.SetOutput(stderr)
	brokers := f.String("brokers", "", "use the Kafka cluster at `host:port,…` instead of an embedded broker")
	listen := f.String("listen", "localhost:7071,localhost:7072,localhost:7073", "where instances answer and find each other, `host:port,…`; one instance each")
	if err := f.Parse(args); err != nil {
		return err
	}
	seeds := strings.Split(*brokers, ",")
	if *brokers == "" {
		broker, err := streamstest.NewBroker(streamstest.WithStandbyReplicas(1))
		if err != nil {
			return fmt.Errorf("start the embedded broker: %w", err)
		}
		defer broker.Close()
		seeds = broker.Addrs()
	}
	if err := prepare(ctx, seeds, *brokers == ""); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	group, ctx := errgroup.WithContext(ctx)
	for _, address := range strings.Split(*listen, ",") {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		in, err := newInstance(seeds, listener.Addr().String(), logger)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		group.Go(func() error { return in.run(ctx, listener) })
		fmt.Fprintf(stdout, "curl http://%s/words/the\n", listener.Addr())
	}
	return group.Wait()
}

// prepare makes the input topic, and fills it on an embedded broker.
func prepare(ctx context.Context, seeds []string, fill bool) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, partitions, -1, nil, inputTopic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", inputTopic, err)
	}
	if !fill {
		return nil
	}
	var lines []*kgo.Record
	for line := range strings.Lines(sample) {
		lines = append(lines, &kgo.Record{Topic: inputTopic, Value: []byte(line)})
	}
	return client.ProduceSync(ctx, lines...).FirstErr()
}
