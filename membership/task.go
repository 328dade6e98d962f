package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TaskID names a task: one partition of one subtopology (KIP-1071). It is
// comparable, so it can be a map key.
type TaskID struct {
	// Subtopology is the subtopology's id, a number in Kafka Streams.
	Subtopology string
	// Partition is the partition number, from 0.
	Partition int32
}

// String returns the task as Kafka Streams writes it, for instance "0_1".
func (t TaskID) String() string {
	return t.Subtopology + "_" + strconv.Itoa(int(t.Partition))
}

// ParseTaskID is the inverse of [TaskID.String]. The partition is what follows
// the last underscore.
func ParseTaskID(s string) (TaskID, error) {
	i := strings.LastIndexByte(s, '_')
	if i <= 0 {
		return TaskID{}, fmt.Errorf("membership: task id %q is not <subtopology>_<partition>", s)
	}
	p, err := strconv.ParseInt(s[i+1:], 10, 32)
	if err != nil || p < 0 || s[i+1] == '+' {
		return TaskID{}, fmt.Errorf("membership: task id %q has no partition number after its last underscore", s)
	}
	return TaskID{Subtopology: s[:i], Partition: int32(p)}, nil
}

// Compare orders tasks by subtopology, then by partition. Subtopologies that
// are both numbers are compared as numbers ("2" before "10"), others as text.
func (t TaskID) Compare(o TaskID) int {
	if t.Subtopology == o.Subtopology {
		return cmp.Compare(t.Partition, o.Partition)
	}
	a, aok := number(t.Subtopology)
	b, bok := number(o.Subtopology)
	switch {
	case aok && bok && a != b:
		return cmp.Compare(a, b)
	case aok != bok:
		// Numbers before text keeps the order total when the two are mixed.
		if aok {
			return -1
		}
		return 1
	}
	return cmp.Compare(t.Subtopology, o.Subtopology)
}

// number parses a short run of digits. It is called for each comparison of a
// sort, so it doesn't go through strconv's error values.
func number(s string) (int, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// Assignment is a target to reconcile to. The slices are sorted by
// [TaskID.Compare], hold no task twice and must not be changed by the receiver;
// nil and empty both mean none.
type Assignment struct {
	// LocalEpoch increases by one with every assignment the member takes. It
	// tells apart two assignments of equal tasks, and it is what
	// [Loop.Reconciled] acknowledges.
	LocalEpoch int64
	// Active tasks process records.
	Active []TaskID
	// Standby tasks keep a copy of the state.
	Standby []TaskID
	// Warmup tasks build state for a task that will become active here later.
	Warmup []TaskID
}

func (a *Assignment) empty() bool {
	return len(a.Active)+len(a.Standby)+len(a.Warmup) == 0
}

// sameTasks compares all but the local epoch.
func (a *Assignment) sameTasks(o *Assignment) bool {
	return slices.Equal(a.Active, o.Active) &&
		slices.Equal(a.Standby, o.Standby) &&
		slices.Equal(a.Warmup, o.Warmup)
}

// tasksFromWire flattens a response's list.
func tasksFromWire(in []kmsg.TaskIDs) []TaskID {
	n := 0
	for i := range in {
		n += len(in[i].Partitions)
	}
	if n == 0 {
		return nil
	}
	out := make([]TaskID, 0, n)
	for i := range in {
		for _, p := range in[i].Partitions {
			out = append(out, TaskID{in[i].SubtopologyID, p})
		}
	}
	slices.SortFunc(out, TaskID.Compare)
	return slices.Compact(out)
}

// tasksToWire groups sorted tasks by subtopology. It never returns nil: a
// nil list means "unchanged" on the wire, an empty one means "none".
func tasksToWire(in []TaskID) []kmsg.TaskIDs {
	out := []kmsg.TaskIDs{}
	for _, t := range in {
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
