package taskmgr

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// addOffsets makes the next offsets of the inputs part of the open transaction, with
// what commitOffsets commits along. It makes one attempt; the inputs stay dirty until
// the transaction is committed.
func (p *producer) addOffsets(ctx context.Context, who identity, topics topics, inputs []*input) error {
	if p.txn.explicit && !p.txn.told {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.Group = p.txn.id, who.group
		req.ProducerID, req.ProducerEpoch = p.txn.producer.id, p.txn.producer.epoch
		resp, err := req.RequestWith(ctx, p.sender)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err != nil {
			return &CommitError{Op: "commit", Err: err}
		}
		p.txn.told = true
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation, req.InstanceID = who.group, who.member, who.epoch, who.instance
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.txn.id, p.txn.producer.id, p.txn.producer.epoch
	for _, of := range byTopic(inputs) {
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = of.topic, topics[of.topic].id
		for _, in := range of.inputs {
			rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch = in.partition, in.next, in.leaderEpoch
			rp.Metadata = kmsg.StringPtr(in.task.ctx.OffsetMetadata(in.time))
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, p.sender)
	if err != nil {
		return &CommitError{Op: "commit", Err: err}
	}
	answers := awaitAnswers(inputs)
	for _, rt := range resp.Topics {
		for _, rp := range rt.Partitions {
			answers.of(topics.name(rt.Topic, rt.TopicID), rp.Partition, classifyInTransaction(rp.ErrorCode, resp.Version))
		}
	}
	return answers.err()
}

// classifyInTransaction is classify for the answer to a commit in a transaction. Up to
// version 5 the coordinator has no other word for a stale epoch than an illegal
// generation (KIP-1319). One that is more than stale shows with the next heartbeat.
func classifyInTransaction(code, version int16) error {
	err := classify(code)
	if version < 6 && errors.Is(err, kerr.IllegalGeneration) {
		return errStaleEpoch
	}
	return err
}
