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
	var refused *coordinator.Error
	b.with(func(groups *coordinator.Coordinator, now time.Time) { refused = groups.Delete(now, req.Group) })
	if refused == nil {
		return nil, false, nil
	}
	resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
	resp.ErrorCode = kerr.InconsistentGroupProtocol.Code
	return resp, true, nil
}
