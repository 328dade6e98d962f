package coordinator

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// assignTasks is the sticky task assignor of Kafka 4.4. Each task becomes active on one member: the one that ran it,
// else one that has its state, else one of the process with the least load. A process weighs as much as it has
// members. Standby tasks of stateful subtopologies then go to other processes, with the same preferences. Without
// ready topics there is nothing to assign.
//
// It is a pure function; where Kafka leaves a tie to the order of a hash map, ids decide.
func assignTasks(members map[string]*member, offsets map[string]memberOffsets, topology *configuredTopology, standbys int) map[string]Tasks {
	a := newAssignor(members, offsets)
	if topology.ready() {
		var active, stateful []TaskID
		for i := range topology.subtopologies {
			s := &topology.subtopologies[i]
			for p := range s.tasks {
				task := TaskID{s.id, p}
				active = append(active, task)
				if s.stateful() {
					stateful = append(stateful, task)
				}
			}
		}
		a.activeQuota = newQuota(len(active), len(members))
		a.totalQuota = newQuota(len(active)+standbys*len(stateful), len(members))
		a.assignActive(active)
		a.assignStandby(stateful, standbys)
	}
	return a.result()
}

// quota is how many tasks a member should have at most. It follows the members that are full: whenever one reaches it,
// the rest is divided among the others.
type quota struct {
	tasks, members int
	perMember      int
}

func newQuota(tasks, members int) quota {
	q := quota{tasks: tasks, members: members}
	q.divide()
	return q
}

func (q *quota) divide() {
	q.perMember = 0
	if q.members > 0 {
		q.perMember = (q.tasks + q.members - 1) / q.members
	}
}

func (q *quota) reached(count int) {
	if count == q.perMember {
		q.members--
		q.tasks -= count
		q.divide()
	}
}

type (
	assignor struct {
		processes []*process // by id
		members   map[string]*assignee

		previousActive map[TaskID]*assignee
		previousCopies map[TaskID][]*assignee // standbys first, then by how much state they have

		activeQuota, totalQuota quota
	}

	process struct {
		id      string
		members []*assignee // by id
		tasks   TaskSet
	}

	assignee struct {
		id      string
		process *process
		tasks   Tasks
		count   int
	}

	copyHolder struct {
		member    *assignee
		isStandby bool
		offset    int64
	}
)

func (p *process) load() float64 {
	count := 0
	for _, m := range p.members {
		count += m.count
	}
	return float64(count) / float64(len(p.members))
}

func newAssignor(members map[string]*member, offsets map[string]memberOffsets) *assignor {
	a := &assignor{
		members:        make(map[string]*assignee),
		previousActive: make(map[TaskID]*assignee),
		previousCopies: make(map[TaskID][]*assignee),
	}
	processes := make(map[string]*process)
	copies := make(map[TaskID][]copyHolder)
	for _, id := range slices.Sorted(maps.Keys(members)) {
		m := members[id]
		p := processes[m.processID]
		if p == nil {
			p = &process{id: m.processID, tasks: TaskSet{}}
			processes[m.processID] = p
		}
		to := &assignee{id: id, process: p, tasks: Tasks{Active: TaskSet{}, Standby: TaskSet{}}}
		p.members = append(p.members, to)
		a.members[id] = to
		for t := range m.assigned.active {
			a.previousActive[t] = to
		}
		for t := range m.assigned.standby {
			copies[t] = append(copies[t], copyHolder{to, true, offsets[id].current[t]})
		}
		for t, offset := range offsets[id].current {
			if !m.assigned.standby.Has(t) {
				copies[t] = append(copies[t], copyHolder{to, false, offset})
			}
		}
	}
	for t, holders := range copies {
		slices.SortStableFunc(holders, func(x, y copyHolder) int {
			if x.isStandby != y.isStandby {
				if x.isStandby {
					return -1
				}
				return 1
			}
			return cmp.Compare(y.offset, x.offset)
		})
		for _, h := range holders {
			a.previousCopies[t] = append(a.previousCopies[t], h.member)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(processes)) {
		a.processes = append(a.processes, processes[id])
	}
	return a
}

func (a *assignor) giveActive(m *assignee, t TaskID) {
	m.tasks.Active[t] = struct{}{}
	m.count++
	m.process.tasks[t] = struct{}{}
	a.activeQuota.reached(m.count)
	a.totalQuota.reached(m.count)
}

func (a *assignor) giveStandby(m *assignee, t TaskID) {
	m.tasks.Standby[t] = struct{}{}
	m.count++
	m.process.tasks[t] = struct{}{}
	a.totalQuota.reached(m.count)
}

func byPartition(x, y TaskID) int {
	return cmp.Or(cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Subtopology, y.Subtopology))
}

func (a *assignor) assignActive(tasks []TaskID) {
	slices.SortFunc(tasks, byPartition)
	tasks = slices.DeleteFunc(tasks, func(t TaskID) bool {
		m := a.previousActive[t]
		if m == nil || m.count >= a.activeQuota.perMember {
			return false
		}
		a.giveActive(m, t)
		return true
	})
	tasks = slices.DeleteFunc(tasks, func(t TaskID) bool {
		m := leastLoaded(a.previousCopies[t], nil)
		if m == nil || m.count >= a.activeQuota.perMember {
			return false
		}
		a.giveActive(m, t)
		return true
	})
	slices.SortFunc(tasks, compareTasks)
	for _, t := range tasks {
		a.giveActive(a.leastLoadedMember(nil), t)
	}
}

func (a *assignor) assignStandby(tasks []TaskID, replicas int) {
	type open struct {
		task     TaskID
		replicas int
	}
	var left []open
	slices.SortFunc(tasks, func(x, y TaskID) int { return byPartition(y, x) })
	for _, t := range tasks {
		for i := range replicas {
			m := a.previousActive[t]
			if m == nil || m.process.tasks.Has(t) || m.count >= a.totalQuota.perMember {
				m = leastLoaded(a.previousCopies[t], &t)
			}
			if m == nil || m.count >= a.totalQuota.perMember {
				left = append(left, open{t, replicas - i})
				break
			}
			a.giveStandby(m, t)
		}
	}
	slices.SortFunc(left, func(x, y open) int { return compareTasks(y.task, x.task) })
	for _, o := range left {
		for range o.replicas {
			m := a.leastLoadedMember(&o.task)
			if m == nil {
				break // fewer processes than replicas
			}
			a.giveStandby(m, o.task)
		}
	}
}

// leastLoaded picks among members that have state of a task. As in Kafka, a later candidate wins only if both its
// process and itself have less to do. Processes that already have the task, if given, are left out.
func leastLoaded(candidates []*assignee, task *TaskID) *assignee {
	var best *assignee
	processLoad, memberLoad := math.MaxFloat64, math.MaxInt
	for _, m := range candidates {
		if task != nil && m.process.tasks.Has(*task) {
			continue
		}
		if best == nil || m.process.load() < processLoad && m.count < memberLoad {
			best, processLoad, memberLoad = m, m.process.load(), m.count
		}
	}
	return best
}

// leastLoadedMember is the member with the fewest tasks of the process with the least load, leaving out processes that
// already have the task, if one is given. It is nil if no process is left.
func (a *assignor) leastLoadedMember(task *TaskID) *assignee {
	var best *process
	for _, p := range a.processes {
		if task != nil && p.tasks.Has(*task) {
			continue
		}
		if best == nil || p.load() < best.load() {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	return slices.MinFunc(best.members, func(x, y *assignee) int { return cmp.Compare(x.count, y.count) })
}

func (a *assignor) result() map[string]Tasks {
	out := make(map[string]Tasks, len(a.members))
	for id, m := range a.members {
		out[id] = m.tasks
	}
	return out
}
