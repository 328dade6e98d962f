package streamstest

import "github.com/twmb/franz-go/pkg/kmsg"

// ShareGroupHeartbeat
//
// Behavior:
// * The id of a streams group is taken

func (b *Broker) shareGroupHeartbeat(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.ShareGroupHeartbeatRequest)
	if !b.coordinates(node, req.GroupID) || !b.isStreams(req.GroupID) {
		return nil, false, nil
	}
	resp := req.ResponseKind().(*kmsg.ShareGroupHeartbeatResponse)
	resp.ErrorCode, resp.ErrorMessage = refuse(req.GroupID, "share")
	return resp, true, nil
}
