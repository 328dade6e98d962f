package restart

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
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrGroupActive: the group has members, so that its offsets and topics must not be
// touched.
var ErrGroupActive = errors.New("the group has members")

// Change is what is to be changed.
type Change struct {
	// Commits are offsets to commit. A zero LeaderEpoch is a leader epoch; −1 is
	// none.
	Commits kadm.Offsets
	// Deletes are topics to delete, with what the group has committed of them.
	// Topics that don't exist do no harm.
	Deletes []string
}

// Apply changes it. The group must not have members ([ErrGroupActive]), and needn't
// exist. After an error it can be called again.
func (c Change) Apply(ctx context.Context, kafka *kgo.Client, group string) error {
	adm := kadm.NewClient(kafka)
	known, err := Inactive(ctx, adm, group)
	if err != nil {
		return err
	}
	if len(c.Deletes) > 0 {
		if known {
			if err := forget(ctx, adm, group, c.Deletes); err != nil {
				return err
			}
		}
		if err := deleteTopics(ctx, kafka, c.Deletes); err != nil {
			return err
		}
	}
	if len(c.Commits) == 0 {
		return nil
	}
	if err := adm.CommitAllOffsets(ctx, group, c.Commits); err != nil {
		return fmt.Errorf("commit the offsets to start at: %w", err)
	}
	return nil
}

// Inactive checks that a group has no members, and says whether it exists. The
// error is [ErrGroupActive], or that of the request.
func Inactive(ctx context.Context, adm *kadm.Client, group string) (known bool, err error) {
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
		return fmt.Errorf("fetch the committed offsets: %w", err)
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
		return fmt.Errorf("delete the committed offsets of %v: %w", topics, err)
	}
	return nil
}

// deleteTimeout bounds how long a deleted topic may still be seen.
const deleteTimeout = 30 * time.Second

// deleteTopics deletes topics, and waits until they are gone: the application
// would find them on their way out.
func deleteTopics(ctx context.Context, kafka *kgo.Client, topics []string) error {
	responses, err := kadm.NewClient(kafka).DeleteTopics(ctx, topics...)
	if err != nil {
		return fmt.Errorf("delete the topics %v: %w", topics, err)
	}
	for _, r := range responses {
		if r.Err != nil && !errors.Is(r.Err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("delete the topic %s: %w", r.Topic, r.Err)
		}
	}
	return backoff.Retry(func() error { return gone(ctx, kafka, topics) }, backoff.WithContext(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(deleteTimeout),
	), ctx))
}

// gone checks that topics don't exist. It asks the brokers: kadm would believe what
// it has heard of the topics before.
func gone(ctx context.Context, kafka *kgo.Client, topics []string) error {
	req := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, kafka)
	if err != nil {
		return fmt.Errorf("look whether the topics %v are deleted: %w", topics, err)
	}
	for _, t := range resp.Topics {
		if t.ErrorCode != kerr.UnknownTopicOrPartition.Code && t.Topic != nil {
			return fmt.Errorf("the topic %s is still there after it was deleted", *t.Topic)
		}
	}
	return nil
}
