package taskmgr

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// SourcePattern is a pattern of the source topics of a subtopology.
type SourcePattern struct {
	// Match says whether a topic is one of them.
	Match func(topic string) bool

	// Reset is where partitions without a committed offset begin; nil: where the
	// thread's others do.
	Reset Reset
}

// hasPatterns says whether there are patterns of source topics.
func (t Topology) hasPatterns() bool {
	for _, sub := range t {
		if len(sub.SourcePatterns) > 0 {
			return true
		}
	}
	return false
}

// readers is how many sources would read a topic.
func (t Topology) readers(topic string) (n int) {
	for _, sub := range t {
		if slices.Contains(sub.SourceTopics, topic) {
			n++
		}
		for _, p := range sub.SourcePatterns {
			if p.Match(topic) {
				n++
			}
		}
	}
	return n
}

// reads says whether the subtopology reads a topic.
func (s *Subtopology) reads(topic string) bool {
	return slices.Contains(s.SourceTopics, topic) ||
		slices.ContainsFunc(s.SourcePatterns, func(p SourcePattern) bool { return p.Match(topic) })
}

// readOf are those of the topics that the subtopology reads.
func (s *Subtopology) readOf(ts topics) []string {
	read := slices.Clone(s.SourceTopics)
	for _, topic := range slices.Sorted(maps.Keys(ts)) {
		if s.reads(topic) && !slices.Contains(read, topic) {
			read = append(read, topic)
		}
	}
	return read
}

// reset is where partitions of a topic without a committed offset begin; nil: where the
// thread's others do.
func (s *Subtopology) reset(topic string) Reset {
	if reset := s.Reset[topic]; reset != nil {
		return reset
	}
	for _, p := range s.SourcePatterns {
		if p.Match(topic) {
			return p.Reset
		}
	}
	return nil
}

// findInputs returns the inputs that tasks are to have and don't have yet, with their
// committed offsets.
func (t *Thread) findInputs(ctx context.Context, tasks []*task) (map[*task][]*input, error) {
	var of map[*task][]*input
	err := t.retry(ctx, func(who identity) error {
		of = make(map[*task][]*input, len(tasks))
		ts, err := t.sourceTopics(ctx, tasks)
		if err != nil {
			return err
		}
		var inputs []*input
		for _, task := range tasks {
			for _, topic := range task.spec.readOf(ts) {
				// A topic may have fewer partitions than the subtopology has tasks.
				if task.id.Partition >= ts[topic].partitions || task.input(topic) != nil {
					continue
				}
				in := &input{task: task, topic: topic, partition: task.id.Partition, topicID: ts[topic].id, end: -1}
				of[task] = append(of[task], in)
				inputs = append(inputs, in)
			}
		}
		if len(inputs) == 0 {
			return nil
		}
		if err := fetchOffsets(ctx, t.client, who, ts, inputs); err != nil {
			return err
		}
		return t.listInputs(ctx, of)
	})
	return of, err
}

// sourceTopics are the topics that tasks read.
func (t *Thread) sourceTopics(ctx context.Context, tasks []*task) (topics, error) {
	var names []string
	patterns := false
	for _, task := range tasks {
		names = append(names, task.spec.SourceTopics...)
		patterns = patterns || len(task.spec.SourcePatterns) > 0
	}
	if patterns {
		matching, err := t.matchingTopics(ctx, tasks)
		if err != nil {
			return nil, err
		}
		names = append(names, matching...)
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)
	return fetchTopics(ctx, t.client, slices.Compact(names))
}

// matchingTopics are the topics of the cluster that match patterns of tasks, but for
// Kafka's own.
func (t *Thread) matchingTopics(ctx context.Context, tasks []*task) (names []string, err error) {
	req := kmsg.NewPtrMetadataRequest() // of all topics
	resp, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return nil, fmt.Errorf("list the topics of the cluster: %w", err)
	}
	for _, topic := range resp.Topics {
		if topic.Topic == nil || topic.IsInternal || kerr.ErrorForCode(topic.ErrorCode) != nil {
			continue
		}
		name := *topic.Topic
		for _, task := range tasks {
			if !task.spec.reads(name) {
				continue
			}
			if n := t.cfg.Topology.readers(name); n > 1 {
				return nil, fmt.Errorf("topic %q matches the patterns or names of %d sources, and can be read by one: make the patterns narrower", name, n)
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// consume begins to fetch for inputs: from their committed offsets, or where they are
// to begin without.
func (t *Thread) consume(ctx context.Context, of map[*task][]*input) (err error) {
	offsets := make(map[string]map[int32]kgo.Offset)
	for _, inputs := range of {
		for _, in := range inputs {
			if offsets[in.topic] == nil {
				offsets[in.topic] = make(map[int32]kgo.Offset)
			}
			if t.inputs[in.topic] == nil {
				t.inputs[in.topic] = make(map[int32]*input)
			}
			t.inputs[in.topic][in.partition] = in
			if in.next >= 0 {
				offsets[in.topic][in.partition] = kgo.NewOffset().At(in.next).WithEpoch(in.leaderEpoch)
				continue
			}
			if offsets[in.topic][in.partition], err = t.begin(ctx, in); err != nil {
				return err
			}
		}
	}
	t.client.AddConsumePartitions(offsets)
	return nil
}

// scanInterval is how often the topics are looked through for new ones that match
// patterns, Java's metadata.max.age.ms. They are found earlier where they have the
// coordinator raise the group's epoch.
const scanInterval = 5 * time.Minute

// scan remembers when the topics were last looked through.
type scan struct {
	epoch int32 // of the member
	at    time.Time
}

// takeNewTopics has running tasks read what has come to match their patterns.
func (t *Thread) takeNewTopics(ctx context.Context) error {
	if !t.patterns {
		return nil
	}
	now := scan{t.loop.MemberEpoch(), time.Now()}
	if now.epoch <= 0 || now.epoch == t.scanned.epoch && now.at.Sub(t.scanned.at) < scanInterval {
		return nil
	}
	t.scanned = now
	tasks := slices.DeleteFunc(t.runningTasks(), func(task *task) bool { return len(task.spec.SourcePatterns) == 0 })
	if len(tasks) == 0 {
		return nil
	}
	of, err := t.findInputs(ctx, tasks)
	if err != nil {
		return err
	}
	for task, inputs := range of {
		for _, in := range inputs {
			t.log.Info("reading a new topic that matches a pattern", "task", task.id, "topic", in.topic)
		}
		if err := task.add(inputs); err != nil {
			return err
		}
	}
	return t.consume(ctx, of)
}
