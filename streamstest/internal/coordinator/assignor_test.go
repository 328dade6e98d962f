package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// situation is an input of the assignor.
type situation struct {
	members  map[string]*member
	offsets  map[string]memberOffsets
	topology *configuredTopology
	standbys int
}

func (s situation) assign() map[string]Tasks {
	return assignTasks(s.members, s.offsets, s.topology, s.standbys)
}

func (s situation) processes() map[string]int {
	out := make(map[string]int)
	for _, m := range s.members {
		out[m.processID]++
	}
	return out
}

// settled is the situation after everyone runs what they were assigned.
func (s situation) settled(assignment map[string]Tasks) situation {
	members := make(map[string]*member)
	for id, m := range s.members {
		after := *m
		after.assigned = grant{active: make(map[TaskID]int32), standby: assignment[id].Standby}
		for t := range assignment[id].Active {
			after.assigned.active[t] = 1
		}
		members[id] = &after
	}
	return situation{members: members, topology: s.topology, standbys: s.standbys}
}

func drawTopology(t *rapid.T) *configuredTopology {
	c := &configuredTopology{}
	for i := range rapid.IntRange(1, 3).Draw(t, "subtopologies") {
		s := configuredSubtopology{id: fmt.Sprint(i), tasks: rapid.Int32Range(1, 6).Draw(t, "tasks"), sourceTopics: []string{"in"}}
		if rapid.Bool().Draw(t, "stateful") {
			s.stateChangelogTopics = []NewTopic{{Name: "changelog"}}
		}
		c.subtopologies = append(c.subtopologies, s)
	}
	return c
}

// drawSituation makes members that run anything, in any way: the assignor must cope with what it would not have done.
func drawSituation(t *rapid.T) situation {
	s := situation{
		members:  make(map[string]*member),
		offsets:  make(map[string]memberOffsets),
		topology: drawTopology(t),
		standbys: rapid.IntRange(0, 2).Draw(t, "standbys"),
	}
	n := rapid.IntRange(1, 7).Draw(t, "members")
	ids := make([]string, n)
	for i := range n {
		ids[i] = fmt.Sprintf("m%d", i)
		m := newMember(ids[i])
		m.processID = fmt.Sprintf("p%d", rapid.IntRange(0, 3).Draw(t, "process"))
		m.assigned.active = make(map[TaskID]int32)
		m.assigned.standby = TaskSet{}
		s.members[m.id] = m
		s.offsets[m.id] = memberOffsets{current: make(map[TaskID]int64)}
	}
	for _, sub := range s.topology.subtopologies {
		for p := range sub.tasks {
			task := TaskID{sub.id, p}
			if i := rapid.IntRange(-1, n-1).Draw(t, "runs"); i >= 0 {
				s.members[ids[i]].assigned.active[task] = 1
			}
			if !sub.stateful() {
				continue
			}
			if i := rapid.IntRange(-1, n-1).Draw(t, "stands by"); i >= 0 {
				s.members[ids[i]].assigned.standby[task] = struct{}{}
			}
			if i := rapid.IntRange(-1, n-1).Draw(t, "has state"); i >= 0 {
				s.offsets[ids[i]].current[task] = int64(rapid.IntRange(0, 100).Draw(t, "offset"))
			}
		}
	}
	return s
}

func TestAssignorProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		got := s.assign()
		checkAssignment(t, s, got)
		if again := s.assign(); !maps.EqualFunc(got, again, Tasks.equal) {
			t.Fatalf("two answers: %v and %v", got, again)
		}
	})
}

// checkAssignment checks what every assignment must have.
func checkAssignment(t *rapid.T, s situation, got map[string]Tasks) {
	total, stateful := 0, 0
	holders := make(map[TaskID]map[string]bool) // processes
	active, standby := make(map[TaskID]int), make(map[TaskID]int)
	for id, tasks := range got {
		m := s.members[id]
		if m == nil {
			t.Fatalf("%s is not a member", id)
		}
		for role, set := range map[string]TaskSet{"active": tasks.Active, "standby": tasks.Standby} {
			for task := range set {
				if holders[task][m.processID] {
					t.Fatalf("process %s has task %v twice", m.processID, task)
				}
				if holders[task] == nil {
					holders[task] = make(map[string]bool)
				}
				holders[task][m.processID] = true
				if role == "active" {
					active[task]++
				} else {
					standby[task]++
				}
			}
		}
	}
	processes := s.processes()
	for _, sub := range s.topology.subtopologies {
		for p := range sub.tasks {
			task := TaskID{sub.id, p}
			total++
			if active[task] != 1 {
				t.Fatalf("task %v is active %d times", task, active[task])
			}
			want := 0
			if sub.stateful() {
				stateful++
				want = min(s.standbys, len(processes)-1)
			}
			if standby[task] != want {
				t.Fatalf("task %v has %d standbys of %d", task, standby[task], want)
			}
		}
	}
	if len(active) != total {
		t.Fatalf("%d tasks are active, of %d", len(active), total)
	}
	// Balance: no member runs more than its share, rounded up; a process with k members counts k times.
	share := (total + len(s.members) - 1) / len(s.members)
	for id, tasks := range got {
		if len(tasks.Active) > share {
			t.Fatalf("%s runs %d of %d tasks, its share is %d", id, len(tasks.Active), total, share)
		}
	}
}

// fresh is the situation before anyone ran anything.
func (s situation) fresh() situation {
	s = s.settled(nil)
	s.offsets = nil
	return s
}

// A group in which nothing changes keeps its assignment.
func TestAssignorIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t).fresh()
		first := s.assign()
		s = s.settled(first)
		second := s.assign()
		for id := range first {
			if !maps.Equal(first[id].Active, second[id].Active) {
				t.Fatalf("%s runs %v, then %v", id, first[id].Active.Sorted(), second[id].Active.Sorted())
			}
		}
	})
}

// When a member leaves, the others keep what they run.
func TestAssignorMovesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t).fresh()
		if len(s.members) < 2 {
			return
		}
		before := s.assign()
		s = s.settled(before)
		gone := rapid.SampledFrom(slices.Sorted(maps.Keys(s.members))).Draw(t, "gone")
		delete(s.members, gone)
		after := s.assign()
		for id := range s.members {
			for task := range before[id].Active {
				if !after[id].Active.Has(task) {
					t.Fatalf("%s loses task %v because %s left: %v, %v", id, task, gone, before, after)
				}
			}
		}
	})
}

func TestAssignorPrefersState(t *testing.T) {
	topology := &configuredTopology{subtopologies: []configuredSubtopology{{id: "0", tasks: 2, stateChangelogTopics: []NewTopic{{}}}}}
	task := TaskID{"0", 0}
	for name, test := range map[string]struct {
		standby string           // member that stands by for task 0
		offsets map[string]int64 // positions on disk
		want    string
	}{
		"a standby":                    {standby: "c", want: "c"},
		"state on disk":                {offsets: map[string]int64{"b": 5}, want: "b"},
		"more state on disk":           {offsets: map[string]int64{"b": 5, "c": 6}, want: "c"},
		"a standby rather than a disk": {standby: "b", offsets: map[string]int64{"c": 6}, want: "b"},
	} {
		s := situation{members: make(map[string]*member), offsets: make(map[string]memberOffsets), topology: topology}
		for _, id := range []string{"a", "b", "c"} {
			m := newMember(id)
			m.processID = id
			m.assigned.standby = TaskSet{}
			s.members[id] = m
			if o, ok := test.offsets[id]; ok {
				s.offsets[id] = memberOffsets{current: map[TaskID]int64{task: o}}
			}
		}
		if test.standby != "" {
			s.members[test.standby].assigned.standby[task] = struct{}{}
		}
		if got := s.assign(); !got[test.want].Active.Has(task) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A process with two members gets twice the tasks of one with a single member.
func TestAssignorWeighsProcesses(t *testing.T) {
	topology := &configuredTopology{subtopologies: []configuredSubtopology{{id: "0", tasks: 6}}}
	s := situation{members: make(map[string]*member), topology: topology}
	for id, process := range map[string]string{"a": "p", "b": "p", "c": "q"} {
		m := newMember(id)
		m.processID = process
		s.members[id] = m
	}
	for id, tasks := range s.assign() {
		if len(tasks.Active) != 2 {
			t.Errorf("%s runs %v", id, tasks.Active.Sorted())
		}
	}
}
