package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errNoGroup: there is no streams group of that name.
var errNoGroup = errors.New("there is no such streams group; odradek group list shows those that there are")

// described is a streams group, and the broker that coordinates it.
type described struct {
	kmsg.StreamsGroupDescribeResponseGroup
	coordinator kadm.BrokerDetail
}

// describeGroup asks a group's coordinator for it. The error is errNoGroup where
// there is no such group, or it isn't one of streams.
func describeGroup(ctx context.Context, client *kgo.Client, group string) (described, error) {
	var d described
	err := retry(ctx, func() error {
		found := kadm.NewClient(client).FindGroupCoordinators(ctx, group)[group]
		if found.Err != nil {
			return fmt.Errorf("find its coordinator: %w", found.Err)
		}
		d.coordinator = kadm.BrokerDetail{NodeID: found.NodeID, Host: found.Host, Port: found.Port}
		req := kmsg.NewPtrStreamsGroupDescribeRequest()
		req.Groups, req.IncludeTopologyDescription = []string{group}, true
		// kgo.Client.Request doesn't know the request; a broker's does.
		resp, err := client.Broker(int(found.NodeID)).RetriableRequest(ctx, req)
		if err != nil {
			return withoutStreams(ctx, client, err)
		}
		groups := resp.(*kmsg.StreamsGroupDescribeResponse).Groups
		if len(groups) != 1 {
			return fmt.Errorf("the broker described %d groups instead of one", len(groups))
		}
		d.StreamsGroupDescribeResponseGroup = groups[0]
		if d.ErrorCode == kerr.GroupIDNotFound.Code {
			return errNoGroup
		}
		return withMessage(d.ErrorCode, d.ErrorMessage)
	})
	if err != nil {
		return d, fmt.Errorf("describe group %q: %w", group, err)
	}
	return d, nil
}

// withMessage is the error of a code, with the broker's words.
func withMessage(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil || text(message) == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, *message)
}

// withoutStreams says so if a request failed because the brokers don't know it,
// for which kgo's error isn't exported.
func withoutStreams(ctx context.Context, client *kgo.Client, err error) error {
	versions, versionsErr := kadm.NewClient(client).ApiVersions(ctx)
	if versionsErr != nil {
		return err
	}
	for _, v := range versions {
		if _, known := v.KeyMaxVersion(int16(kmsg.StreamsGroupDescribe)); known || v.Err != nil {
			return err
		}
	}
	return errors.New("the brokers don't have streams groups: they need Apache Kafka 4.1 or later, with the feature streams.version")
}

// retry does something again while its error is one that passes.
func retry(ctx context.Context, do func() error) error {
	return backoff.Retry(func() error {
		err := do()
		if err != nil && !kerr.IsRetriable(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(0), // until ctx ends
	), ctx))
}
