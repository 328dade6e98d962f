package streamstest

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// DescribeGroups
//
// Behavior:
// * A streams group is no classic group: Dead, and from v6 on GROUP_ID_NOT_FOUND

func (b *Broker) describeGroups(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.DescribeGroupsRequest)
	ours := make(map[string]bool)
	theirs := *req
	theirs.Groups = nil
	for _, group := range req.Groups {
		if b.coordinates(node, group) && b.isStreams(group) {
			ours[group] = true
		} else {
			theirs.Groups = append(theirs.Groups, group)
		}
	}
	if len(ours) == 0 {
		return nil, false, nil
	}
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	for group := range ours {
		g := kmsg.NewDescribeGroupsResponseGroup()
		g.Group, g.State = group, coordinator.StateDead
		if req.Version >= 6 {
			g.ErrorCode, g.ErrorMessage = refuse(group, "classic")
		}
		resp.Groups = append(resp.Groups, g)
	}
	if len(theirs.Groups) > 0 {
		theirs.Version = max(theirs.Version, 5)
		answer, err := b.ask.node(node, &theirs)
		if err != nil {
			return nil, true, err
		}
		resp.Groups = append(resp.Groups, answer.(*kmsg.DescribeGroupsResponse).Groups...)
	}
	return resp, true, nil
}
