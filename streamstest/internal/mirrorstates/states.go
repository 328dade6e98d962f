// Package mirrorstates is what an embedded cluster knows of its mirrors: the answers to ReadMirrorStates and
// WriteMirrorStates (KIP-1279). It has no goroutine, clock or socket, and is not safe for use by several goroutines.
//
// It may import mirror, kmsg and kerr. Begin with States.
package mirrorstates

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/odradek-go/odradek/mirror"
)

// States are the states of all mirrors. The zero value has none.
type States struct {
	mirrors map[string]map[string]map[int32]partition // by mirror, topic and partition
}

type partition struct {
	lastMirroredOffset int64
	state              int8
}

// Write takes a request over and answers it. A mirror comes into being with its first topic.
func (s *States) Write(req *mirror.WriteMirrorStatesRequest) *mirror.WriteMirrorStatesResponse {
	resp := req.ResponseKind().(*mirror.WriteMirrorStatesResponse)
	if req.MirrorName == "" {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp
	}
	for _, t := range req.Topics {
		result := mirror.Topic[mirror.WritePartitionResult]{Name: t.Name}
		for _, p := range t.Partitions {
			result.Partitions = append(result.Partitions, mirror.WritePartitionResult{
				PartitionIndex: p.PartitionIndex,
				ErrorCode:      s.write(req.MirrorName, t.Name, p),
			})
		}
		resp.Topics = append(resp.Topics, result)
	}
	for _, topic := range req.RemovedTopics {
		delete(s.mirrors[req.MirrorName], topic)
	}
	return resp
}

func (s *States) write(name, topic string, p mirror.WritePartition) int16 {
	if topic == "" {
		return kerr.InvalidTopicException.Code
	}
	if p.PartitionIndex < 0 || p.LastMirroredOffset < -1 {
		return kerr.InvalidRequest.Code
	}
	if s.mirrors == nil {
		s.mirrors = make(map[string]map[string]map[int32]partition)
	}
	topics := s.mirrors[name]
	if topics == nil {
		topics = make(map[string]map[int32]partition)
		s.mirrors[name] = topics
	}
	if topics[topic] == nil {
		topics[topic] = make(map[int32]partition)
	}
	topics[topic][p.PartitionIndex] = partition{p.LastMirroredOffset, p.State}
	return 0
}

// Read answers a request. Without topics it is for all topics of the mirror, a topic without partitions for all of its
// partitions. What the mirror does not have is UNKNOWN_TOPIC_OR_PARTITION; a topic asked for as a whole is left out.
func (s *States) Read(req *mirror.ReadMirrorStatesRequest) *mirror.ReadMirrorStatesResponse {
	resp := req.ResponseKind().(*mirror.ReadMirrorStatesResponse)
	if req.MirrorName == "" {
		resp.ErrorCode = kerr.InvalidRequest.Code
		return resp
	}
	topics := s.mirrors[req.MirrorName]
	asked := req.Topics
	if len(asked) == 0 {
		for _, name := range slices.Sorted(maps.Keys(topics)) {
			asked = append(asked, mirror.Topic[mirror.ReadPartition]{Name: name})
		}
	}
	for _, t := range asked {
		have, known := topics[t.Name]
		if !known && len(t.Partitions) == 0 {
			continue
		}
		result := mirror.Topic[mirror.ReadPartitionResult]{Name: t.Name}
		if req.NeedPartitionStates {
			result.Partitions = read(have, t.Partitions)
		}
		resp.Topics = append(resp.Topics, result)
	}
	return resp
}

func read(have map[int32]partition, asked []mirror.ReadPartition) []mirror.ReadPartitionResult {
	var indexes []int32
	for _, p := range asked {
		indexes = append(indexes, p.PartitionIndex)
	}
	if len(asked) == 0 {
		indexes = slices.Sorted(maps.Keys(have))
	}
	var results []mirror.ReadPartitionResult
	for _, index := range indexes {
		result := mirror.ReadPartitionResult{PartitionIndex: index, LastMirroredOffset: -1, ErrorCode: kerr.UnknownTopicOrPartition.Code}
		if p, ok := have[index]; ok {
			result.LastMirroredOffset, result.State, result.ErrorCode = p.lastMirroredOffset, p.state, 0
		}
		results = append(results, result)
	}
	return results
}
