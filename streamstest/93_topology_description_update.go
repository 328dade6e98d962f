package streamstest

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// StreamsGroupTopologyDescriptionUpdate: v0 (KIP-1331)
//
// Behavior:
// * Refused with UNSUPPORTED_VERSION unless WithTopologyDescriptions is given

func (b *Broker) topologyDescriptionUpdate(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.StreamsGroupTopologyDescriptionUpdateRequest)
	if req.Version > 0 || b.config.version < 1 {
		return unsupported(req)
	}
	resp := req.ResponseKind().(*kmsg.StreamsGroupTopologyDescriptionUpdateResponse)
	switch fault := b.faults.hit(node, req, req.Group); {
	case fault != nil:
		resp.ErrorCode = fault.err.Code
	case !b.coordinates(node, req.Group):
		resp.ErrorCode = kerr.NotCoordinator.Code
	default:
		b.with(func(groups *coordinator.Coordinator, now time.Time) {
			resp = groups.UpdateTopologyDescription(now, req)
		})
	}
	return resp, true, nil
}
