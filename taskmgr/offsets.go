package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// identity is who commits: the member of the group, and its epoch as the group's
// generation (KIP-1071).
type identity struct {
	group, member string
	instance      *string
	epoch         int32
}

// errStaleEpoch says that the coordinator has a newer epoch of ours than the
// request: the answer to a heartbeat is still on its way to us.
var errStaleEpoch = errors.New("the member epoch is stale")

// errFenced says that the group no longer has us as the member that we were.
var errFenced = errors.New("the member was fenced by the group coordinator")

// classify turns an error code of a commit or a fetch into nil, errStaleEpoch,
// errFenced, or the error itself.
func classify(code int16) error {
	err := kerr.ErrorForCode(code)
	switch err {
	case nil:
		return nil
	case kerr.StaleMemberEpoch:
		return errStaleEpoch
	case kerr.UnknownMemberID, kerr.FencedMemberEpoch, kerr.IllegalGeneration, kerr.FencedInstanceID:
		return fmt.Errorf("%w: %w", errFenced, err)
	}
	return err
}

// retriable says whether the same request may go through later: the coordinator
// moves, a broker restarts, a topic is still spreading.
func retriable(err error) bool {
	var ke *kerr.Error
	var op *net.OpError
	var first *kgo.ErrFirstReadEOF // as of a proxy whose broker restarts
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, kgo.ErrClientClosed):
		return false
	case errors.As(err, &ke):
		return ke.Retriable || ke == kerr.UnknownTopicID || ke == kerr.ConcurrentTransactions
	}
	return kgo.IsRetryableBrokerErr(err) || errors.As(err, &op) || errors.As(err, &first)
}

// topicInputs are inputs of one topic.
type topicInputs struct {
	topic  string
	inputs []*input
}

// byTopic puts inputs of the same topic together.
func byTopic(inputs []*input) (grouped []topicInputs) {
	index := make(map[string]int)
	for _, in := range inputs {
		i, ok := index[in.topic]
		if !ok {
			i = len(grouped)
			index[in.topic] = i
			grouped = append(grouped, topicInputs{topic: in.topic})
		}
		grouped[i].inputs = append(grouped[i].inputs, in)
	}
	return grouped
}

// commitOffsets commits the next offsets of the inputs, with their partitions' times
// and their tasks' processor metadata, and marks what was committed as clean. It makes one attempt.
func commitOffsets(ctx context.Context, client *kgo.Client, who identity, topics topics, inputs []*input) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation, req.InstanceID = who.group, who.member, who.epoch, who.instance
	for _, of := range byTopic(inputs) {
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = of.topic, topics[of.topic].id
		for _, in := range of.inputs {
			rp := kmsg.NewOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch = in.partition, in.next, in.leaderEpoch
			rp.Metadata = kmsg.StringPtr(in.task.ctx.OffsetMetadata(in.time))
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return &CommitError{Op: "commit", Err: err}
	}
	answers := awaitAnswers(inputs)
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			if in, ok := answers.of(topics.name(rt.Topic, rt.TopicID), rp.Partition, classify(rp.ErrorCode)); ok {
				in.dirty = false
			}
		}
	}
	return answers.err()
}

// answers collects what a broker says to a commit of inputs.
type answers struct {
	missing []*input
	errs    []error
}

func awaitAnswers(inputs []*input) *answers { return &answers{missing: slices.Clone(inputs)} }

// of takes the answer for a partition; ok says that its offset is committed.
func (a *answers) of(topic string, partition int32, err error) (in *input, ok bool) {
	i := slices.IndexFunc(a.missing, func(in *input) bool { return in.topic == topic && in.partition == partition })
	if i < 0 {
		return nil, false
	}
	in = a.missing[i]
	a.missing = slices.Delete(a.missing, i, i+1)
	if err != nil {
		a.errs = append(a.errs, &CommitError{Op: "commit", Topic: topic, Partition: partition, Err: err})
	}
	return in, err == nil
}

// err is the worst of the answers, of which there must be one for each input.
func (a *answers) err() error {
	for _, in := range a.missing {
		a.errs = append(a.errs, &CommitError{Op: "commit", Topic: in.topic, Partition: in.partition, Err: errors.New("the broker did not answer for it")})
	}
	return worst(a.errs)
}

// fetchOffsets fills in the committed offset, leader epoch, time and processor
// metadata of each input; next is −1 where nothing was committed. It makes one attempt.
func fetchOffsets(ctx context.Context, client *kgo.Client, who identity, topics topics, inputs []*input) error {
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group, group.MemberEpoch = who.group, who.epoch
	if who.member != "" {
		group.MemberID = &who.member
	}
	index := make(map[string]int)
	for _, in := range inputs {
		in.next, in.leaderEpoch, in.time, in.processors = -1, -1, -1, nil
		i, ok := index[in.topic]
		if !ok {
			i = len(group.Topics)
			index[in.topic] = i
			rt := kmsg.NewOffsetFetchRequestGroupTopic()
			rt.Topic, rt.TopicID = in.topic, topics[in.topic].id
			group.Topics = append(group.Topics, rt)
		}
		group.Topics[i].Partitions = append(group.Topics[i].Partitions, in.partition)
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Groups, req.RequireStable = append(req.Groups, group), true

	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return &CommitError{Op: "fetch", Err: err}
	}
	var errs []error
	for _, rg := range resp.Groups {
		if err := classify(rg.ErrorCode); err != nil {
			errs = append(errs, &CommitError{Op: "fetch", Err: err})
		}
		for _, rt := range rg.Topics {
			topic := topics.name(rt.Topic, rt.TopicID)
			for _, rp := range rt.Partitions {
				if err := classify(rp.ErrorCode); err != nil {
					errs = append(errs, &CommitError{Op: "fetch", Topic: topic, Partition: rp.Partition, Err: err})
					continue
				}
				for _, in := range inputs {
					if in.topic == topic && in.partition == rp.Partition && rp.Offset >= 0 {
						in.next, in.leaderEpoch = rp.Offset, rp.LeaderEpoch
						if rp.Metadata != nil {
							m := decodeMetadata(*rp.Metadata)
							in.time, in.processors = m.time, m.processors
						}
					}
				}
			}
		}
	}
	return worst(errs)
}

// worst is the error that decides what happens next: fencing before a stale
// epoch before one that can't be retried before one that can.
func worst(errs []error) error {
	rank := func(err error) int {
		switch {
		case errors.Is(err, errFenced):
			return 3
		case errors.Is(err, errStaleEpoch):
			return 2
		case !retriable(err):
			return 1
		}
		return 0
	}
	var w error
	for _, err := range errs {
		if w == nil || rank(err) > rank(w) {
			w = err
		}
	}
	return w
}

// topics is what the cluster says of topics, by name.
type topics map[string]topicInfo

type topicInfo struct {
	id         [16]byte
	partitions int32
}

// name is the name of a topic in an answer, which newer versions give by id.
func (ts topics) name(name string, id [16]byte) string {
	if name != "" || id == [16]byte{} {
		return name
	}
	for n, t := range ts {
		if t.id == id {
			return n
		}
	}
	return ""
}

// metadataAge is how old a topic's metadata may be where we need its id or its
// number of partitions: both change only when the topic does, and then the group
// coordinator tells us by a new assignment or an error.
const metadataAge = 10 * time.Second

// fetchTopics asks the cluster for topics.
func fetchTopics(ctx context.Context, client *kgo.Client, names []string) (topics, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, rt)
	}
	resp, err := client.RequestCachedMetadata(ctx, req, metadataAge)
	if err != nil {
		return nil, fmt.Errorf("fetch the metadata of topics %v: %w", names, err)
	}
	ts := make(topics, len(resp.Topics))
	for _, t := range resp.Topics {
		if t.Topic == nil {
			continue
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, fmt.Errorf("fetch the metadata of topic %q: %w", *t.Topic, err)
		}
		ts[*t.Topic] = topicInfo{id: t.TopicID, partitions: int32(len(t.Partitions))}
	}
	return ts, nil
}
