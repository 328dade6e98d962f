package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

// options are the command line's, and a contestant's that runs as a process of
// its own.
type options struct {
	records, runs, partitions, keys, size int

	child, mode, brokers, app, in, out string
}

func main() {
	var o options
	modes := flag.String("modes", "map,count", "what is measured: map (every value in upper case), count (per key, in memory, no cache)")
	flag.IntVar(&o.records, "records", 2_000_000, "records to drain in each run")
	flag.IntVar(&o.runs, "runs", 3, "runs of each contestant")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of the topics")
	flag.IntVar(&o.keys, "keys", 100_000, "different keys")
	flag.IntVar(&o.size, "size", 100, "bytes in a value")
	flag.StringVar(&o.child, "child", "", "(for its own use) be this contestant")
	flag.StringVar(&o.mode, "mode", "", "(for its own use)")
	flag.StringVar(&o.brokers, "brokers", "", "(for its own use)")
	flag.StringVar(&o.app, "app", "", "(for its own use)")
	flag.StringVar(&o.in, "in", "", "(for its own use)")
	flag.StringVar(&o.out, "out", "", "(for its own use)")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.child != "" {
		err = children[o.child](ctx, o)
	} else {
		err = compare(ctx, o, strings.Split(*modes, ","))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// compare runs all contestants in turn and prints what they took.
func compare(ctx context.Context, o options, modes []string) error {
	if reason, ok := kafkatest.Available(); !ok {
		return fmt.Errorf("%s", reason)
	}
	kafka, err := kafkatest.Start(ctx, kafkatest.Config{JVMOptions: []string{"-Xmx1g"}})
	if err != nil {
		return err
	}
	defer kafka.Close()
	o.brokers, o.in = kafka.Bootstrap(), "bench-in"
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...))
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Printf("loading %d records of %d bytes with %d keys into %d partitions\n", o.records, o.size, o.keys, o.partitions)
	if err := load(ctx, client, o); err != nil {
		return err
	}
	for _, mode := range modes {
		o.mode = mode
		results := make(map[string][]result)
		for run := range o.runs {
			for _, name := range contestants {
				o.app = fmt.Sprintf("bench-%s-%s-%d", mode, name, run)
				r, err := measure(ctx, kafka, client, o, name)
				if err != nil {
					return fmt.Errorf("%s of %s: %w", mode, name, err)
				}
				fmt.Printf("%-6s %-8s run %d: %s\n", mode, name, run+1, r)
				results[name] = append(results[name], r)
			}
		}
		print(mode, results)
	}
	return nil
}

// load fills the input topic.
func load(ctx context.Context, client *kgo.Client, o options) error {
	if _, err := kadm.NewClient(client).CreateTopic(ctx, int32(o.partitions), 1, nil, o.in); err != nil {
		return err
	}
	value := make([]byte, o.size)
	for i := range value {
		value[i] = 'a' + byte(i%26)
	}
	failed := kgo.AbortingFirstErrPromise(client)
	for i := range o.records {
		key := fmt.Appendf(nil, "key-%d", uint32(i)*2654435761%uint32(o.keys))
		client.Produce(ctx, &kgo.Record{Topic: o.in, Key: key, Value: value}, failed.Promise())
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return failed.Err()
}

// measure has one contestant drain the input topic into an output topic of its
// own.
func measure(ctx context.Context, kafka *kafkatest.Kafka, client *kgo.Client, o options, name string) (r result, err error) {
	o.out = o.app + "-out"
	adm := kadm.NewClient(client)
	if _, err := adm.CreateTopic(ctx, int32(o.partitions), 1, nil, o.out); err != nil {
		return r, err
	}
	pid, kill, err := start(ctx, kafka, o, name)
	if err != nil {
		return r, err
	}
	defer kill()
	var first time.Time
	began := time.Now()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, ctx.Err()
		}
		ends, err := adm.ListEndOffsets(ctx, o.out)
		if err != nil || ends.Error() != nil {
			continue // the topic is still spreading
		}
		var n int64
		ends.Each(func(end kadm.ListedOffset) { n += end.Offset })
		now := time.Now()
		switch {
		case n > 0 && first.IsZero():
			first = now
		case n >= int64(o.records):
			tick.Stop()
			r, err := usage(pid)
			r.rate = float64(o.records) / now.Sub(first).Seconds()
			r.start = first.Sub(began)
			r.cpu /= float64(o.records) / 1e6
			return r, err
		case now.Sub(began) > 10*time.Minute:
			return r, fmt.Errorf("%d of %d records after 10 minutes", n, o.records)
		}
	}
}
