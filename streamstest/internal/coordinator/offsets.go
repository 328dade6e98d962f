package coordinator

import (
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// memberOffsets are the changelog positions that a member reported last, each the sum over a task's changelogs: of the
// next offset to restore, and of the last offset there is.
type memberOffsets struct {
	current, end map[TaskID]int64
}

// takeOffsets takes over the reported offsets. A list that is missing leaves the last one in force.
func (h *heartbeat) takeOffsets() *Error {
	h.offsets = h.group.offsets
	if h.req.TaskOffsets == nil && h.req.TaskEndOffsets == nil {
		return nil
	}
	o := h.offsets[h.after.id]
	for _, l := range []struct {
		from []kmsg.TaskOffset
		to   *map[TaskID]int64
	}{{h.req.TaskOffsets, &o.current}, {h.req.TaskEndOffsets, &o.end}} {
		if l.from == nil {
			continue
		}
		*l.to = make(map[TaskID]int64, len(l.from))
		for _, t := range l.from {
			id := TaskID{t.SubtopologyID, t.Partition}
			if _, dup := (*l.to)[id]; dup {
				return errorf(kerr.InvalidRequest, "Task offsets contain a duplicate entry for subtopology %s and partition %d.", id.Subtopology, id.Partition)
			}
			(*l.to)[id] = t.Offset
		}
	}
	h.offsets = maps.Clone(h.offsets)
	h.offsets[h.after.id] = o
	return nil
}

// Commit is what an offset commit says about its sender.
type Commit struct {
	Group         string
	MemberID      string
	MemberEpoch   int32
	InstanceID    *string
	Transactional bool
	Version       int16 // of the request
}

// TopicPartition is a partition for which an offset is committed.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// ValidateCommit checks whether the sender may commit offsets for the partitions; the answer is for all of them. An
// epoch older than the member's is good for a partition whose task has been the member's since.
func (c *Coordinator) ValidateCommit(now time.Time, r Commit, partitions []TopicPartition) *Error {
	g := c.at(now, r.Group)
	switch {
	case g == nil:
		return errorf(kerr.GroupIDNotFound, "Group %s not found.", r.Group)
	case r.MemberEpoch < 0 && len(g.members) == 0:
		return nil // by an administrator, while the application is down
	case r.Transactional && r.MemberEpoch == -1 && r.MemberID == "" && r.InstanceID == nil:
		return nil // by a producer that knows nothing of members
	}
	m := g.members[r.MemberID]
	switch {
	case m == nil:
		return errorf(kerr.UnknownMemberID, "Member %s is not a member of group %s.", r.MemberID, r.Group)
	case !r.Transactional && r.Version < 9:
		return errorf(kerr.UnsupportedVersion, "OffsetCommit version 9 or above must be used by members using the streams group protocol")
	case r.MemberEpoch == m.epoch:
		return nil
	case r.MemberEpoch > m.epoch:
		return r.stale("Received member epoch %d is newer than current member epoch %d.", r.MemberEpoch, m.epoch)
	}
	for _, p := range partitions {
		id, ok := g.resolved.reader[p.Topic]
		if !ok {
			return r.stale("Topic %s is not in the topology.", p.Topic)
		}
		task := TaskID{id, p.Partition}
		since, ok := m.assigned.active[task]
		if !ok {
			since, ok = m.pendingRevocation.active[task]
		}
		if !ok {
			return r.stale("Task %s-%d is not assigned or pending revocation for member.", id, p.Partition)
		}
		if r.MemberEpoch < since {
			return r.stale("Received member epoch %d is older than assignment epoch %d for task %s-%d.", r.MemberEpoch, since, id, p.Partition)
		}
	}
	return nil
}

// stale is STALE_MEMBER_EPOCH, or what requests that are older than that error get.
func (r Commit) stale(format string, args ...any) *Error {
	if r.Transactional && r.Version < 6 {
		return errorf(kerr.IllegalGeneration, format, args...)
	}
	return errorf(kerr.StaleMemberEpoch, format, args...)
}

// ValidateFetch checks whether a member may fetch committed offsets. A nil member id with a negative epoch is someone
// who is not a member, and may.
func (c *Coordinator) ValidateFetch(now time.Time, group string, memberID *string, memberEpoch int32) *Error {
	g := c.at(now, group)
	if g == nil || memberID == nil && memberEpoch < 0 {
		return nil
	}
	id := ""
	if memberID != nil {
		id = *memberID
	}
	m := g.members[id]
	if m == nil {
		return errorf(kerr.UnknownMemberID, "Member %s is not a member of group %s.", id, group)
	}
	if m.epoch != memberEpoch {
		return errorf(kerr.StaleMemberEpoch, "The received member epoch %d does not match the expected member epoch %d.", memberEpoch, m.epoch)
	}
	return nil
}
