package streamstest

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// JoinGroup
//
// Behavior:
// * A classic member is refused by a streams group with members, and turns one without into a classic group, which
//   keeps the offsets

func (b *Broker) joinGroup(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.JoinGroupRequest)
	if !b.coordinates(node, req.Group) || !b.isStreams(req.Group) {
		return nil, false, nil
	}
	empty := false
	b.with(func(groups *coordinator.Coordinator, now time.Time) {
		empty = groups.State(now, req.Group) == coordinator.StateEmpty
		if onlyAsksForID := req.Version >= 4 && req.MemberID == "" && req.InstanceID == nil; empty && !onlyAsksForID {
			groups.Delete(now, req.Group)
		}
	})
	if empty {
		return nil, false, nil
	}
	resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
	resp.ErrorCode = kerr.InconsistentGroupProtocol.Code
	return resp, true, nil
}
