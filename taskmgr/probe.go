package taskmgr

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// probeAfter is how long nothing has come of a partition that is known to have more,
// before we ask whether that holds records at all.
const probeAfter = time.Second

// probe asks a partition's leader what there is from offset on, and returns the
// offset of the first record that there may be, at most end. The offsets before are
// of transaction markers, or of records that compaction has removed: a consumer is
// told of neither, and would wait for them for ever.
func probe(ctx context.Context, client *kgo.Client, id [16]byte, topic string, partition int32, offset, end int64) (next int64, err error) {
	leader, _, err := client.PartitionLeader(topic, partition)
	if err != nil || leader < 0 {
		return offset, err
	}
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = partition, offset, 1<<20
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID, rt.Partitions = topic, id, append(rt.Partitions, rp)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.Topics = 1<<20, append(req.Topics, rt)

	answer, err := client.Broker(int(leader)).Request(ctx, req)
	if err != nil {
		return offset, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return offset, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return offset, fmt.Errorf("the broker did not answer for %s-%d", topic, partition)
	}
	p := resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		return offset, err
	}
	if len(p.RecordBatches) > 0 || p.HighWatermark < end {
		return min(skipEmpty(p.RecordBatches, offset), end), nil
	}
	return end, nil // there is nothing up to the end
}

// Where things are in a record batch.
const (
	batchHead       = 61
	batchAttributes = 21
	batchLastDelta  = 23
	batchCount      = 57
	controlBatch    = 1 << 5
)

// skipEmpty returns the offset behind the batches that begin at offset and have no
// records for a consumer.
func skipEmpty(batches []byte, offset int64) int64 {
	for len(batches) >= batchHead {
		size := 12 + int64(int32(binary.BigEndian.Uint32(batches[8:])))
		last := int64(binary.BigEndian.Uint64(batches)) + int64(int32(binary.BigEndian.Uint32(batches[batchLastDelta:])))
		control := binary.BigEndian.Uint16(batches[batchAttributes:])&controlBatch != 0
		if !control && binary.BigEndian.Uint32(batches[batchCount:]) > 0 && last >= offset {
			return offset
		}
		offset = max(offset, last+1)
		if size < batchHead || size > int64(len(batches)) {
			return offset
		}
		batches = batches[size:]
	}
	return offset
}
