package streamstest

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// StreamsGroupDescribe: v0-1
//
// Version notes:
// * v1: IncludeTopologyDescription, TopologyDescriptionStatus (KIP-1331), AssignorName (KIP-1357)

func (b *Broker) streamsGroupDescribe(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.StreamsGroupDescribeRequest)
	if req.Version > b.config.version {
		return unsupported(req)
	}
	resp := req.ResponseKind().(*kmsg.StreamsGroupDescribeResponse)
	for _, group := range req.Groups {
		described := kmsg.NewStreamsGroupDescribeResponseGroup()
		described.Group = group
		switch fault := b.faults.hit(node, req, group); {
		case fault != nil:
			described.ErrorCode = fault.err.Code
		case !b.coordinates(node, group):
			described.ErrorCode = kerr.NotCoordinator.Code
		case group != "" && !b.isStreams(group) && b.cluster.GroupInfo(group) != nil:
			described.ErrorCode, described.ErrorMessage = refuse(group, "streams")
		default:
			b.with(func(groups *coordinator.Coordinator, now time.Time) {
				described = groups.Describe(now, group, req.IncludeTopologyDescription)
			})
		}
		resp.Groups = append(resp.Groups, described)
	}
	return resp, true, nil
}
