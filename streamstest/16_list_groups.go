package streamstest

import (
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// ListGroups
//
// Behavior:
// * Streams groups have protocol type and group type "streams"
// * kfake holds offsets for them in groups of its own, which are left out
//
// Version notes:
// * v4: GroupState, StatesFilter
// * v5: GroupType, TypesFilter

func (b *Broker) listGroups(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.ListGroupsRequest)
	var ids []string
	b.with(func(groups *coordinator.Coordinator, _ time.Time) { ids = groups.Groups() })
	ids = slices.DeleteFunc(ids, func(group string) bool { return !b.coordinates(node, group) })
	if len(ids) == 0 {
		return nil, false, nil
	}
	theirs := *req
	theirs.Version = max(theirs.Version, 5)
	answer, err := b.ask.node(node, &theirs)
	if err != nil {
		return nil, true, err
	}
	resp := answer.(*kmsg.ListGroupsResponse)
	resp.Version = req.Version
	if resp.ErrorCode != 0 {
		return resp, true, nil
	}
	resp.Groups = slices.DeleteFunc(resp.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return slices.Contains(ids, g.Group) })
	for _, id := range ids {
		g := kmsg.NewListGroupsResponseGroup()
		g.Group, g.ProtocolType, g.GroupType = id, "streams", "streams"
		b.with(func(groups *coordinator.Coordinator, now time.Time) { g.GroupState = groups.State(now, id) })
		if listed(req.StatesFilter, stateFilterName(g.GroupState)) && listed(req.TypesFilter, "streams") {
			resp.Groups = append(resp.Groups, g)
		}
	}
	return resp, true, nil
}

func listed(filter []string, name string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(strings.TrimSpace(f), name) })
}

// stateFilterName is how filters call a state.
func stateFilterName(state string) string {
	if state == coordinator.StateNotReady {
		return "not_ready"
	}
	return state
}
