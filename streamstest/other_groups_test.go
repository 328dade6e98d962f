package streamstest_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func joinClassic(t *testing.T, cl *kgo.Client) *kmsg.JoinGroupResponse {
	t.Helper()
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType = group, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 10_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = "range"
	req.Protocols = append(req.Protocols, p)
	return request[*kmsg.JoinGroupResponse](t, cl, 0, req)
}

func TestOtherKindsOfGroups(t *testing.T) {
	t.Run("a live classic group keeps its id", func(t *testing.T) {
		b, cl := start(t)
		old := connect(t, b, kgo.MaxVersions(maxVersion(11, 3)))
		if resp := joinClassic(t, old); resp.ErrorCode != 0 {
			t.Fatalf("classic join: error %d", resp.ErrorCode)
		}
		a := newMember(t, b, cl, "a")
		resp := a.join(counting())
		if resp.ErrorCode != kerr.GroupIDNotFound.Code || *resp.ErrorMessage != "Group app is not a streams group." {
			t.Errorf("join: error %d", resp.ErrorCode)
		}
	})
	t.Run("an empty classic group becomes a streams group with its offsets", func(t *testing.T) {
		b, cl := start(t)
		simpleCommit(t, b, cl, group, 42)
		a := newMember(t, b, cl, "a")
		a.join(counting())
		settle(t, b, a)
		if offset, code := fetch(t, b, a, b.Cluster().TopicInfo("in").TopicID, 0, a.epoch); offset != 42 || code != 0 {
			t.Errorf("offset %d, error %d", offset, code)
		}
	})
	t.Run("an empty streams group becomes a classic group, one with members does not", func(t *testing.T) {
		b, cl := start(t)
		old := connect(t, b, kgo.MaxVersions(maxVersion(11, 3)))
		a := newMember(t, b, cl, "a")
		a.join(counting())
		if resp := joinClassic(t, old); resp.ErrorCode != kerr.InconsistentGroupProtocol.Code {
			t.Errorf("with members: error %d", resp.ErrorCode)
		}
		a.leave(-1)
		if resp := joinClassic(t, old); resp.ErrorCode != 0 {
			t.Errorf("without members: error %d", resp.ErrorCode)
		}
		if _, ok := b.Group(group); ok {
			t.Error("the streams group is still there")
		}
	})
	t.Run("consumer and share groups cannot have the id of a streams group", func(t *testing.T) {
		b, cl := start(t)
		newMember(t, b, cl, "a").join(counting())
		consumer := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		consumer.Group, consumer.MemberID, consumer.RebalanceTimeoutMillis = group, "c", 1000
		consumer.SubscribedTopicNames = []string{"in"}
		consumer.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		if resp := request[*kmsg.ConsumerGroupHeartbeatResponse](t, cl, 0, consumer); resp.ErrorCode != kerr.GroupIDNotFound.Code {
			t.Errorf("consumer: error %d", resp.ErrorCode)
		}
		share := kmsg.NewPtrShareGroupHeartbeatRequest()
		share.GroupID, share.MemberID = group, "s"
		share.SubscribedTopicNames = []string{"in"}
		if resp := request[*kmsg.ShareGroupHeartbeatResponse](t, cl, 0, share); resp.ErrorCode != kerr.GroupIDNotFound.Code {
			t.Errorf("share: error %d", resp.ErrorCode)
		}
	})
	t.Run("a consumer group keeps its id, also when it is empty", func(t *testing.T) {
		b, cl := start(t)
		beat := func(epoch int32) int16 {
			req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
			req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = group, "c", epoch, 1000
			req.SubscribedTopicNames = []string{"in"}
			req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
			return request[*kmsg.ConsumerGroupHeartbeatResponse](t, cl, 0, req).ErrorCode
		}
		if code := beat(0); code != 0 {
			t.Fatalf("consumer join: error %d", code)
		}
		a := newMember(t, b, cl, "a")
		if resp := a.join(counting()); resp.ErrorCode != kerr.GroupIDNotFound.Code {
			t.Errorf("with a consumer: error %d", resp.ErrorCode)
		}
		if code := beat(-1); code != 0 {
			t.Fatalf("consumer leave: error %d", code)
		}
		if resp := a.join(counting()); resp.ErrorCode != kerr.GroupIDNotFound.Code {
			t.Errorf("empty: error %d", resp.ErrorCode)
		}
	})
}
