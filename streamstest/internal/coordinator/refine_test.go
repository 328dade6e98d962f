package coordinator

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// roles reads "a=0 s=1,2 w=3": active, standby and warm-up tasks of subtopology 0. Subtopology 1 is "A=0": it has no
// state.
func roles(t *testing.T, text string) Tasks {
	t.Helper()
	tasks := Tasks{Active: TaskSet{}, Standby: TaskSet{}, Warmup: TaskSet{}}
	for _, word := range strings.Fields(text) {
		role, list, _ := strings.Cut(word, "=")
		for _, p := range strings.Split(list, ",") {
			task := TaskID{Subtopology: "0"}
			if _, err := fmt.Sscan(p, &task.Partition); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			switch role {
			case "a":
				tasks.Active[task] = struct{}{}
			case "A":
				task.Subtopology = "1"
				tasks.Active[task] = struct{}{}
			case "s":
				tasks.Standby[task] = struct{}{}
			case "w":
				tasks.Warmup[task] = struct{}{}
			}
		}
	}
	return tasks
}

func TestRefine(t *testing.T) {
	const unknown = math.MaxInt64
	type reported = map[int32][2]int64 // position and end, by partition
	type holder struct {
		process, has, target string
		reported             reported
		want                 string
		old                  bool // speaks version 0
	}
	for name, test := range map[string]struct {
		budget  int
		members map[string]holder
	}{
		"without a budget, the target": {0, map[string]holder{
			"m": {process: "p", has: "a=0", want: ""}, "n": {process: "q", target: "a=0", want: "a=0"}}},
		"nobody runs it": {1, map[string]holder{
			"m": {process: "p", want: ""}, "n": {process: "q", target: "a=0", want: "a=0"}}},
		"it stays, and warms up": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: "a=0"}, "n": {process: "q", target: "a=0", want: "w=0"}}},
		"a task without state just moves": {1, map[string]holder{
			"m": {process: "p", has: "A=0", want: ""}, "n": {process: "q", target: "A=0", want: "A=0"}}},
		"within a process it just moves": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: ""}, "n": {process: "p", target: "a=0", want: "a=0"}}},
		"to a member that cannot report it just moves": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: ""}, "n": {process: "q", target: "a=0", want: "a=0", old: true}}},
		"the warm-up task is not there yet": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: "a=0"}, "n": {process: "q", has: "w=0", target: "a=0", reported: reported{0: {80, 100}}, want: "w=0"}}},
		"its end is not known": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: "a=0"}, "n": {process: "q", has: "w=0", target: "a=0", reported: reported{0: {80, unknown}}, want: "w=0"}}},
		"it has not begun": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: "a=0"}, "n": {process: "q", has: "w=0", target: "a=0", reported: reported{0: {unknown, 5}}, want: "w=0"}}},
		"it is there": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: ""}, "n": {process: "q", has: "w=0", target: "a=0", reported: reported{0: {90, 100}}, want: "a=0"}}},
		"beyond the end is there": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: ""}, "n": {process: "q", has: "w=0", target: "a=0", reported: reported{0: {101, 100}}, want: "a=0"}}},
		"no more at a time than the budget": {1, map[string]holder{
			"m": {process: "p", has: "a=0,1,2", target: "a=0", want: "a=0,1,2"}, "n": {process: "q", target: "a=1,2", want: "w=1"}}},
		"those that have begun go on": {1, map[string]holder{
			"m": {process: "p", has: "a=0,1,2", target: "a=0", want: "a=0,1,2"}, "n": {process: "q", has: "w=2", target: "a=1,2", want: "w=2"}}},
		"the process with less to do goes first": {1, map[string]holder{
			"m": {process: "p", has: "a=0,1,2", target: "a=0", want: "a=0,1,2"},
			"n": {process: "q", has: "a=3", target: "a=1,3", want: "a=3"}, "o": {process: "r", target: "a=2", want: "w=2"}}},
		"they are spread over processes": {2, map[string]holder{
			"m": {process: "p", has: "a=0,1,2,3", target: "", want: "a=0,1,2,3"},
			"n": {process: "q", target: "a=0,1", want: "w=0"}, "o": {process: "r", target: "a=2,3", want: "w=2"}}},
		"the busier process is relieved first": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: "a=0"}, "o": {process: "r", has: "a=1,2", target: "a=2", want: "a=1,2"},
			"n": {process: "q", target: "a=0,1", want: "w=1"}}},
		"a standby of the owner warms up for nothing": {1, map[string]holder{
			"m": {process: "p", has: "a=0,1", want: "a=0,1"}, "n": {process: "q", has: "s=0", target: "a=0,1", reported: reported{0: {50, 100}}, want: "s=0 w=1"}}},
		"and one that is there takes over": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: ""}, "n": {process: "q", has: "s=0", target: "a=0", reported: reported{0: {100, 100}}, want: "a=0"}}},
		"the new standby is not where the task still runs": {1, map[string]holder{
			"m": {process: "p", has: "a=0", target: "s=0", want: "a=0"}, "n": {process: "q", target: "a=0", want: "w=0"}}},
		"nor on another member of that process": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: "a=0"}, "l": {process: "p", target: "s=0", want: ""}, "n": {process: "q", target: "a=0", want: "w=0"}}},
		"a borrowed standby is not doubled": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: "a=0"}, "n": {process: "q", has: "s=0", target: "a=0", want: "s=0"}, "o": {process: "r", target: "s=0", want: ""}}},
		"but one that is there stays": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: "a=0"}, "n": {process: "q", has: "s=0", target: "a=0", want: "s=0"}, "o": {process: "r", has: "s=0", target: "s=0", want: "s=0"}}},
		"a standby of another member of the process moves to the owner": {1, map[string]holder{
			"m": {process: "p", has: "a=0", want: "a=0"}, "l": {process: "q", has: "s=0", want: ""}, "n": {process: "q", target: "a=0", want: "w=0"}}},
		"or stays if there is no budget for it": {1, map[string]holder{
			"m": {process: "p", has: "a=0,1", want: "a=0,1"}, "l": {process: "q", has: "s=0", want: "s=0"}, "n": {process: "q", target: "a=0,1", want: "w=1"}}},
		"a task that is being restored is not worth keeping": {1, map[string]holder{
			"m": {process: "p", has: "a=0", reported: reported{0: {5, 100}}, want: ""}, "n": {process: "q", target: "a=0", want: "a=0"}}},
		"unless it is nearly there": {1, map[string]holder{
			"m": {process: "p", has: "a=0", reported: reported{0: {95, 100}}, want: "a=0"}, "n": {process: "q", target: "a=0", want: "w=0"}}},
		"a copy that is there runs it meanwhile": {1, map[string]holder{
			"m": {process: "p", has: "s=0", reported: reported{0: {99, 100}}, want: "a=0"}, "n": {process: "q", target: "a=0", want: "w=0"}}},
		"rather one that the target does not need": {1, map[string]holder{
			"l": {process: "o", has: "s=0", target: "s=0", reported: reported{0: {99, 100}}, want: "s=0"},
			"m": {process: "p", has: "s=0", reported: reported{0: {99, 100}}, want: "a=0"}, "n": {process: "q", target: "a=0", want: "w=0"}}},
		"rather one with less to do": {1, map[string]holder{
			"l": {process: "o", has: "s=0 a=1", target: "a=1", reported: reported{0: {99, 100}}, want: "a=1"},
			"m": {process: "p", has: "s=0", reported: reported{0: {99, 100}}, want: "a=0"}, "n": {process: "q", target: "a=0", want: "w=0"}}},
		"but who has it on disk, opens it": {1, map[string]holder{
			"m": {process: "p", has: "s=0", reported: reported{0: {99, 100}}, want: ""}, "n": {process: "q", target: "a=0", reported: reported{0: {7, 0}}, want: "a=0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			topology := &configuredTopology{subtopologies: []configuredSubtopology{
				{id: "0", tasks: 4, stateChangelogTopics: []NewTopic{{}}}, {id: "1", tasks: 4},
			}}
			g := newGroup(app)
			target := make(map[string]Tasks)
			h := &heartbeat{group: g, configured: topology, offsets: make(map[string]memberOffsets)}
			h.config.NumWarmupReplicas, h.config.AcceptableRecoveryLag = test.budget, 10
			for _, id := range slices.Sorted(maps.Keys(test.members)) {
				spec := test.members[id]
				m := newMember(id)
				m.processID, m.reportsOffsets = spec.process, !spec.old
				has := roles(t, spec.has)
				m.assigned = grant{active: make(map[TaskID]int32), standby: has.Standby, warmup: has.Warmup}
				for task := range has.Active {
					m.assigned.active[task] = 1
				}
				o := memberOffsets{current: make(map[TaskID]int64), end: make(map[TaskID]int64)}
				for p, at := range spec.reported {
					o.current[TaskID{"0", p}], o.end[TaskID{"0", p}] = at[0], at[1]
				}
				h.offsets[id] = o
				target[id] = roles(t, spec.target)
				g.put(m)
				h.after = m
			}
			got := h.refine(target)
			for id, spec := range test.members {
				if want := roles(t, spec.want); !got[id].equal(want) {
					t.Errorf("%s has %v %v %v, want %s", id, got[id].Active.Sorted(), got[id].Standby.Sorted(), got[id].Warmup.Sorted(), spec.want)
				}
				if !target[id].equal(roles(t, spec.target)) {
					t.Errorf("the target of %s was changed", id)
				}
			}
		})
	}
}
