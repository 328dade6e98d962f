package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
)

// JSON is a record of a sample with a JSON value; nil is null.
func JSON(topic, key string, value any, at time.Time) (*kgo.Record, error) {
	r := &kgo.Record{Topic: topic, Key: []byte(key), Timestamp: at}
	if value == nil {
		return r, nil
	}
	var err error
	if r.Value, err = json.Marshal(value); err != nil {
		return nil, fmt.Errorf("%s: %w", topic, err)
	}
	return r, nil
}

// Output is a topic that is printed, a line for each record.
type Output struct {
	Topic string
	line  func(*kgo.Record) (string, error)
}

// Print is an output whose lines are what line returns.
func Print[K, V any](topic string, keys serde.Serde[K], values serde.Serde[V], line func(streams.Record[K, V]) string) Output {
	return Output{topic, func(rec *kgo.Record) (string, error) {
		r := streams.Record[K, V]{
			KeyNull: rec.Key == nil, ValueNull: rec.Value == nil,
			Timestamp: rec.Timestamp.UnixMilli(), Headers: rec.Headers,
		}
		var err1, err2 error
		if !r.KeyNull {
			r.Key, err1 = keys.Decode(rec.Key)
		}
		if !r.ValueNull {
			r.Value, err2 = values.Decode(rec.Value)
		}
		return line(r), errors.Join(err1, err2)
	}}
}

// world is what there is beside the application.
type world struct {
	Program
	cfg    streams.Config
	client *kgo.Client // which reads the outputs from where they ended
	stdout io.Writer

	printed int64 // records
}

// open connects to the cluster, and creates the topics that are missing.
func open(ctx context.Context, p Program, cfg streams.Config, stdout io.Writer) (_ *world, err error) {
	w := &world{Program: p, cfg: cfg, stdout: stdout}
	admin, err := kgo.NewClient(kgo.SeedBrokers(cfg.Brokers...))
	if err != nil {
		return nil, fmt.Errorf("-brokers %s: %w", strings.Join(cfg.Brokers, ","), err)
	}
	defer admin.Close()
	var outputs []string
	for _, o := range p.Outputs {
		outputs = append(outputs, o.Topic)
	}
	asking, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	responses, err := kadm.NewClient(admin).CreateTopics(asking, p.Partitions, -1, nil, slices.Concat(p.Inputs, outputs)...)
	if err != nil {
		return nil, fmt.Errorf("no Kafka broker answers at %s: %w", strings.Join(cfg.Brokers, ","), err)
	}
	for topic, r := range responses {
		if r.Err != nil && !errors.Is(r.Err, kerr.TopicAlreadyExists) {
			return nil, fmt.Errorf("create topic %q: %w", topic, r.Err)
		}
	}
	w.client, err = kgo.NewClient(
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.ConsumeTopics(outputs...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AfterMilli(time.Now().UnixMilli())), // of new partitions the start
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.MetadataMinAge(10*time.Millisecond), // topics come while we look
	)
	return w, err
}

// feed produces records of the sample.
func (w *world) feed(ctx context.Context, records []*kgo.Record) error {
	return w.client.ProduceSync(ctx, records...).FirstErr()
}

// step produces records and prints what comes of them, all of it.
func (w *world) step(ctx context.Context, records []*kgo.Record) error {
	for _, r := range records {
		if r.Value == nil {
			fmt.Fprintf(w.stdout, "<- %s: %s is gone\n", r.Topic, r.Key)
		} else {
			fmt.Fprintf(w.stdout, "<- %s: %s %s\n", r.Topic, r.Key, r.Value)
		}
	}
	if err := w.feed(ctx, records); err != nil {
		return err
	}
	if err := w.waitProcessed(ctx); err != nil {
		return err
	}
	return w.printAll(ctx)
}

// waitProcessed returns when the application has processed all of the inputs, and all
// that came of it.
func (w *world) waitProcessed(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := w.processed(ctx)
		if err != nil || done {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// processed says whether all is processed. The application commits what it has read of
// a topic after what became of it is in the next one. So, where all is committed that
// the topics have that it reads, looked at later than the commits, there is nothing on
// the way.
func (w *world) processed(ctx context.Context) (bool, error) {
	admin := kadm.NewClient(w.client)
	commits, err := admin.FetchOffsets(ctx, w.cfg.ApplicationID)
	if err != nil {
		return false, err
	}
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		return false, err
	}
	var read []string // the inputs, and the application's own topics but for changelogs
	for _, topic := range topics.Names() {
		own := strings.HasPrefix(topic, w.cfg.ApplicationID+"-") && !strings.HasSuffix(topic, "-changelog")
		if own || slices.Contains(w.Inputs, topic) {
			read = append(read, topic)
		}
	}
	ends, err := admin.ListEndOffsets(ctx, read...)
	if err != nil {
		return false, err
	}
	done := true
	ends.Each(func(end kadm.ListedOffset) {
		commit, ok := commits.Lookup(end.Topic, end.Partition)
		if end.Offset > 0 && (!ok || commit.At < end.Offset) {
			done = false
		}
	})
	return done, ends.Error()
}

// print prints the outputs as they come, until ctx ends.
func (w *world) print(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.printSome(ctx); err != nil {
			return err
		}
	}
	return nil
}

// printAll prints all that is in the outputs.
func (w *world) printAll(ctx context.Context) error {
	var topics []string
	for _, o := range w.Outputs {
		topics = append(topics, o.Topic)
	}
	ends, err := kadm.NewClient(w.client).ListEndOffsets(ctx, topics...)
	if err != nil {
		return err
	}
	var all int64
	ends.Each(func(end kadm.ListedOffset) { all += end.Offset })
	for w.printed < all {
		if err := w.printSome(ctx); err != nil {
			return err
		}
	}
	return nil
}

// printSome prints what has come, or waits for it.
func (w *world) printSome(ctx context.Context) (err error) {
	fetches := w.client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		return err
	}
	fetches.EachRecord(func(rec *kgo.Record) {
		w.printed++
		i := slices.IndexFunc(w.Outputs, func(o Output) bool { return o.Topic == rec.Topic })
		line, lineErr := w.Outputs[i].line(rec)
		if lineErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", rec.Topic, lineErr))
			return
		}
		fmt.Fprintf(w.stdout, "-> %s: %s\n", rec.Topic, line)
	})
	return err
}
