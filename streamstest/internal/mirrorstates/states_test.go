package mirrorstates_test

import (
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/odradek-go/odradek/mirror"
	"github.com/odradek-go/odradek/streamstest/internal/mirrorstates"
)

type (
	asked   = mirror.Topic[mirror.ReadPartition]
	answer  = mirror.Topic[mirror.ReadPartitionResult]
	written = mirror.Topic[mirror.WritePartition]
)

func TestStates(t *testing.T) {
	var s mirrorstates.States
	write := func(req mirror.WriteMirrorStatesRequest) *mirror.WriteMirrorStatesResponse {
		t.Helper()
		resp := s.Write(&req)
		if resp.ErrorCode != 0 {
			t.Fatalf("error %d", resp.ErrorCode)
		}
		return resp
	}
	resp := write(mirror.WriteMirrorStatesRequest{MirrorName: "m", Topics: []written{
		{Name: "a", Partitions: []mirror.WritePartition{{PartitionIndex: 1, LastMirroredOffset: 5, State: 3}, {PartitionIndex: 0, LastMirroredOffset: -1}, {PartitionIndex: -1}, {LastMirroredOffset: -2}}},
		{Name: "b", Partitions: []mirror.WritePartition{{LastMirroredOffset: 9, State: 99}}},
		{Name: "", Partitions: []mirror.WritePartition{{}}},
	}})
	var codes []int16
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			codes = append(codes, p.ErrorCode)
		}
	}
	if want := []int16{0, 0, kerr.InvalidRequest.Code, kerr.InvalidRequest.Code, 0, kerr.InvalidTopicException.Code}; !reflect.DeepEqual(codes, want) {
		t.Errorf("error codes %v, want %v", codes, want)
	}

	a := answer{Name: "a", Partitions: []mirror.ReadPartitionResult{{PartitionIndex: 0, LastMirroredOffset: -1}, {PartitionIndex: 1, LastMirroredOffset: 5, State: 3}}}
	b := answer{Name: "b", Partitions: []mirror.ReadPartitionResult{{LastMirroredOffset: 9, State: 99}}}
	unknown := mirror.ReadPartitionResult{PartitionIndex: 7, LastMirroredOffset: -1, ErrorCode: kerr.UnknownTopicOrPartition.Code}
	read := func(want []answer, without bool, topics ...asked) {
		t.Helper()
		resp := s.Read(&mirror.ReadMirrorStatesRequest{MirrorName: "m", Topics: topics, NeedPartitionStates: !without})
		if resp.ErrorCode != 0 || !reflect.DeepEqual(resp.Topics, want) {
			t.Errorf("read %+v, error %d", resp.Topics, resp.ErrorCode)
		}
	}
	read([]answer{a, b}, false)
	read([]answer{{Name: "a"}, {Name: "b"}}, true)
	read([]answer{b}, false, asked{Name: "b"}, asked{Name: "never"})
	read([]answer{{Name: "a", Partitions: []mirror.ReadPartitionResult{a.Partitions[1], unknown}}}, false,
		asked{Name: "a", Partitions: []mirror.ReadPartition{{PartitionIndex: 1}, {PartitionIndex: 7}}})
	read([]answer{{Name: "never", Partitions: []mirror.ReadPartitionResult{unknown}}}, false,
		asked{Name: "never", Partitions: []mirror.ReadPartition{{PartitionIndex: 7}}})

	write(mirror.WriteMirrorStatesRequest{MirrorName: "m", RemovedTopics: []string{"a", "never"}})
	read([]answer{b}, false)
	if resp := s.Read(&mirror.ReadMirrorStatesRequest{MirrorName: "other", NeedPartitionStates: true}); resp.ErrorCode != 0 || resp.Topics != nil {
		t.Errorf("another mirror has %+v", resp)
	}
}

func TestNoName(t *testing.T) {
	var s mirrorstates.States
	if resp := s.Read(&mirror.ReadMirrorStatesRequest{}); resp.ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("read: error %d", resp.ErrorCode)
	}
	if resp := s.Write(&mirror.WriteMirrorStatesRequest{}); resp.ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("write: error %d", resp.ErrorCode)
	}
}
