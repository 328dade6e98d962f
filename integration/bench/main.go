package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

// options are the command line's, and a contestant's that runs as a process of
// its own.
type options struct {
	records, runs, partitions, keys, size, restore int

	child, mode, brokers, app, in, out, state, profiles string
}

func main() {
	var o options
	modes := flag.String("modes", "map,count,disk,restore", "what is measured: map (every value in upper case), count (per key, in memory, no cache), disk (likewise, on disk), restore (a store on disk from its changelog); with -eos behind it, exactly once: map-eos …")
	flag.IntVar(&o.records, "records", 2_000_000, "records to drain in each run")
	flag.IntVar(&o.runs, "runs", 3, "runs of each contestant")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of the topics")
	flag.IntVar(&o.keys, "keys", 100_000, "different keys")
	flag.IntVar(&o.size, "size", 100, "bytes in a value")
	only := flag.String("contestants", "odradek,java,kgo", "who takes part")
	flag.StringVar(&o.profiles, "profiles", "", "write profiles of our processes into this directory: NAME.cpu, and NAME.heap as it was at the end")
	flag.StringVar(&o.child, "child", "", "(for its own use) be this contestant")
	flag.StringVar(&o.mode, "mode", "", "(for its own use)")
	flag.StringVar(&o.brokers, "brokers", "", "(for its own use)")
	flag.StringVar(&o.app, "app", "", "(for its own use)")
	flag.StringVar(&o.in, "in", "", "(for its own use)")
	flag.StringVar(&o.out, "out", "", "(for its own use)")
	flag.StringVar(&o.state, "state", "", "(for its own use)")
	flag.IntVar(&o.restore, "restore", 5_000_000, "records in the changelog to restore from, each of another key")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.child != "" {
		err = profiled(o, func() error { return children[o.child](ctx, o) })
	} else {
		err = compare(ctx, o, strings.Split(*modes, ","), strings.Split(*only, ","))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// compare runs all contestants in turn and prints what they took.
func compare(ctx context.Context, o options, modes, only []string) error {
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
	if err := load(ctx, client, o, o.in, o.records); err != nil {
		return err
	}
	all := make(results)
	for run := range o.runs {
		for _, mode := range modes {
			o.mode = mode
			for _, name := range contestants(mode) {
				if !slices.Contains(only, name) {
					continue
				}
				o.app = fmt.Sprintf("bench-%s-%s-%d", mode, name, run)
				measure := measure
				if mode == "restore" {
					measure = measureRestore
				}
				r, err := measure(ctx, kafka, client, o, name)
				if err != nil {
					return fmt.Errorf("%s of %s: %w", mode, name, err)
				}
				fmt.Printf("%-9s %-8s run %d: %s\n", mode, name, run+1, r)
				c := contest{mode, name}
				all[c] = append(all[c], r)
			}
		}
	}
	all.print(modes)
	return nil
}

// load makes a topic and fills it.
func load(ctx context.Context, client *kgo.Client, o options, topic string, records int) error {
	if _, err := kadm.NewClient(client).CreateTopic(ctx, int32(o.partitions), 1, nil, topic); err != nil {
		return err
	}
	value := make([]byte, o.size)
	for i := range value {
		value[i] = 'a' + byte(i%26)
	}
	failed := kgo.AbortingFirstErrPromise(client)
	for i := range records {
		key := fmt.Appendf(nil, "key-%d", uint32(i)*2654435761%uint32(o.keys))
		client.Produce(ctx, &kgo.Record{Topic: topic, Key: key, Value: value}, failed.Promise())
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return failed.Err()
}

// measureRestore has one contestant restore its store from a changelog, whose keys
// are all different.
func measureRestore(ctx context.Context, kafka *kafkatest.Kafka, client *kgo.Client, o options, name string) (r result, err error) {
	o.out, o.in, o.keys = o.app+"-out", o.app+"-in", math.MaxUint32
	adm := kadm.NewClient(client)
	if _, err := adm.CreateTopics(ctx, int32(o.partitions), 1, nil, o.in, o.out); err != nil {
		return r, err
	}
	changelog := o.app + "-store-changelog"
	if err := load(ctx, client, o, changelog, o.restore); err != nil {
		return r, err
	}
	defer adm.DeleteTopics(ctx, changelog)
	c, err := start(ctx, kafka, o, name)
	if err != nil {
		return r, err
	}
	defer c.kill()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, ctx.Err()
		}
		var first, last, ends int64
		for _, line := range c.lines() {
			var at int64
			if n, _ := fmt.Sscanf(line, "begin %d", &at); n == 1 && (first == 0 || at < first) {
				first = at
			}
			if n, _ := fmt.Sscanf(line, "end %d", &at); n == 1 {
				last = max(last, at)
				ends++
			}
		}
		if ends == int64(o.partitions) {
			tick.Stop()
			r, err := usage(c.pid)
			r.rate = float64(o.restore) / (float64(last-first) / 1000)
			r.cpu /= float64(o.restore) / 1e6
			return r, err
		}
	}
}

// measure has one contestant drain the input topic into an output topic of its
// own.
func measure(ctx context.Context, kafka *kafkatest.Kafka, client *kgo.Client, o options, name string) (r result, err error) {
	o.out = o.app + "-out"
	adm := kadm.NewClient(client)
	if _, err := adm.CreateTopic(ctx, int32(o.partitions), 1, nil, o.out); err != nil {
		return r, err
	}
	defer func() { // or the disk would be ever busier
		_, e := adm.DeleteTopics(ctx, o.out)
		err = errors.Join(err, e)
	}()
	c, err := start(ctx, kafka, o, name)
	if err != nil {
		return r, err
	}
	defer c.kill()
	var first time.Time
	var before int64 // what the first look at the output found
	began := time.Now()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, ctx.Err()
		}
		ends, err := adm.ListCommittedOffsets(ctx, o.out) // with transaction markers, one in thousands of records
		if err != nil || ends.Error() != nil {
			continue // the topic is still spreading
		}
		var n int64
		ends.Each(func(end kadm.ListedOffset) { n += end.Offset })
		now := time.Now()
		switch {
		case n > 0 && first.IsZero():
			first, before = now, n
		case n >= int64(o.records):
			tick.Stop()
			if n == before {
				return r, errors.New("it was over at the first look: take more records")
			}
			r, err := usage(c.pid)
			r.rate = float64(n-before) / now.Sub(first).Seconds()
			r.start = first.Sub(began)
			r.cpu /= float64(o.records) / 1e6
			return r, err
		case now.Sub(began) > 10*time.Minute:
			return r, fmt.Errorf("%d of %d records after 10 minutes", n, o.records)
		}
	}
}
