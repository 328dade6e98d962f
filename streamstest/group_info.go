package streamstest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// States of a streams group.
const (
	StateEmpty       = coordinator.StateEmpty       // no members
	StateNotReady    = coordinator.StateNotReady    // topics are missing or wrong
	StateAssigning   = coordinator.StateAssigning   // due for another assignment
	StateReconciling = coordinator.StateReconciling // members are on the way to the assignment
	StateStable      = coordinator.StateStable      // every member is where it should be
)

// Statuses that the coordinator reports to members.
const (
	StatusStaleTopology                = coordinator.StatusStaleTopology
	StatusMissingSourceTopics          = coordinator.StatusMissingSourceTopics
	StatusIncorrectlyPartitionedTopics = coordinator.StatusIncorrectlyPartitionedTopics
	StatusMissingInternalTopics        = coordinator.StatusMissingInternalTopics
	StatusShutdownApplication          = coordinator.StatusShutdownApplication
	StatusAssignmentDelayed            = coordinator.StatusAssignmentDelayed
	StatusMissingClientTags            = coordinator.StatusMissingClientTags
)

// GroupInfo is a streams group at one moment. It is the caller's own.
type GroupInfo struct {
	ID              string
	State           string
	Epoch           int32 // of the group
	AssignmentEpoch int32 // of the target assignment
	TopologyEpoch   int32

	// EndpointInformationEpoch rises when what members know about each other's endpoints is out of date.
	EndpointInformationEpoch int32

	Statuses []GroupStatus // what every member was told last; empty if all is well
	Members  []MemberInfo  // by id
}

// GroupStatus is one status: its code, and Kafka's text for it.
type GroupStatus struct {
	Code   int8
	Detail string
}

// MemberInfo is a member of a streams group: a stream thread.
type MemberInfo struct {
	ID         string
	InstanceID string // "" for a dynamic member
	ProcessID  string
	Epoch      int32  // -2 for a static member that is away
	Endpoint   string // host:port, "" if the member has none
	ClientTags map[string]string

	Assigned Tasks // what the member may run, and learns with its next heartbeat if it does not know yet
	Revoking Tasks // what it still has to give up
	Target   Tasks // what it is to run in the end

	TaskOffsets    map[Task]int64 // reported last: the sum of the next offsets over the task's changelogs
	TaskEndOffsets map[Task]int64 // the sum of their ends, each less one
}

// Task is one partition of a subtopology.
type Task struct {
	Subtopology string
	Partition   int32
}

// String returns the task's id as Kafka Streams writes it, such as 0_1.
func (t Task) String() string { return t.Subtopology + "_" + strconv.Itoa(int(t.Partition)) }

// Tasks are the tasks of a member by role, each sorted.
type Tasks struct {
	Active, Standby, Warmup []Task
}

// Group returns a streams group as it is now, and whether it exists.
func (b *Broker) Group(id string) (GroupInfo, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.groups.Snapshot(time.Now(), id)
	if !ok {
		return GroupInfo{}, false
	}
	g := GroupInfo{
		ID: id, State: s.State, Epoch: s.Epoch, AssignmentEpoch: s.AssignmentEpoch,
		TopologyEpoch: s.TopologyEpoch, EndpointInformationEpoch: s.EndpointEpoch,
	}
	for _, st := range s.Statuses {
		g.Statuses = append(g.Statuses, GroupStatus(st))
	}
	for _, m := range s.Members {
		info := MemberInfo{
			ID: m.ID, InstanceID: m.InstanceID, ProcessID: m.ProcessID, Epoch: m.Epoch, ClientTags: m.ClientTags,
			Assigned: tasks(m.Assigned), Revoking: tasks(m.Revoking), Target: tasks(m.Target),
			TaskOffsets: offsets(m.TaskOffsets), TaskEndOffsets: offsets(m.TaskEndOffsets),
		}
		if m.Endpoint != nil {
			info.Endpoint = fmt.Sprintf("%s:%d", m.Endpoint.Host, m.Endpoint.Port)
		}
		g.Members = append(g.Members, info)
	}
	return g, true
}

// WaitGroup waits until the group exists and is as wanted, and returns it. If the context ends first, it returns the
// group as it was last, and the context's error.
func (b *Broker) WaitGroup(ctx context.Context, id string, wanted func(GroupInfo) bool) (GroupInfo, error) {
	const often = 10 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		g, ok := b.Group(id)
		if ok && wanted(g) {
			return g, nil
		}
		select {
		case <-ctx.Done():
			return g, fmt.Errorf("streamstest: group %s is not as wanted, its state is %q with %d members: %w", id, g.State, len(g.Members), ctx.Err())
		case <-tick.C:
		}
	}
}

// WaitStable waits until the group is stable with that many members.
func (b *Broker) WaitStable(ctx context.Context, id string, members int) (GroupInfo, error) {
	return b.WaitGroup(ctx, id, func(g GroupInfo) bool { return g.State == StateStable && len(g.Members) == members })
}

func tasks(t coordinator.Tasks) Tasks {
	list := func(s coordinator.TaskSet) []Task {
		var out []Task
		for _, t := range s.Sorted() {
			out = append(out, Task(t))
		}
		return out
	}
	return Tasks{Active: list(t.Active), Standby: list(t.Standby), Warmup: list(t.Warmup)}
}

func offsets(in map[coordinator.TaskID]int64) map[Task]int64 {
	out := make(map[Task]int64, len(in))
	for t, o := range in {
		out[Task(t)] = o
	}
	return out
}
