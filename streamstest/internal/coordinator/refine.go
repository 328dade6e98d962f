package coordinator

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// refine derives from the target assignment the one that is in force now: a stateful task that is to move to a process
// without its state stays where it runs, and its target owner gets a warm-up task instead, until that has caught up.
// A 4.4 broker leaves the target as it is; this is what KIP-1071 describes and later brokers do.
func (h *heartbeat) refine(target map[string]Tasks) map[string]Tasks {
	if h.config.NumWarmupReplicas == 0 || !h.configured.ready() || len(target) == 0 {
		return target
	}
	members := maps.Clone(h.group.members)
	if h.retired != nil {
		delete(members, h.retired.id)
	}
	members[h.after.id] = h.after
	r := newRefiner(members, h.offsets, h.configured, h.config.AcceptableRecoveryLag)
	r.stage(target)
	r.fund(h.config.NumWarmupReplicas)
	return r.apply(target)
}

type (
	refiner struct {
		members  map[string]*member
		topology *configuredTopology
		runners  map[TaskID]runner
		copies   map[TaskID][]taskCopy // by member id
		onDisk   map[string]TaskSet    // by process: state of tasks that it holds in no role
		load     map[string]processLoad
		staged   []*migration // by task
	}

	runner struct {
		member *member
		hot    bool // processes the task, or is about to
	}

	taskCopy struct {
		member   *member
		warmup   bool
		caughtUp bool
	}

	// migration is a move that is held back: the task runs on current until owner is warm.
	migration struct {
		task           TaskID
		current, owner *member
		copy           *taskCopy // what the owner's process has of the task
		funded         bool      // the owner gets a warm-up task
		borrowed       bool      // a standby on the owner's process stays, and warms the move for nothing
	}

	processLoad struct{ tasks, members int }
)

func (l processLoad) load() float64 { return float64(l.tasks) / float64(l.members) }

func newRefiner(members map[string]*member, offsets map[string]memberOffsets, topology *configuredTopology, lag int64) *refiner {
	r := &refiner{
		members:  members,
		topology: topology,
		runners:  make(map[TaskID]runner),
		copies:   make(map[TaskID][]taskCopy),
		onDisk:   make(map[string]TaskSet),
		load:     make(map[string]processLoad),
	}
	held := make(map[string]TaskSet) // by process
	for _, id := range slices.Sorted(maps.Keys(members)) {
		m, o := members[id], offsets[id]
		if held[m.processID] == nil {
			held[m.processID], r.onDisk[m.processID] = TaskSet{}, TaskSet{}
		}
		l := r.load[m.processID]
		l.members++
		hold := func(t TaskID) {
			held[m.processID][t] = struct{}{}
			l.tasks++
		}
		for t := range m.assigned.active {
			if r.stateful(t) {
				_, restoring := o.current[t]
				r.runners[t] = runner{member: m, hot: !restoring || o.caughtUp(t, lag)}
				hold(t)
			}
		}
		copies := func(tasks TaskSet, warmup bool) {
			for t := range tasks {
				if r.stateful(t) {
					r.copies[t] = append(r.copies[t], taskCopy{member: m, warmup: warmup, caughtUp: o.caughtUp(t, lag)})
					hold(t)
				}
			}
		}
		copies(m.assigned.standby, false)
		copies(m.assigned.warmup, true)
		for t := range o.current {
			r.onDisk[m.processID][t] = struct{}{}
		}
		r.load[m.processID] = l
	}
	for process, tasks := range r.onDisk {
		maps.DeleteFunc(tasks, func(t TaskID, _ struct{}) bool { return held[process].Has(t) })
	}
	return r
}

func (r *refiner) stateful(t TaskID) bool {
	s := r.topology.subtopology(t.Subtopology)
	return s != nil && s.stateful()
}

// caughtUp reports whether the member is within the lag of the end of the task's changelogs. A member reports the
// largest offset for an end, or a position, that it does not know.
func (o memberOffsets) caughtUp(t TaskID, lag int64) bool {
	at, known := o.current[t]
	end, endKnown := o.end[t]
	return known && endKnown && at != math.MaxInt64 && end != math.MaxInt64 && end-at <= lag
}

// stage finds the moves that have to wait.
func (r *refiner) stage(target map[string]Tasks) {
	owners, standbys := make(map[TaskID]*member), make(map[TaskID]map[string]bool)
	for id, tasks := range target {
		for t := range tasks.Active {
			if r.stateful(t) && r.members[id] != nil {
				owners[t] = r.members[id]
			}
		}
		for t := range tasks.Standby {
			if standbys[t] == nil {
				standbys[t] = make(map[string]bool)
			}
			standbys[t][id] = true
		}
	}
	for _, t := range slices.SortedFunc(maps.Keys(owners), compareTasks) {
		owner, now := owners[t], r.runners[t]
		if now.member == owner || r.canMove(t, now.member, owner) {
			continue
		}
		current := now.member
		switch {
		case current != nil && now.hot:
		case current == nil && r.onDisk[owner.processID].Has(t):
			continue // the owner's process opens what it has
		default:
			current = r.bestCopy(t, standbys[t])
		}
		if current != nil {
			r.staged = append(r.staged, &migration{task: t, current: current, owner: owner, copy: r.copyOn(owner.processID, t)})
		}
	}
}

// canMove reports whether the task can go to its owner at once: the state is there, or a warm-up task cannot help.
func (r *refiner) canMove(t TaskID, current, owner *member) bool {
	if !owner.reportsOffsets || current != nil && current.processID == owner.processID {
		return true
	}
	return slices.ContainsFunc(r.copies[t], func(c taskCopy) bool {
		return c.member.processID == owner.processID && c.caughtUp
	})
}

// bestCopy is the caught-up copy that should run a task which nobody runs properly: rather one that the target does
// not need as a standby, on the process with the least load.
func (r *refiner) bestCopy(t TaskID, standbys map[string]bool) *member {
	var best *member
	needed := func(m *member) int {
		if standbys[m.id] {
			return 1
		}
		return 0
	}
	for _, c := range r.copies[t] {
		if c.caughtUp && (best == nil || cmp.Or(
			cmp.Compare(needed(c.member), needed(best)),
			cmp.Compare(r.load[c.member.processID].load(), r.load[best.processID].load())) < 0) {
			best = c.member
		}
	}
	return best
}

func (r *refiner) copyOn(process string, t TaskID) *taskCopy {
	for i, c := range r.copies[t] {
		if c.member.processID == process {
			return &r.copies[t][i]
		}
	}
	return nil
}

// rank orders the moves that want a warm-up task: those that have one keep it, then those whose owner has nothing,
// last those that would take a standby away from another member of the owner's process.
func (m *migration) rank() int {
	switch {
	case m.copy == nil:
		return 1
	case m.copy.warmup:
		return 0
	}
	return 2
}

// fund decides which moves get a warm-up task, of which the group may have a few at a time. The others wait.
func (r *refiner) fund(budget int) {
	var candidates []*migration
	for _, m := range r.staged {
		if m.copy != nil && !m.copy.warmup && m.copy.member == m.owner {
			m.borrowed = true
		} else {
			candidates = append(candidates, m)
		}
	}
	for ; budget > 0 && len(candidates) > 0; budget-- {
		best := slices.MinFunc(candidates, func(x, y *migration) int {
			return cmp.Or(
				cmp.Compare(x.rank(), y.rank()),
				cmp.Compare(r.load[x.owner.processID].load(), r.load[y.owner.processID].load()),
				cmp.Compare(r.load[y.current.processID].load(), r.load[x.current.processID].load()),
				compareTasks(x.task, y.task))
		})
		best.funded = true
		if best.copy == nil {
			l := r.load[best.owner.processID]
			l.tasks++
			r.load[best.owner.processID] = l
		}
		candidates = slices.DeleteFunc(candidates, func(m *migration) bool { return m == best })
	}
	for _, m := range candidates {
		m.borrowed = m.copy != nil && !m.copy.warmup
	}
}

// apply writes the moves that wait into the target.
func (r *refiner) apply(target map[string]Tasks) map[string]Tasks {
	if len(r.staged) == 0 {
		return target
	}
	out := make(map[string]Tasks, len(target))
	for id, t := range target {
		out[id] = Tasks{Active: maps.Clone(t.Active), Standby: maps.Clone(t.Standby), Warmup: TaskSet{}}
	}
	for _, m := range r.staged {
		delete(out[m.owner.id].Active, m.task)
		out[m.current.id].Active[m.task] = struct{}{}
		withheld := r.withheldStandbys(m, target)
		for _, id := range withheld {
			delete(out[id].Standby, m.task)
		}
		switch {
		case m.funded:
			out[m.owner.id].Warmup[m.task] = struct{}{}
		case m.borrowed:
			out[m.copy.member.id].Standby[m.task] = struct{}{}
		}
	}
	return out
}

// withheldStandbys are the members that do not get their standby of the task yet: those of the process on which the
// task stays active, and, if a standby is borrowed, one that would be an additional replica.
func (r *refiner) withheldStandbys(m *migration, target map[string]Tasks) []string {
	var here, additional []string
	for _, id := range slices.Sorted(maps.Keys(target)) {
		holder := r.members[id]
		switch {
		case holder == nil || !target[id].Standby.Has(m.task):
		case holder.processID == m.current.processID:
			here = append(here, id)
		case m.borrowed && r.copyOn(holder.processID, m.task) == nil:
			additional = append(additional, id)
		}
	}
	if len(here) == 0 && len(additional) > 0 {
		return additional[:1]
	}
	return here
}
