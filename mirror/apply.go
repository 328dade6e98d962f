package mirror

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/internal/restart"
)

// Apply prepares the mirror cluster, which kafka is a client of, for the
// application to start by the plan: it deletes the internal topics that the plan
// deletes, and commits the offsets to start at to the application's group. The
// group must not have members ([ErrGroupActive]). After an error it can be called
// again.
func (p *Plan) Apply(ctx context.Context, kafka *kgo.Client, group string) error {
	err := errors.New("the plan has no offsets to start at")
	if starts := p.Starts(); len(starts) > 0 {
		change := restart.Change{Commits: make(kadm.Offsets), Deletes: p.Deletes()}
		for topic, partitions := range starts {
			for partition, start := range partitions {
				change.Commits.Add(kadm.Offset{Topic: topic, Partition: partition, At: start.Offset, LeaderEpoch: -1, Metadata: start.Metadata})
			}
		}
		err = change.Apply(ctx, kafka, group)
	}
	if err != nil {
		return fmt.Errorf("prepare the start of group %q: %w", group, err)
	}
	return nil
}
