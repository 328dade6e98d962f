package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// maxLine is the longest line, in bytes, that fits into a record of the
	// input topic when the program creates it.
	maxLine = 64 << 20

	// batchOverhead is more than what a record batch has around one record.
	batchOverhead = 1 << 10

	// reachTimeout is how long no broker may answer before the program gives up.
	reachTimeout = 10 * time.Second
)

// newClient returns a client for all that the program does beside the
// application, once a broker has answered it.
func newClient(ctx context.Context, brokers []string) (*kgo.Client, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(maxLine+batchOverhead),
	)
	if err != nil {
		return nil, fmt.Errorf("-brokers %s: %w", strings.Join(brokers, ","), err)
	}
	retries := backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(reachTimeout), backoff.WithMaxInterval(time.Second))
	ping := func() error {
		ctx, cancel := context.WithTimeout(ctx, reachTimeout)
		defer cancel()
		return client.Ping(ctx)
	}
	if err := backoff.Retry(ping, backoff.WithContext(retries, ctx)); err != nil {
		client.Close()
		return nil, fmt.Errorf("no Kafka broker answers at %s: %w: start one there or name another with -brokers", strings.Join(brokers, ","), err)
	}
	return client, nil
}

// topics is what the program knows of the topics before the application runs.
type topics struct {
	outputEnds kadm.ListedOffsets
}

// prepareTopics creates the input and the output topic where they are missing.
func prepareTopics(ctx context.Context, client *kgo.Client, o options) (topics, error) {
	adm := kadm.NewClient(client)
	for topic, config := range map[string]map[string]*string{
		o.inputTopic:  {"max.message.bytes": kadm.StringPtr(fmt.Sprint(maxLine + batchOverhead))},
		o.outputTopic: nil,
	} {
		_, err := adm.CreateTopic(ctx, int32(o.partitions), -1, config, topic)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return topics{}, fmt.Errorf("create topic %q: %w: create it yourself, or name another with -input-topic and -output-topic", topic, err)
		}
	}
	ends, err := listOffsets(ctx, adm.ListEndOffsets, o.outputTopic)
	return topics{ends}, err
}

// feed produces the lines of a text, a record with a null key each, and returns
// how many there were.
func feed(ctx context.Context, client *kgo.Client, topic string, text io.Reader) (lines int, err error) {
	failed := kgo.AbortingFirstErrPromise(client)
	read := readLines(ctx, text)
	for {
		var line []byte
		var readErr error
		select {
		case l := <-read:
			line, readErr = l.text, l.err
		case <-ctx.Done():
			return lines, ctx.Err()
		}
		if readErr != nil && readErr != io.EOF {
			return lines, fmt.Errorf("read the input: %w", readErr)
		}
		if len(line) > 0 {
			lines++
			if line[len(line)-1] == '\n' {
				line = line[:len(line)-1]
			}
			if len(line) > maxLine {
				return lines, fmt.Errorf("line %d has %d bytes, more than the %d that fit into a record: break it up", lines, len(line), maxLine)
			}
			client.Produce(ctx, &kgo.Record{Topic: topic, Value: line}, failed.Promise())
		}
		if readErr == io.EOF {
			break
		}
	}
	if err := client.Flush(ctx); err != nil {
		return lines, err
	}
	if err := failed.Err(); err != nil {
		return lines, fmt.Errorf("produce to %q: %w", topic, err)
	}
	return lines, nil
}

type line struct {
	text []byte // with the newline, if there is one
	err  error  // io.EOF behind the last one
}

// readLines reads a text on a goroutine of its own: a read of standard input can't
// be interrupted, so nobody waits for it when ctx ends.
func readLines(ctx context.Context, text io.Reader) <-chan line {
	lines := make(chan line, 1024)
	go func() {
		r := bufio.NewReaderSize(text, 1<<20)
		for {
			text, err := r.ReadBytes('\n')
			select {
			case lines <- line{text, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// waitCounted returns when all that is in the input topic has been counted. The
// application commits what it has read of a topic only after what became of it
// is stored in the next, so that is so when its group has committed the ends of
// the input topic, and then those that the repartition topic has by now.
func waitCounted(ctx context.Context, client *kgo.Client, o options, ready <-chan struct{}) error {
	select {
	case <-ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, topic := range []string{o.inputTopic, repartitionTopic(o.applicationID)} {
		if err := waitCommitted(ctx, client, o.applicationID, topic); err != nil {
			return err
		}
	}
	return nil
}

// waitCommitted returns when the group has committed what are a topic's ends now.
func waitCommitted(ctx context.Context, client *kgo.Client, group, topic string) error {
	adm := kadm.NewClient(client)
	starts, err := listOffsets(ctx, adm.ListStartOffsets, topic)
	if err != nil {
		return err
	}
	ends, err := listOffsets(ctx, adm.ListEndOffsets, topic)
	if err != nil {
		return err
	}
	tick := time.NewTicker(commitInterval / 2)
	defer tick.Stop()
	for {
		commits, err := adm.FetchOffsets(ctx, group)
		if err != nil && !kerr.IsRetriable(err) {
			return fmt.Errorf("fetch the offsets of group %q: %w", group, err)
		}
		all := err == nil
		ends.Each(func(end kadm.ListedOffset) {
			start, _ := starts.Lookup(topic, end.Partition)
			commit, ok := commits.Lookup(topic, end.Partition)
			if start.Offset < end.Offset && (!ok || commit.At < end.Offset) {
				all = false
			}
		})
		if all {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listOffsets lists offsets of a topic, and retries while the topic is still
// spreading through the cluster.
func listOffsets(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string) (offsets kadm.ListedOffsets, err error) {
	retries := backoff.NewExponentialBackOff(backoff.WithMaxElapsedTime(reachTimeout))
	err = backoff.Retry(func() error {
		if offsets, err = list(ctx, topic); err == nil {
			err = offsets.Error()
		}
		if err != nil && !kerr.IsRetriable(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(retries, ctx))
	if err != nil {
		return nil, fmt.Errorf("list the offsets of topic %q: %w", topic, err)
	}
	return offsets, nil
}
