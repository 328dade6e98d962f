package mirror

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Safe says whether an application can start on a mirror, and from where, so that
// its state and its inputs agree: state must hold what became of exactly those
// records that come before the offsets it starts at.
//
// It chooses the first of these that nothing is in the way of:
//
//   - [Resume], if the checkpoint is exact, all inputs are mirrored up to the
//     committed offsets at least, and every repartition and changelog partition on
//     the mirror ends where it ended at the checkpoint: not before, or state would
//     lack something, and not behind, or it would have something twice. A mirror
//     that copies all topics as they come is hardly ever there while the
//     application works, but one that copies internal topics from checkpoint to
//     checkpoint is, and every mirror is when the application was stopped before.
//     An application without internal topics can always resume.
//   - [Rebuild], if the inputs are on the mirror from offset 0 on and the
//     application doesn't write to them. A compacted input has only the last
//     records of its keys to rebuild from.
//   - [Repeat], if it is allowed and nothing is missing.
//
// In all cases every partition of the inputs must be STOPPED: before, the log may
// still change and can't be written to, and a source that lives may have the
// application running. So must all internal partitions, or else not be mirrored,
// where they are to be deleted.
//
// Where nothing is possible the error is an [UnsafeError] with the reasons, and
// the Plan has the partitions for people to look at, without offsets to start at.
func Safe(app Application, checkpoint Checkpoint, on Mirrored) (Plan, error) {
	facts := facts(app, checkpoint, on)
	strategies := []*attempt{
		{strategy: Resume, try: (*attempt).resume},
		{strategy: Rebuild, try: (*attempt).rebuild},
	}
	if app.AllowRepeats {
		strategies = append(strategies, &attempt{strategy: Repeat, try: (*attempt).repeat})
	}
	var unsafe UnsafeError
	for _, a := range strategies {
		a.app, a.checkpoint, a.partitions = app, checkpoint, slices.Clone(facts)
		a.prepare(on)
		a.try(a)
		if len(a.obstacles) == 0 {
			return Plan{Strategy: a.strategy, Partitions: a.partitions}, nil
		}
		unsafe.Obstacles = append(unsafe.Obstacles, a.obstacles...)
	}
	return Plan{Partitions: facts}, &unsafe
}

// facts are all partitions that anything is known of, without a start.
func facts(app Application, checkpoint Checkpoint, on Mirrored) []PartitionPlan {
	var all []PartitionPlan
	for topic, role := range app.topics() {
		partitions := make(map[int32]bool)
		for p := range on.Logs[topic] {
			partitions[p] = true
		}
		for p := range on.States[topic] {
			partitions[p] = true
		}
		for p := range checkpoint.Committed[topic] {
			partitions[p] = true
		}
		for p := range checkpoint.Ends[topic] {
			partitions[p] = true
		}
		for p := range partitions {
			all = append(all, factsOf(topic, p, role, checkpoint, on))
		}
	}
	slices.SortFunc(all, func(a, b PartitionPlan) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return all
}

func factsOf(topic string, partition int32, role Role, checkpoint Checkpoint, on Mirrored) PartitionPlan {
	p := PartitionPlan{
		Topic: topic, Partition: partition, Role: role,
		LastMirroredOffset: -1, Log: Log{-1, -1}, MirroredEnd: -1, Committed: -1, End: -1, Start: -1,
	}
	if state, ok := on.States.Lookup(topic, partition); ok {
		p.Mirrored, p.State, p.LastMirroredOffset = true, state.State, state.LastMirroredOffset
	}
	if log, ok := on.Logs[topic][partition]; ok {
		p.Log = log
		if p.Mirrored {
			p.MirroredEnd = min(max(p.LastMirroredOffset+1, log.Start), log.End)
		}
	}
	if commit, ok := checkpoint.Committed[topic][partition]; ok && role != Changelog {
		p.Committed, p.metadata = commit.Offset, commit.Metadata
	}
	if end, ok := checkpoint.Ends[topic][partition]; ok && role != Input {
		p.End = end
	}
	return p
}

// attempt is one strategy that is tried.
type attempt struct {
	strategy   Strategy
	try        func(*attempt)
	app        Application
	checkpoint Checkpoint
	partitions []PartitionPlan // its own
	obstacles  []Obstacle
}

func (a *attempt) obstacle(topic string, partition int32, format string, args ...any) {
	a.obstacles = append(a.obstacles, Obstacle{a.strategy, topic, partition, fmt.Sprintf(format, args...)})
}

func (a *attempt) against(p *PartitionPlan, format string, args ...any) {
	a.obstacle(p.Topic, p.Partition, format, args...)
}

// prepare checks what every strategy needs.
func (a *attempt) prepare(on Mirrored) {
	topics := a.app.topics()
	if len(a.app.Inputs) == 0 {
		a.obstacle("", -1, "no input topics are given")
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		if _, exists := on.Logs[topic]; !exists && (topics[topic] == Input || a.strategy != Rebuild) {
			a.obstacle(topic, -1, "the mirror cluster has no such topic; mirror it")
		}
	}
	for i := range a.partitions {
		p := &a.partitions[i]
		deleted := p.Role != Input && a.strategy == Rebuild
		switch {
		case on.Logs[p.Topic] == nil: // said above, or doesn't matter
		case p.Log.End < 0 && !deleted:
			a.against(p, "the topic on the mirror cluster has no such partition; it has %d", len(on.Logs[p.Topic]))
		case !p.Mirrored && !deleted:
			a.against(p, "the mirror doesn't have it: nothing is known about how far it is mirrored")
		case p.Mirrored && p.State == Failed:
			a.against(p, "mirroring it has failed (FAILED); have it stopped, and look at the brokers' logs for how complete it is")
		case p.Mirrored && p.State == StateUnknown:
			a.against(p, "the state of the mirror is unknown; check Config.States against the brokers' numbers")
		case p.Mirrored && p.State != Stopped:
			a.against(p, "it is %s, and so may change and can't be written to; stop the mirror, and wait until it is STOPPED", p.State)
		}
	}
}

// resume goes on exactly where the checkpoint is.
func (a *attempt) resume() {
	if !a.committed() {
		return
	}
	if a.app.stateful() && !a.checkpoint.Exact {
		a.obstacle("", -1, "the checkpoint isn't exact: changelogs may hold what became of records after the committed offsets, which would be counted twice; take it when the application has nothing to do, or is stopped")
	}
	for i := range a.partitions {
		p := &a.partitions[i]
		if p.MirroredEnd < 0 {
			continue // an obstacle already
		}
		if p.Role == Changelog {
			a.endsThere(p)
			continue
		}
		if p.Role == Repartition {
			a.endsThere(p)
		}
		a.startAtCommitted(p)
	}
}

// repeat starts where the checkpoint is, or before.
func (a *attempt) repeat() {
	if !a.committed() {
		return
	}
	for i := range a.partitions {
		p := &a.partitions[i]
		if p.MirroredEnd < 0 {
			continue
		}
		if p.Role != Input {
			a.reachesThere(p)
		}
		if p.Role != Changelog {
			a.startAtCommitted(p)
		}
	}
}

// rebuild begins at the beginning.
func (a *attempt) rebuild() {
	for i := range a.partitions {
		p := &a.partitions[i]
		if p.Role != Input {
			continue
		}
		if p.Log.Start > 0 {
			a.against(p, "the first record on the mirror has offset %d: those before it are gone", p.Log.Start)
		}
		p.Start = 0
	}
	for _, topic := range a.app.Inputs {
		if a.app.writes(topic) {
			a.obstacle(topic, -1, "the application writes to it too, and would write all that once more")
		}
	}
}

// committed says whether there are committed offsets to start at.
func (a *attempt) committed() bool {
	if len(a.checkpoint.Committed) == 0 {
		a.obstacle("", -1, "no committed offsets are given")
		return false
	}
	return true
}

// startAtCommitted starts an input or repartition partition at its committed
// offset.
func (a *attempt) startAtCommitted(p *PartitionPlan) {
	switch {
	case p.Committed < 0 && p.Log.Start > 0:
		a.against(p, "nothing was committed, and the first record on the mirror has offset %d: those before it are gone", p.Log.Start)
	case p.Committed < 0:
		p.Start = 0
	case p.Committed < p.Log.Start:
		a.against(p, "offset %d was committed, but the first record on the mirror has offset %d: those between are gone", p.Committed, p.Log.Start)
	case p.Committed <= p.MirroredEnd:
		p.Start = p.Committed
	case a.strategy == Repeat || !a.app.stateful():
		p.Start = p.MirroredEnd // what comes there on the mirror is new
	default:
		a.against(p, "offset %d was committed, but it is mirrored only up to %d: state would have what became of records that the mirror lacks", p.Committed, p.MirroredEnd)
	}
}

// endsThere checks that an internal partition ends where it did at the checkpoint.
func (a *attempt) endsThere(p *PartitionPlan) {
	a.reachesThere(p)
	if p.End >= 0 && p.Log.End > p.End {
		a.against(p, "it has records up to offset %d, %d more than at the checkpoint, which would be counted twice", p.Log.End, p.Log.End-p.End)
	}
}

// reachesThere checks that an internal partition has all that it had at the
// checkpoint.
func (a *attempt) reachesThere(p *PartitionPlan) {
	switch {
	case p.End < 0:
		a.against(p, "the checkpoint doesn't say where it ended")
	case p.MirroredEnd < p.End:
		a.against(p, "it is mirrored up to offset %d, but ended at %d at the checkpoint: state would lack changes", p.MirroredEnd, p.End)
	}
}
