package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Mirrored is what there is of an application's topics on the mirror cluster.
type Mirrored struct {
	// States are what the mirror has of the topics.
	States States
	// Logs are the partitions of the topics that exist on the cluster.
	Logs Logs
}

// Log is the log of a partition.
type Log struct {
	// Start is the offset of its first record, End the one after its last. They
	// are equal where there are none.
	Start, End int64
}

// Logs are the logs of partitions, by topic and partition.
type Logs map[string]map[int32]Log

// Examine collects what [Safe] wants to know about the mirror. What isn't
// mirrored, or doesn't exist, is left out.
func (c *Client) Examine(ctx context.Context, mirror string, app Application) (Mirrored, error) {
	topics := slices.Sorted(maps.Keys(app.topics()))
	if len(topics) == 0 {
		return Mirrored{}, fmt.Errorf("%w: the application has no topics", ErrConfig)
	}
	states, err := c.Read(ctx, mirror, topics...)
	if err := exceptUnknown(err); err != nil {
		return Mirrored{}, err
	}
	adm := kadm.NewClient(c.kafka)
	starts, _, err := listExisting(ctx, adm.ListStartOffsets, topics)
	if err != nil {
		return Mirrored{}, err
	}
	ends, _, err := listExisting(ctx, adm.ListEndOffsets, topics)
	if err != nil {
		return Mirrored{}, err
	}
	logs := make(Logs)
	for topic, partitions := range ends {
		logs[topic] = make(map[int32]Log, len(partitions))
		for partition, end := range partitions {
			logs[topic][partition] = Log{Start: starts[topic][partition], End: end}
		}
	}
	return Mirrored{States: states, Logs: logs}, nil
}

// exceptUnknown takes those errors out that say that the mirror doesn't have
// something.
func exceptUnknown(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if ok {
		var errs []error
		for _, err := range joined.Unwrap() {
			errs = append(errs, exceptUnknown(err))
		}
		return errors.Join(errs...)
	}
	if of, ok := err.(*PartitionError); ok && (of.Err == ErrNoAnswer || of.Err == kerr.UnknownTopicOrPartition) {
		return nil
	}
	return err
}
