package streamstest

import "github.com/twmb/franz-go/pkg/kmsg"

// ConsumerGroupHeartbeat
//
// Behavior:
// * The id of a streams group is taken

func (b *Broker) consumerGroupHeartbeat(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.ConsumerGroupHeartbeatRequest)
	if !b.coordinates(node, req.Group) || !b.isStreams(req.Group) {
		return nil, false, nil
	}
	resp := req.ResponseKind().(*kmsg.ConsumerGroupHeartbeatResponse)
	resp.ErrorCode, resp.ErrorMessage = refuse(req.Group, "consumer")
	return resp, true, nil
}
