package mirror

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Checkpoint is where an application stood on the cluster it runs on. It can be
// kept as JSON until it is needed.
type Checkpoint struct {
	// Committed are the offsets that the group has committed of inputs and
	// repartition topics, by topic and partition.
	Committed map[string]map[int32]Commit `json:"committed"`
	// Ends are where the partitions of repartition and changelog topics ended when
	// these offsets had been committed: the offset after the last record. They
	// hold at least what became of the records before the committed offsets.
	Ends map[string]map[int32]int64 `json:"ends"`
	// Exact says that they hold nothing else: the application had processed and
	// committed all that there was.
	Exact bool `json:"exact"`
}

// Commit is what a group committed of a partition.
type Commit struct {
	// Offset is that of the next record to process.
	Offset int64 `json:"offset"`
	// Metadata goes with it. Kafka Streams keeps the partition's time there.
	Metadata string `json:"metadata,omitempty"`
}

// Capture takes a checkpoint of an application on the cluster it runs on, which
// kafka is a client of.
//
// The checkpoint is exact if the application has nothing to do at the moment: all
// that is in its inputs and repartition topics is committed, and nothing was
// written while it was looked at. So it is after the application was stopped and
// had processed all, but also between records. Only an exact checkpoint can be
// resumed from without counting anything twice: an application that processes at
// least once writes to its changelogs before it commits, and nothing tells which
// records came before a commit and which after.
//
// What runs on the cluster isn't disturbed, so a mirror can take checkpoints as it
// goes, until one is exact.
func Capture(ctx context.Context, kafka *kgo.Client, group string, app Application) (Checkpoint, error) {
	fail := func(err error) (Checkpoint, error) {
		return Checkpoint{}, fmt.Errorf("take a checkpoint of group %q: %w", group, err)
	}
	adm := kadm.NewClient(kafka)
	topics := slices.Sorted(maps.Keys(app.topics()))
	if len(topics) == 0 {
		return fail(fmt.Errorf("%w: the application has no topics", ErrConfig))
	}
	starts, err := listOffsets(ctx, adm.ListStartOffsets, topics)
	if err != nil {
		return fail(err)
	}
	before, err := listOffsets(ctx, adm.ListEndOffsets, topics)
	if err != nil {
		return fail(err)
	}
	commits, err := adm.FetchOffsets(kadm.RequireStable(ctx), group)
	if err == nil {
		err = commits.Error()
	}
	if err != nil {
		return fail(fmt.Errorf("fetch its committed offsets: %w", err))
	}
	ends, err := listOffsets(ctx, adm.ListEndOffsets, topics)
	if err != nil {
		return fail(err)
	}
	stable, err := listOffsets(ctx, adm.ListCommittedOffsets, topics)
	if err != nil {
		return fail(err)
	}
	idle := reflect.DeepEqual(before, ends) && reflect.DeepEqual(ends, stable) // no open transaction either
	return checkpointOf(app, starts, ends, commits, idle), nil
}

func checkpointOf(app Application, starts, ends map[string]map[int32]int64, commits kadm.OffsetResponses, idle bool) Checkpoint {
	c := Checkpoint{
		Committed: make(map[string]map[int32]Commit),
		Ends:      make(map[string]map[int32]int64),
		Exact:     idle,
	}
	for topic, role := range app.topics() {
		if role != Input {
			c.Ends[topic] = ends[topic]
		}
		if role == Changelog {
			continue
		}
		c.Committed[topic] = make(map[int32]Commit)
		for partition, end := range ends[topic] {
			commit, committed := commits.Lookup(topic, partition)
			switch {
			case committed && commit.At >= 0:
				c.Committed[topic][partition] = Commit{Offset: commit.At, Metadata: commit.Metadata}
				c.Exact = c.Exact && commit.At == end
			case starts[topic][partition] == end: // nothing to commit
				c.Committed[topic][partition] = Commit{Offset: end}
			default:
				c.Exact = false
			}
		}
	}
	return c
}

type listing = func(context.Context, ...string) (kadm.ListedOffsets, error)

// listOffsets lists offsets of topics, all of which must exist.
func listOffsets(ctx context.Context, list listing, topics []string) (map[string]map[int32]int64, error) {
	offsets, missing, err := listExisting(ctx, list, topics)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the cluster doesn't have the topics %v: %w", missing, kerr.UnknownTopicOrPartition)
	}
	return offsets, err
}

// listExisting lists offsets of the topics that exist.
func listExisting(ctx context.Context, list listing, topics []string) (offsets map[string]map[int32]int64, missing []string, err error) {
	listed, err := list(ctx, topics...)
	if err != nil {
		return nil, nil, fmt.Errorf("list the offsets of %v: %w", topics, err)
	}
	offsets = make(map[string]map[int32]int64)
	for topic, partitions := range listed {
		of := make(map[int32]int64, len(partitions))
		for partition, o := range partitions {
			if o.Err == kerr.UnknownTopicOrPartition && partition < 0 {
				continue
			}
			if o.Err != nil {
				return nil, nil, fmt.Errorf("list the offsets of %s-%d: %w", topic, partition, o.Err)
			}
			of[partition] = o.Offset
		}
		if len(of) > 0 {
			offsets[topic] = of
		}
	}
	for _, topic := range topics {
		if offsets[topic] == nil {
			missing = append(missing, topic)
		}
	}
	return offsets, missing, nil
}
