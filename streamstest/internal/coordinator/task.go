package coordinator

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TaskID names a task: one partition of one subtopology.
type TaskID struct {
	Subtopology string
	Partition   int32
}

// String is the task's id as Kafka Streams writes it, such as 0_1.
func (t TaskID) String() string { return t.Subtopology + "_" + strconv.Itoa(int(t.Partition)) }

func compareTasks(a, b TaskID) int {
	return cmp.Or(cmp.Compare(a.Subtopology, b.Subtopology), cmp.Compare(a.Partition, b.Partition))
}

// TaskSet is a set of tasks. A nil set is empty. Sets are never changed once they are part of a group's state.
type TaskSet map[TaskID]struct{}

// Has reports whether the task is in the set.
func (s TaskSet) Has(t TaskID) bool { _, ok := s[t]; return ok }

// Sorted returns the tasks by subtopology, then partition.
func (s TaskSet) Sorted() []TaskID { return slices.SortedFunc(maps.Keys(s), compareTasks) }

func (s TaskSet) overlaps(o TaskSet) bool {
	for t := range s {
		if o.Has(t) {
			return true
		}
	}
	return false
}

func union(a, b TaskSet) TaskSet {
	out := make(TaskSet, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// Tasks are the tasks of a member by role. The zero value holds none.
type Tasks struct {
	Active, Standby, Warmup TaskSet
}

func (t Tasks) equal(o Tasks) bool {
	return maps.Equal(t.Active, o.Active) && maps.Equal(t.Standby, o.Standby) && maps.Equal(t.Warmup, o.Warmup)
}

func (t Tasks) clone() Tasks {
	return Tasks{Active: maps.Clone(t.Active), Standby: maps.Clone(t.Standby), Warmup: maps.Clone(t.Warmup)}
}

// grant is what a member has been told to run, or to give up. An active task carries the epoch at which it was
// assigned: offsets committed with an epoch that is at least that one are still the owner's.
type grant struct {
	active          map[TaskID]int32
	standby, warmup TaskSet
}

func (g grant) empty() bool { return len(g.active) == 0 && len(g.standby) == 0 && len(g.warmup) == 0 }

func (g grant) equal(o grant) bool {
	return maps.Equal(g.active, o.active) && maps.Equal(g.standby, o.standby) && maps.Equal(g.warmup, o.warmup)
}

func (g grant) tasks() Tasks {
	active := make(TaskSet, len(g.active))
	for t := range g.active {
		active[t] = struct{}{}
	}
	return Tasks{Active: active, Standby: g.standby, Warmup: g.warmup}
}

func (g grant) merge(o grant) grant {
	active := make(map[TaskID]int32, len(g.active)+len(o.active))
	maps.Copy(active, g.active)
	maps.Copy(active, o.active)
	return grant{active: active, standby: union(g.standby, o.standby), warmup: union(g.warmup, o.warmup)}
}

// overlaps reports whether any task is still held in the role in which it is granted.
func (g grant) overlaps(owned Tasks) bool {
	for t := range g.active {
		if owned.Active.Has(t) {
			return true
		}
	}
	return g.standby.overlaps(owned.Standby) || g.warmup.overlaps(owned.Warmup)
}

func setFromWire(in []kmsg.TaskIDs) TaskSet {
	out := make(TaskSet)
	for _, ids := range in {
		for _, p := range ids.Partitions {
			out[TaskID{ids.SubtopologyID, p}] = struct{}{}
		}
	}
	return out
}

// toWire is sorted and never nil, because null means "unchanged" on the wire.
func toWire(s TaskSet) []kmsg.TaskIDs {
	out := []kmsg.TaskIDs{}
	for _, t := range s.Sorted() {
		if n := len(out); n == 0 || out[n-1].SubtopologyID != t.Subtopology {
			ids := kmsg.NewTaskIDs()
			ids.SubtopologyID = t.Subtopology
			out = append(out, ids)
		}
		last := &out[len(out)-1]
		last.Partitions = append(last.Partitions, t.Partition)
	}
	return out
}
