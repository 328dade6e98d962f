package streamstest

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// DeleteGroups
//
// Behavior:
// * An empty streams group is deleted, and its offsets with it; one with members is NON_EMPTY_GROUP

func (b *Broker) deleteGroups(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.DeleteGroupsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	theirs := *req
	theirs.Groups = nil
	ours := make(map[string]bool)
	for _, group := range req.Groups {
		if !b.coordinates(node, group) || !b.isStreams(group) {
			theirs.Groups = append(theirs.Groups, group)
			continue
		}
		var state string
		b.with(func(groups *coordinator.Coordinator, now time.Time) { state = groups.State(now, group) })
		if state != coordinator.StateEmpty {
			g := kmsg.NewDeleteGroupsResponseGroup()
			g.Group, g.ErrorCode = group, kerr.NonEmptyGroup.Code
			resp.Groups = append(resp.Groups, g)
			continue
		}
		ours[group] = true
		theirs.Groups = append(theirs.Groups, group)
	}
	if len(ours) == 0 && len(resp.Groups) == 0 {
		return nil, false, nil
	}
	if len(theirs.Groups) > 0 {
		theirs.Version = max(theirs.Version, 2)
		answer, err := b.ask.node(node, &theirs)
		if err != nil {
			return nil, true, err
		}
		for _, g := range answer.(*kmsg.DeleteGroupsResponse).Groups {
			if ours[g.Group] {
				g.ErrorCode = b.deleteGroup(g.Group, g.ErrorCode)
			}
			resp.Groups = append(resp.Groups, g)
		}
	}
	return resp, true, nil
}

// deleteGroup deletes an empty streams group, given what kfake said about the offsets: a group without any is unknown
// to it, and with a time-out it has deleted them.
func (b *Broker) deleteGroup(group string, code int16) int16 {
	switch code {
	case 0, kerr.RequestTimedOut.Code:
	case kerr.GroupIDNotFound.Code:
		code = 0
	default:
		return code
	}
	b.with(func(groups *coordinator.Coordinator, now time.Time) {
		if err := groups.Delete(now, group); err != nil {
			code = err.Code.Code
		}
	})
	return code
}
