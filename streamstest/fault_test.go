package streamstest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestFaults(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	heartbeats := []kmsg.Key{kmsg.StreamsGroupHeartbeat}

	before := b.Fault(kfake.Fault{Keys: heartbeats, Group: group, Err: kerr.CoordinatorLoadInProgress, Count: 2})
	for range 2 {
		if resp := a.join(counting()); resp.ErrorCode != kerr.CoordinatorLoadInProgress.Code {
			t.Errorf("error %d", resp.ErrorCode)
		}
	}
	if _, ok := b.Group(group); ok {
		t.Error("a request that failed has made the group")
	}
	after := b.Fault(kfake.Fault{Keys: heartbeats, Err: kerr.RequestTimedOut})
	if resp := a.join(counting()); resp.ErrorCode != kerr.RequestTimedOut.Code {
		t.Errorf("error %d", resp.ErrorCode)
	}
	if _, ok := b.Group(group); !ok {
		t.Error("a request whose answer was lost has not made the group")
	}
	watch := b.Fault(kfake.Fault{Keys: heartbeats, Observe: true, Count: -1})
	elsewhere := b.Fault(kfake.Fault{Group: "other", Count: -1}, kfake.Fault{Nodes: []int32{7}, Count: -1},
		kfake.Fault{When: func(r kmsg.Request) bool { return r.(*kmsg.StreamsGroupHeartbeatRequest).MemberID == "x" }, Count: -1})
	a.join(counting())
	settle(t, b, a)
	if before.Hits() != 2 || after.Hits() != 1 || watch.Hits() < 2 || elsewhere.Hits() != 0 {
		t.Errorf("hits: %d, %d, %d, %d", before.Hits(), after.Hits(), watch.Hits(), elsewhere.Hits())
	}
	elsewhere.Remove()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	waited := make(chan error, 1)
	more := watch.Hits() + 1
	go func() { waited <- watch.Wait(ctx, more) }()
	a.heartbeat()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	watch.Remove()
	hits := watch.Hits()
	a.heartbeat()
	if watch.Hits() != hits {
		t.Error("a removed fault still watches")
	}
	cancel()
	if err := watch.Wait(ctx, hits+1); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with a cancelled context: %v", err)
	}

	all := b.Fault(kfake.Fault{Count: -1})
	defer all.Remove()
	describe := kmsg.NewPtrStreamsGroupDescribeRequest()
	describe.Groups = []string{group}
	if resp := request[*kmsg.StreamsGroupDescribeResponse](t, cl, 0, describe); resp.Groups[0].ErrorCode != kerr.UnknownServerError.Code {
		t.Errorf("describe: error %d", resp.Groups[0].ErrorCode)
	}
	if resp := request[*kmsg.StreamsGroupTopologyDescriptionUpdateResponse](t, cl, 0, kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()); resp.ErrorCode != kerr.UnknownServerError.Code {
		t.Errorf("push: error %d", resp.ErrorCode)
	}
}

// kfake's own faults and control functions work for members of streams groups.
func TestKfakeFaults(t *testing.T) {
	b, cl := start(t)
	a := newMember(t, b, cl, "a")
	b.Cluster().ControlKey(int16(kmsg.StreamsGroupHeartbeat), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		resp := kreq.ResponseKind().(*kmsg.StreamsGroupHeartbeatResponse)
		resp.ErrorCode = kerr.CoordinatorNotAvailable.Code
		return resp, nil, true
	})
	if resp := a.join(counting()); resp.ErrorCode != kerr.CoordinatorNotAvailable.Code {
		t.Errorf("a control function: error %d", resp.ErrorCode)
	}
	a.join(counting())
	settle(t, b, a)
	in := b.Cluster().TopicInfo("in").TopicID
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Group: group, Topic: "in", Err: kerr.UnstableOffsetCommit})
	if _, code := fetch(t, b, a, in, 0, a.epoch); code != kerr.UnstableOffsetCommit.Code {
		t.Errorf("fetch: error %d", code)
	}
	b.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: group, Err: kerr.CoordinatorLoadInProgress})
	if code := commit(t, b, a, in, 0, 1, a.epoch); code != kerr.CoordinatorLoadInProgress.Code {
		t.Errorf("commit: error %d", code)
	}
	if code := commit(t, b, a, in, 0, 1, a.epoch); code != 0 {
		t.Errorf("commit again: error %d", code)
	}
}
