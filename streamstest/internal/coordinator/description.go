package coordinator

import (
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Status of a topology description in a StreamsGroupDescribe.
const (
	descriptionNotStored int8 = 1
	descriptionAvailable int8 = 3
)

// A member that was asked for a description gets some time before another one is asked, more each time.
const (
	descriptionBackoff    = 30 * time.Second
	descriptionBackoffMax = time.Hour
)

// topologyDescription is what members push about the nodes of their topology (KIP-1331), and when to ask for it.
type topologyDescription struct {
	pushed   *kmsg.TopologyDescription
	epoch    int32 // of the topology that it describes; -1: none
	asked    int   // how many times, since there was a description
	askAgain time.Time
}

func newTopologyDescription() topologyDescription { return topologyDescription{epoch: -1} }

// askForDescription makes the answer ask for a description if there is none of the group's topology.
func (c *Coordinator) askForDescription(h *heartbeat, resp *kmsg.StreamsGroupHeartbeatResponse) {
	d := &h.group.description
	if !c.config.TopologyDescriptions || h.req.Version < 1 || d.epoch == h.topology.epoch ||
		h.after.topologyEpoch < h.topology.epoch || h.now.Before(d.askAgain) {
		return
	}
	wait := time.Duration(math.Min(float64(descriptionBackoff)*math.Pow(2, float64(d.asked)), float64(descriptionBackoffMax)))
	d.asked++
	d.askAgain = h.now.Add(wait)
	resp.TopologyDescriptionRequired = true
}

// UpdateTopologyDescription answers a StreamsGroupTopologyDescriptionUpdate. It keeps the description.
func (c *Coordinator) UpdateTopologyDescription(now time.Time, req *kmsg.StreamsGroupTopologyDescriptionUpdateRequest) *kmsg.StreamsGroupTopologyDescriptionUpdateResponse {
	resp := req.ResponseKind().(*kmsg.StreamsGroupTopologyDescriptionUpdateResponse)
	if err := c.updateTopologyDescription(now, req); err != nil {
		resp.ErrorCode, resp.ErrorMessage = err.Code.Code, kmsg.StringPtr(err.Message)
	}
	return resp
}

func (c *Coordinator) updateTopologyDescription(now time.Time, req *kmsg.StreamsGroupTopologyDescriptionUpdateRequest) *Error {
	switch {
	case !c.config.TopologyDescriptions:
		return errorf(kerr.UnsupportedVersion, "The broker has no streams group topology description plugin configured.")
	case strings.TrimSpace(req.MemberID) == "":
		return invalid("MemberId can't be empty.")
	case strings.TrimSpace(req.Group) == "":
		return invalid("GroupId can't be empty.")
	}
	g := c.at(now, req.Group)
	if g == nil {
		return errorf(kerr.GroupIDNotFound, "Group %s not found.", req.Group)
	}
	if g.members[req.MemberID] == nil {
		return errorf(kerr.UnknownMemberID, "Member %s is not a member of group %s.", req.MemberID, req.Group)
	}
	if req.TopologyEpoch != g.topology.epoch {
		return errorf(kerr.InvalidRequest, "Topology epoch %d does not match the group's current topology epoch %d.", req.TopologyEpoch, g.topology.epoch)
	}
	if err := validateDescription(req.TopologyDescription); err != nil {
		return err
	}
	g.description = topologyDescription{pushed: &req.TopologyDescription, epoch: req.TopologyEpoch}
	return nil
}

func validateDescription(d kmsg.TopologyDescription) *Error {
	const source, processor, sink = 1, 2, 3
	for _, s := range d.Subtopologies {
		for _, n := range s.Nodes {
			if n.NodeType < source || n.NodeType > sink {
				return errorf(kerr.InvalidRequest, "Unknown topology node type: %d", n.NodeType)
			}
		}
	}
	for _, g := range d.GlobalStores {
		if g.Source.NodeType != source || g.Processor.NodeType != processor {
			return invalid("Global store must be composed of a source and a processor node.")
		}
	}
	return nil
}

func (d topologyDescription) describe(enabled bool, t *topology) (*kmsg.StreamsGroupDescribeResponseGroupTopologyDescription, int8) {
	if !enabled || d.pushed == nil || d.epoch != t.epoch {
		return nil, descriptionNotStored
	}
	out := kmsg.NewStreamsGroupDescribeResponseGroupTopologyDescription()
	out.Subtopologies, out.GlobalStores = d.pushed.Subtopologies, d.pushed.GlobalStores
	return &out, descriptionAvailable
}
