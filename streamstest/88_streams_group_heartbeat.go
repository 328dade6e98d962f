package streamstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// StreamsGroupHeartbeat: v0-1
//
// Behavior:
// * Answered by the coordinator, on the node that is the group's coordinator
// * Internal topics that are missing are created before the answer, which still says that they were missing
//
// Version notes:
// * v0: no task offsets, no warm-up tasks, no MISSING_CLIENT_TAGS
// * v1: TopologyDescriptionRequired (KIP-1331), AcceptableRecoveryLag is an int64

func (b *Broker) streamsGroupHeartbeat(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.StreamsGroupHeartbeatRequest)
	if req.Version > b.config.version {
		return unsupported(req)
	}
	fault := b.faults.hit(node, req, req.Group)
	if fault.instead() {
		return fault.heartbeat(req), true, nil
	}
	if !b.coordinates(node, req.Group) {
		resp := req.ResponseKind().(*kmsg.StreamsGroupHeartbeatResponse)
		resp.ErrorCode = kerr.NotCoordinator.Code
		return resp, true, nil
	}
	cluster, err := b.clusterFor(node, req)
	if err != nil {
		return nil, true, err
	}
	client := coordinator.Client{ID: b.clients.of(req.MemberID), Host: "/127.0.0.1"}
	var resp *kmsg.StreamsGroupHeartbeatResponse
	var missing []coordinator.NewTopic
	b.with(func(groups *coordinator.Coordinator, now time.Time) {
		resp, missing = groups.Heartbeat(now, req, client, cluster)
	})
	if len(missing) > 0 {
		if err := b.createTopics(resp, missing); err != nil {
			return nil, true, err
		}
	}
	if fault != nil {
		return fault.heartbeat(req), true, nil
	}
	return resp, true, nil
}

// clusterFor gathers what the coordinator wants to know for a heartbeat.
func (b *Broker) clusterFor(node int32, req *kmsg.StreamsGroupHeartbeatRequest) (coordinator.Cluster, error) {
	var names []string
	var patterns bool
	b.with(func(groups *coordinator.Coordinator, _ time.Time) { names, patterns = groups.RequiredTopics(req) })
	topics := b.topics(names)
	var all []string
	if patterns {
		var err error
		if topics, all, err = b.allTopics(node); err != nil {
			return coordinator.Cluster{}, err
		}
	}
	other := coordinator.NoOtherGroup
	if !b.isStreams(req.Group) {
		var err error
		if other, err = b.otherGroup(node, req.Group); err != nil {
			return coordinator.Cluster{}, err
		}
	}
	return coordinator.Cluster{
		Topics:     topics,
		TopicNames: all,
		OtherGroup: func(string) coordinator.OtherGroup { return other },
	}, nil
}

// allTopics returns what there is of all topics, and their names, sorted.
func (b *Broker) allTopics(node int32) (coordinator.Topics, []string, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 10 // topic ids
	answer, err := b.ask.node(node, req)
	if err != nil {
		return nil, nil, err
	}
	found := make(map[string]coordinator.Topic)
	for _, t := range answer.(*kmsg.MetadataResponse).Topics {
		if t.Topic != nil && t.ErrorCode == 0 {
			found[*t.Topic] = coordinator.Topic{ID: t.TopicID, Partitions: int32(len(t.Partitions))}
		}
	}
	return lookup(found), slices.Sorted(maps.Keys(found)), nil
}

// otherGroup looks for a group that kfake has under the id of a streams group to be.
func (b *Broker) otherGroup(node int32, group string) (coordinator.OtherGroup, error) {
	info := b.cluster.GroupInfo(group)
	if info == nil {
		return coordinator.NoOtherGroup, nil
	}
	if len(info.Members) > 0 {
		return coordinator.OtherGroupInUse, nil
	}
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = 5
	answer, err := b.ask.node(node, req)
	if err != nil {
		return 0, err
	}
	for _, g := range answer.(*kmsg.ListGroupsResponse).Groups {
		if g.Group == group && g.GroupType != "classic" {
			return coordinator.OtherGroupInUse, nil
		}
	}
	return coordinator.EmptyClassic, nil
}

// createTopics creates internal topics, and adds to the status of the answer what went wrong with it.
func (b *Broker) createTopics(resp *kmsg.StreamsGroupHeartbeatResponse, missing []coordinator.NewTopic) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 5
	for _, m := range missing {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = m.Name, m.Partitions, m.ReplicationFactor
		for k, v := range m.Configs {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = k, kmsg.StringPtr(v)
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	answer, err := b.ask.controller(req)
	if err != nil {
		return err
	}
	var failed []string
	for _, t := range answer.(*kmsg.CreateTopicsResponse).Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		if err == nil || t.ErrorCode == kerr.TopicAlreadyExists.Code { // created by another heartbeat meanwhile
			continue
		}
		detail := err.Error()
		if t.ErrorMessage != nil {
			detail = *t.ErrorMessage
		}
		failed = append(failed, fmt.Sprintf("%s (%s)", t.Topic, detail))
	}
	if len(failed) == 0 {
		return nil
	}
	slices.Sort(failed)
	const most = 3
	details := strings.Join(failed, ", ")
	if len(failed) > most {
		details = fmt.Sprintf("%s and %d more", strings.Join(failed[:most], ", "), len(failed)-most)
	}
	for i := range resp.Status {
		if resp.Status[i].StatusCode == coordinator.StatusMissingInternalTopics {
			resp.Status[i].StatusDetail += "; Creation failed: " + details + "."
		}
	}
	return nil
}
