package streamstest

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// OffsetFetch
//
// Behavior:
// * For a streams group, checks member and member epoch; kfake has the offsets
// * A group that does not exist has no offsets, which is not an error

func (b *Broker) offsetFetch(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.OffsetFetchRequest)
	groups := req.Groups
	if req.Version < 8 {
		groups = []kmsg.OffsetFetchRequestGroup{oldFetchGroup(req)}
	}
	ours := make(map[int]kmsg.OffsetFetchResponseGroup) // answers that are not kfake's, by index
	var create []string
	for i, g := range groups {
		if !b.coordinates(node, g.Group) {
			continue
		}
		if b.unknownGroup(g.Group) {
			ours[i] = noOffsets(g)
			continue
		}
		if !b.isStreams(g.Group) {
			continue
		}
		if code := b.checkFetch(g); code != 0 {
			ours[i] = fetchError(g, code)
		} else if b.cluster.GroupInfo(g.Group) == nil {
			create = append(create, g.Group)
		}
	}
	for _, g := range create {
		if err := b.createGroup(node, g); err != nil {
			return nil, true, err
		}
	}
	if len(ours) == 0 {
		return nil, false, nil
	}
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	if req.Version < 8 {
		oldFetchResponse(resp, ours[0])
		return resp, true, nil
	}
	theirs := *req
	theirs.Groups = nil
	for i, g := range groups {
		if _, ok := ours[i]; !ok {
			theirs.Groups = append(theirs.Groups, g)
		}
	}
	var asked []kmsg.OffsetFetchResponseGroup
	if len(theirs.Groups) > 0 {
		answer, err := b.ask.node(node, &theirs)
		if err != nil {
			return nil, true, err
		}
		asked = answer.(*kmsg.OffsetFetchResponse).Groups
	}
	for i := range groups {
		if g, ok := ours[i]; ok {
			resp.Groups = append(resp.Groups, g)
		} else if len(asked) > 0 {
			resp.Groups = append(resp.Groups, asked[0])
			asked = asked[1:]
		}
	}
	return resp, true, nil
}

func (b *Broker) checkFetch(g kmsg.OffsetFetchRequestGroup) int16 {
	code := int16(0)
	b.with(func(groups *coordinator.Coordinator, now time.Time) {
		if err := groups.ValidateFetch(now, g.Group, g.MemberID, g.MemberEpoch); err != nil {
			code = err.Code.Code
		}
	})
	return code
}

func fetchError(g kmsg.OffsetFetchRequestGroup, code int16) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group, out.ErrorCode = g.Group, code
	return out
}

func noOffsets(g kmsg.OffsetFetchRequestGroup) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group = g.Group
	for _, t := range g.Topics {
		rt := kmsg.NewOffsetFetchResponseGroupTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = p, -1, -1, kmsg.StringPtr("")
			rt.Partitions = append(rt.Partitions, rp)
		}
		out.Topics = append(out.Topics, rt)
	}
	return out
}

// oldFetchGroup reads a request from before there could be several groups in one, or members in it.
func oldFetchGroup(req *kmsg.OffsetFetchRequest) kmsg.OffsetFetchRequestGroup {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = req.Group
	for _, t := range req.Topics {
		gt := kmsg.NewOffsetFetchRequestGroupTopic()
		gt.Topic, gt.Partitions = t.Topic, t.Partitions
		g.Topics = append(g.Topics, gt)
	}
	return g
}

func oldFetchResponse(resp *kmsg.OffsetFetchResponse, g kmsg.OffsetFetchResponseGroup) {
	resp.ErrorCode = g.ErrorCode
	for _, t := range g.Topics {
		rt := kmsg.NewOffsetFetchResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetFetchResponseTopicPartition()
			rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = p.Partition, p.Offset, p.LeaderEpoch, p.Metadata
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}
