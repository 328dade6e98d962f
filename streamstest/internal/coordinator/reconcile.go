package coordinator

// holders says which processes hold a task at present, including those that still have to give it up. Two members of
// one process must not hold the same task in any roles at once, since they share a state directory.
type holders struct {
	active, standby, warmup map[TaskID]map[string]int // members of each process
}

func newHolders(members map[string]*member) *holders {
	h := &holders{
		active:  make(map[TaskID]map[string]int),
		standby: make(map[TaskID]map[string]int),
		warmup:  make(map[TaskID]map[string]int),
	}
	for _, m := range members {
		h.count(m, 1)
	}
	return h
}

// change follows a member. A nil one isn't there; nil holders are made later.
func (h *holders) change(before, after *member) {
	if h == nil || before != nil && after != nil && before.processID == after.processID &&
		before.assigned.equal(after.assigned) && before.pendingRevocation.equal(after.pendingRevocation) {
		return
	}
	if before != nil {
		h.count(before, -1)
	}
	if after != nil {
		h.count(after, 1)
	}
}

func (h *holders) count(m *member, n int) {
	for _, g := range []grant{m.assigned, m.pendingRevocation} {
		for t := range g.active {
			add(h.active, t, m.processID, n)
		}
		for t := range g.standby {
			add(h.standby, t, m.processID, n)
		}
		for t := range g.warmup {
			add(h.warmup, t, m.processID, n)
		}
	}
}

func add(to map[TaskID]map[string]int, t TaskID, process string, n int) {
	of := to[t]
	if of == nil {
		of = make(map[string]int, 1)
		to[t] = of
	}
	if of[process] += n; of[process] == 0 {
		delete(of, process)
		if len(of) == 0 {
			delete(to, t)
		}
	}
}

// reconciler brings one member one step closer to its target.
type reconciler struct {
	member  *member
	epoch   int32 // of the target
	target  Tasks
	owned   *Tasks // what the member says that it runs; nil if it did not say
	holders *holders
}

// reconcile returns the member after the step. It gets new tasks only after it has given up what it must, and a task
// only after everyone else has.
func (r *reconciler) reconcile() *member {
	m := r.member
	switch m.state {
	case unrevokedTasks:
		if r.stillHolds(m.pendingRevocation) {
			return m
		}
		return r.next(m.epoch + 1)
	case unreleasedTasks:
		return r.next(m.epoch)
	default:
		if m.epoch == r.epoch {
			return m
		}
		return r.next(m.epoch)
	}
}

// change is the difference between what a member is assigned and its target, for one role.
type change struct {
	keep, revoke, add TaskSet
	unreleased        bool // some of the target is left out of add because others still hold it
}

func diff(current, target TaskSet, unreleased func(TaskID) bool) change {
	c := change{keep: TaskSet{}, revoke: TaskSet{}, add: TaskSet{}}
	for t := range current {
		if target.Has(t) {
			c.keep[t] = struct{}{}
		} else {
			c.revoke[t] = struct{}{}
		}
	}
	for t := range target {
		switch {
		case current.Has(t):
		case unreleased(t):
			c.unreleased = true
		default:
			c.add[t] = struct{}{}
		}
	}
	return c
}

// next computes the step. epoch is the epoch that the member stays at if it first has to give up tasks.
func (r *reconciler) next(epoch int32) *member {
	current := r.member.assigned.tasks()
	active := diff(current.Active, r.target.Active, r.unreleasedActive)
	standby := diff(current.Standby, r.target.Standby, r.unreleasedStandby)
	warmup := diff(current.Warmup, r.target.Warmup, r.unreleasedWarmup)

	// The member itself already has the task, in another role: it can change the role at once.
	convert(current.Active, standby, nil)
	convert(current.Standby, warmup, standby.revoke)
	convert(current.Warmup, standby, warmup.revoke)

	// A copy that becomes the active task is not given up, and is kept until the active task is granted.
	promoted := func(copies TaskSet, revoke TaskSet) {
		for t := range copies {
			if r.target.Active.Has(t) {
				delete(revoke, t)
			}
		}
	}
	promoted(current.Standby, standby.revoke)
	promoted(current.Warmup, warmup.revoke)

	revoke := grant{active: make(map[TaskID]int32), standby: standby.revoke, warmup: warmup.revoke}
	for t := range active.revoke {
		revoke.active[t] = r.member.assigned.active[t]
	}
	mustRevoke := !revoke.empty() && r.stillHolds(revoke)
	keepCopies := func(copies, keep TaskSet) {
		for t := range copies {
			if r.target.Active.Has(t) && (mustRevoke || !active.add.Has(t)) {
				keep[t] = struct{}{}
			}
		}
	}
	keepCopies(current.Standby, standby.keep)
	keepCopies(current.Warmup, warmup.keep)

	kept := grant{active: make(map[TaskID]int32), standby: standby.keep, warmup: warmup.keep}
	for t := range active.keep {
		kept.active[t] = r.member.assigned.active[t]
	}
	added := grant{active: make(map[TaskID]int32), standby: standby.add, warmup: warmup.add}
	for t := range active.add {
		added.active[t] = r.epoch
	}

	m := *r.member
	m.previousEpoch = m.epoch
	if mustRevoke {
		m.state, m.epoch = unrevokedTasks, epoch
		m.assigned, m.pendingRevocation = kept, revoke
		return &m
	}
	m.state, m.epoch = stable, r.epoch
	if active.unreleased || standby.unreleased || warmup.unreleased {
		m.state = unreleasedTasks
	}
	m.assigned, m.pendingRevocation = kept.merge(added), grant{}
	return &m
}

// convert grants at once what the member is to get in one role and has in another.
func convert(has TaskSet, to change, revoke TaskSet) {
	for t := range has {
		if to.add.Has(t) {
			delete(to.add, t)
			to.keep[t] = struct{}{}
			delete(revoke, t)
		}
	}
}

// stillHolds reports whether the member runs any of the tasks, as far as it said; unless it said so, it does.
func (r *reconciler) stillHolds(g grant) bool { return r.owned == nil || g.overlaps(*r.owned) }

func (r *reconciler) unreleasedActive(t TaskID) bool {
	return len(r.holders.active[t]) > 0 ||
		r.heldBySibling(r.holders.standby, r.member.assigned.standby, t) ||
		r.heldBySibling(r.holders.warmup, r.member.assigned.warmup, t)
}

func (r *reconciler) unreleasedStandby(t TaskID) bool {
	_, mine := r.member.assigned.active[t]
	return r.activeHere(t) && !mine ||
		r.holders.standby[t][r.member.processID] > 0 ||
		r.heldBySibling(r.holders.warmup, r.member.assigned.warmup, t)
}

func (r *reconciler) unreleasedWarmup(t TaskID) bool {
	return r.activeHere(t) ||
		r.heldBySibling(r.holders.standby, r.member.assigned.standby, t) ||
		r.holders.warmup[t][r.member.processID] > 0
}

func (r *reconciler) activeHere(t TaskID) bool {
	return r.holders.active[t][r.member.processID] > 0
}

// heldBySibling reports whether another member of the same process holds a copy of the task.
func (r *reconciler) heldBySibling(held map[TaskID]map[string]int, mine TaskSet, t TaskID) bool {
	return held[t][r.member.processID] > 0 && !mine.Has(t)
}
