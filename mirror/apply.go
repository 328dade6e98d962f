package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Apply prepares the mirror cluster, which kafka is a client of, for the
// application to start by the plan: it deletes the internal topics that the plan
// deletes, and commits the offsets to start at to the application's group. The
// group must not have members ([ErrGroupActive]). After an error it can be called
// again.
func (p *Plan) Apply(ctx context.Context, kafka *kgo.Client, group string) error {
	adm := kadm.NewClient(kafka)
	if err := p.apply(ctx, adm, group); err != nil {
		return fmt.Errorf("prepare the start of group %q: %w", group, err)
	}
	return nil
}

func (p *Plan) apply(ctx context.Context, adm *kadm.Client, group string) error {
	starts := p.Starts()
	if len(starts) == 0 {
		return errors.New("the plan has no offsets to start at")
	}
	known, err := inactive(ctx, adm, group)
	if err != nil {
		return err
	}
	if deletes := p.Deletes(); len(deletes) > 0 {
		if known {
			if err := forget(ctx, adm, group, deletes); err != nil {
				return err
			}
		}
		if err := deleteTopics(ctx, adm, deletes); err != nil {
			return err
		}
	}
	offsets := make(kadm.Offsets)
	for topic, partitions := range starts {
		for partition, start := range partitions {
			offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: start.Offset, LeaderEpoch: -1, Metadata: start.Metadata})
		}
	}
	committed, err := adm.CommitOffsets(ctx, group, offsets)
	if err == nil {
		err = committed.Error()
	}
	if err != nil {
		return fmt.Errorf("commit the offsets to start at: %w", err)
	}
	return nil
}

// inactive checks that a group has no members, and says whether it exists.
func inactive(ctx context.Context, adm *kadm.Client, group string) (known bool, err error) {
	groups, err := adm.ListGroups(ctx)
	if err != nil {
		return false, fmt.Errorf("list groups: %w", err)
	}
	g, known := groups[group]
	if known && g.State != "Empty" && g.State != "Dead" {
		return true, fmt.Errorf("%w (it is %s): stop the application's instances, and wait until they have left", ErrGroupActive, g.State)
	}
	return known, nil
}

// forget deletes what a group has committed of topics. An offset that was left
// would be beyond what the topic has when it is new.
func forget(ctx context.Context, adm *kadm.Client, group string, topics []string) error {
	commits, err := adm.FetchOffsets(ctx, group)
	if err == nil {
		err = commits.Error()
	}
	if err != nil {
		return fmt.Errorf("fetch its committed offsets: %w", err)
	}
	set := make(kadm.TopicsSet)
	for _, topic := range topics {
		if of := commits[topic]; len(of) > 0 {
			set.Add(topic, slices.Collect(maps.Keys(of))...)
		}
	}
	if len(set) == 0 {
		return nil
	}
	deleted, err := adm.DeleteOffsets(ctx, group, set)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return fmt.Errorf("delete its committed offsets of %v: %w", topics, err)
	}
	return nil
}

// deleteTimeout bounds how long a deleted topic may still be seen.
const deleteTimeout = 30 * time.Second

// deleteTopics deletes topics, and waits until they are gone: the application
// would find them on their way out.
func deleteTopics(ctx context.Context, adm *kadm.Client, topics []string) error {
	responses, err := adm.DeleteTopics(ctx, topics...)
	if err != nil {
		return fmt.Errorf("delete the internal topics %v: %w", topics, err)
	}
	for _, r := range responses {
		if r.Err != nil && !errors.Is(r.Err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("delete the internal topic %s: %w", r.Topic, r.Err)
		}
	}
	return backoff.Retry(func() error {
		details, err := adm.ListTopics(ctx, topics...)
		if err != nil {
			return fmt.Errorf("look whether the internal topics %v are deleted: %w", topics, err)
		}
		for _, d := range details {
			if !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
				return fmt.Errorf("the internal topic %s is still there after it was deleted", d.Topic)
			}
		}
		return nil
	}, backoff.WithContext(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(deleteTimeout),
	), ctx))
}
