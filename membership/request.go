package membership

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// joinFields are what only a join carries, made once.
type joinFields struct {
	instance, rack, process *string
	rebalanceMillis         int32
	endpoint                *kmsg.StreamsGroupHeartbeatRequestUserEndpoint
	tags                    []kmsg.StreamsGroupHeartbeatRequestClientTag
}

func newJoinFields(cfg *Config) joinFields {
	j := joinFields{
		process:         &cfg.ProcessID,
		rebalanceMillis: int32(cfg.RebalanceTimeout.Milliseconds()),
		tags:            cfg.tags(),
	}
	if cfg.InstanceID != "" {
		j.instance = &cfg.InstanceID
	}
	if cfg.RackID != "" {
		j.rack = &cfg.RackID
	}
	if cfg.Endpoint != nil {
		e := kmsg.NewStreamsGroupHeartbeatRequestUserEndpoint()
		e.Host, e.Port = cfg.Endpoint.Host, cfg.Endpoint.Port
		j.endpoint = &e
	}
	return j
}

// heartbeat generates the next request, and makes the changes of state that
// come with generating it.
func (m *Member) heartbeat(now time.Time) *kmsg.StreamsGroupHeartbeatRequest {
	b := &m.beat
	req := b.spare
	if req == nil {
		req = new(kmsg.StreamsGroupHeartbeatRequest)
	}
	b.spare = nil // it comes back with its answer
	*req = kmsg.StreamsGroupHeartbeatRequest{
		Version:                  1,
		Group:                    m.cfg.Group,
		MemberID:                 m.cfg.MemberID,
		MemberEpoch:              m.epoch,
		EndpointInformationEpoch: m.endpointEpoch,
		InstanceID:               m.join.instance,
		RebalanceTimeoutMillis:   -1,
		ShutdownApplication:      m.shutdown,
	}
	why := atInterval
	switch {
	case m.exit.pending:
		// The coordinator drops all it knows of the member; nothing to tell it.
	case m.state == Joining:
		why = atJoin
		m.introduced = true
		req.RebalanceTimeoutMillis = m.join.rebalanceMillis
		req.Topology = m.cfg.Topology
		req.RackID = m.join.rack
		req.ProcessID = m.join.process
		req.UserEndpoint = m.join.endpoint
		req.ClientTags = m.join.tags
		m.putTasks(req)
	default:
		if m.state == Acknowledging {
			why = atAck
			if m.current.LocalEpoch == m.target.LocalEpoch {
				m.to(Stable)
			} else {
				m.to(Reconciling)
			}
		}
		if !m.listsSent {
			m.putTasks(req)
		}
	}
	if m.version != 0 {
		m.offsets.report(req, now, why, m.offsetInterval, m.current.Warmup, m.recoveryLag)
	}
	return req
}

// putTasks sets the three lists, which travel together. A join owns nothing:
// whatever was owned before has been released.
func (m *Member) putTasks(req *kmsg.StreamsGroupHeartbeatRequest) {
	req.ActiveTasks = tasksToWire(m.current.Active)
	req.StandbyTasks = tasksToWire(m.current.Standby)
	req.WarmupTasks = tasksToWire(m.current.Warmup)
	m.listsSent = true
	if m.version == 0 {
		forVersion0(req)
	}
}

// forVersion0 takes out what a coordinator of Kafka 4.1 to 4.3 refuses: it
// knows no task offsets, and no warm-up tasks.
func forVersion0(req *kmsg.StreamsGroupHeartbeatRequest) {
	req.TaskOffsets, req.TaskEndOffsets = nil, nil
	if len(req.WarmupTasks) > 0 {
		req.WarmupTasks = []kmsg.TaskIDs{}
	}
}
