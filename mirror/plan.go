package mirror

import (
	"maps"
	"slices"
)

// Strategy is a way to start on a mirror.
type Strategy int8

// The strategies, in the order of preference.
const (
	// Resume goes on from the checkpoint: state is restored from the mirrored
	// changelogs, and what follows the committed offsets is processed. Nothing is
	// left out and nothing counted twice.
	Resume Strategy = iota
	// Rebuild begins at the beginning of the inputs with empty state; internal
	// topics are deleted before. Nothing is left out and nothing counted twice,
	// but outputs get once more what they have already.
	Rebuild
	// Repeat is Resume where state may be ahead of the committed offsets
	// ([Application.AllowRepeats]).
	Repeat
)

var strategyNames = [...]string{"resume", "rebuild its state from its inputs", "resume and repeat some records"}

// String says what the strategy is, such as "resume".
func (s Strategy) String() string { return strategyNames[s] }

// Plan is how an application can start on a mirror.
type Plan struct {
	Strategy Strategy
	// Partitions are all partitions of the application's topics, sorted by role,
	// topic and partition.
	Partitions []PartitionPlan
}

// PartitionPlan is what is known of a partition, and what the plan makes of it.
// Offsets that aren't known, or that there are none of, are −1.
type PartitionPlan struct {
	Topic     string
	Partition int32
	Role      Role

	// Mirrored says whether the mirror has the partition; State and
	// LastMirroredOffset are what it has.
	Mirrored           bool
	State              State
	LastMirroredOffset int64
	// Log is the partition's log on the mirror cluster; −1, −1 where there is none.
	Log Log
	// MirroredEnd is the offset up to which the partition is mirrored, exclusive:
	// the one after the last mirrored offset, but not beyond the log.
	MirroredEnd int64
	// Committed is the offset that the checkpoint has of an input or repartition
	// partition, End where a repartition or changelog partition ended.
	Committed, End int64

	// Start is the offset of an input or repartition partition at which the
	// application starts; −1 for a changelog, which is restored whole, and for all
	// internal topics that are deleted.
	Start int64

	metadata string // what was committed with Committed
}

// Starts are the offsets at which the application starts, by topic and partition.
// Where that is the committed offset, its metadata is kept.
func (p *Plan) Starts() map[string]map[int32]Commit {
	starts := make(map[string]map[int32]Commit)
	for _, pp := range p.Partitions {
		if pp.Start < 0 {
			continue
		}
		if starts[pp.Topic] == nil {
			starts[pp.Topic] = make(map[int32]Commit)
		}
		start := Commit{Offset: pp.Start}
		if pp.Start == pp.Committed {
			start.Metadata = pp.metadata
		}
		starts[pp.Topic][pp.Partition] = start
	}
	return starts
}

// Deletes are the internal topics that have to be deleted before the application
// starts, sorted.
func (p *Plan) Deletes() []string {
	if p.Strategy != Rebuild {
		return nil
	}
	topics := make(map[string]bool)
	for _, pp := range p.Partitions {
		if pp.Role != Input && pp.Log.End >= 0 {
			topics[pp.Topic] = true
		}
	}
	return slices.Sorted(maps.Keys(topics))
}
