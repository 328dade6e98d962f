package taskmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cenkalti/backoff/v4"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// errLeft is what ends a thread whose member has left though it was not told to.
var errLeft = errors.New("the member is no longer in the group")

// takeNews acts on what the membership loop and the updater have told.
func (t *Thread) takeNews(ctx context.Context) error {
	n, any := t.mail.take()
	if !any {
		return nil
	}
	if n.left {
		return cmp.Or(t.mail.end, errLeft)
	}
	if n.lost != nil {
		if err := t.loseTasks(n.lost); err != nil {
			return err
		}
		t.loop.LostDone()
	}
	if n.ready != nil {
		// Becoming ready comes with an assignment, behind which it takes effect:
		// otherwise the thread would seem to run before it has its tasks.
		t.becoming = *n.ready && !t.ready
		t.ready = t.ready && *n.ready
	}
	if n.assignment != nil {
		if err := t.reconcile(ctx, *n.assignment); err != nil {
			return err
		}
	}
	for _, r := range n.restored {
		if t.tasks[r.task.id] != r.task || !r.task.updating() {
			continue // it was revoked meanwhile
		}
		if r.err != nil {
			return r.err
		}
		if r.task.state == standby {
			t.updater.update(r.task, false) // it was demoted meanwhile
			continue
		}
		r.task.state = restored
	}
	return t.startRestored(ctx)
}

// reconcile turns what the thread owns into what it is assigned: first it gives
// up what it must, committed and closed, then it takes what is new, and then the
// member acknowledges. So no task is ever active twice in the group. A task that
// only changes its role keeps its stores.
func (t *Thread) reconcile(ctx context.Context, a membership.Assignment) error {
	t.log.Info("taking an assignment", "active", a.Active, "standby", a.Standby, "warmup", a.Warmup)
	standbys := slices.Concat(a.Standby, a.Warmup)
	var end, revoked, demoted []*task
	for id, task := range t.tasks {
		switch {
		case slices.Contains(a.Active, id):
		case !slices.Contains(standbys, id):
			end = append(end, task)
		case task.state == created:
			task.then = standby
		case task.state != standby:
			demoted = append(demoted, task)
		}
	}
	revoked = slices.Concat(end, demoted)
	t.suspend(revoked)
	if err := t.commit(ctx, revoked); err != nil {
		return err
	}
	if err := errors.Join(t.closeTasks(end, nil), t.flushLast(ctx)); err != nil {
		return err
	}
	for _, task := range demoted {
		if task.state == restoring {
			task.state = standby
		} else if err := t.guard(task.demote); err != nil {
			return err
		}
		t.updater.update(task, false)
	}
	if err := t.take(a.Active, restoring); err != nil {
		return err
	}
	if err := t.take(standbys, standby); err != nil {
		return err
	}
	if err := t.openTasks(); err != nil {
		return err
	}
	t.assigned = true
	if t.becoming {
		t.ready, t.becoming = true, false
	}
	t.loop.Reconciled(a.LocalEpoch)
	return nil
}

// take makes the tasks that are new, and promotes standbys that are to run.
func (t *Thread) take(ids []membership.TaskID, then taskState) error {
	for _, id := range ids {
		if known := t.tasks[id]; known != nil {
			switch {
			case known.state == created:
				known.then = then
			case known.state == standby && then == restoring:
				known.state = restoring
				t.updater.update(known, true)
			}
			continue
		}
		spec, ok := t.cfg.Topology[id.Subtopology]
		if !ok {
			return &TaskError{Task: id, Err: errors.New("the group's topology has a subtopology that this application has not: does another application use the same id?")}
		}
		task := newTask(id, spec, t.out, t.storage, then)
		task.onError, task.maxIdle = t.cfg.OnRecordError, t.cfg.MaxTaskIdle
		task.ctx.Logger = t.cfg.Logger
		t.tasks[id] = task
	}
	return nil
}

// openTasks opens the stores of new tasks and gives the tasks to the updater. Those
// whose directory another thread of the process is about to leave have to wait.
func (t *Thread) openTasks() error {
	t.waiting = false
	for _, task := range t.tasks {
		if task.state != created {
			continue
		}
		opened, err := task.open()
		if err != nil {
			return err
		}
		if opened {
			t.updater.update(task, task.state == restoring)
		} else {
			t.waiting = true
		}
	}
	return nil
}

// startRestored sets the tasks running whose stores are complete: from their
// committed offsets.
func (t *Thread) startRestored(ctx context.Context) error {
	var tasks []*task
	for _, task := range t.tasks {
		if task.state == restored {
			tasks = append(tasks, task)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	of, err := t.findInputs(ctx, tasks)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if err := t.guard(func() error { return task.start(of[task]) }); err != nil {
			return err
		}
	}
	return t.consume(ctx, of)
}

// commit commits what tasks have processed: first their stores and all that they
// have sent, then their offsets, so that a crash in between repeats records and
// loses none.
func (t *Thread) commit(ctx context.Context, tasks []*task) error {
	var inputs []*input
	var names []string
	tasks = slices.DeleteFunc(slices.Clone(tasks), func(task *task) bool { return task.state != running || !task.dirty() })
	for _, task := range tasks {
		if err := t.guard(task.flush); err != nil {
			return err
		}
		for _, in := range task.inputs {
			if in.dirty {
				inputs = append(inputs, in)
				if !slices.Contains(names, in.topic) {
					names = append(names, in.topic)
				}
			}
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	if err := t.out.flush(ctx); err != nil {
		return err
	}
	if err := t.commitInputs(ctx, names, inputs); err != nil {
		return err
	}
	for _, task := range tasks {
		if err := task.committed(); err != nil {
			return err
		}
	}
	return nil
}

// commitInputs commits the offsets of inputs, whose topics have these names.
func (t *Thread) commitInputs(ctx context.Context, names []string, inputs []*input) error {
	if len(inputs) == 0 {
		return nil
	}
	return t.retry(ctx, func(who identity) error {
		inputs = slices.DeleteFunc(inputs, func(in *input) bool { return !in.dirty })
		ts, err := fetchTopics(ctx, t.client, names)
		if err != nil {
			return err
		}
		return commitOffsets(ctx, t.client, who, ts, inputs)
	})
}

// retry calls try with who we are at the moment until it succeeds, fails for
// good, or taskTimeout has passed. A stale epoch is retried: the newer one is on
// its way to us.
func (t *Thread) retry(ctx context.Context, try func(identity) error) error {
	return backoff.Retry(func() error {
		who := identity{group: t.cfg.Member.Group, member: t.loop.MemberID(), epoch: t.loop.MemberEpoch()}
		if t.cfg.Member.InstanceID != "" {
			who.instance = &t.cfg.Member.InstanceID
		}
		if who.epoch <= 0 {
			// Out of the group, which a commit must not get around: with such
			// an epoch the coordinator takes it for an administrator's.
			return backoff.Permanent(fmt.Errorf("%w: it has left the group", errFenced))
		}
		err := try(who)
		if err == nil || errors.Is(err, errStaleEpoch) || retriable(err) {
			return err
		}
		return backoff.Permanent(err)
	}, retries(ctx, taskTimeout))
}

// loseTasks closes all tasks without a commit: they are no longer ours.
func (t *Thread) loseTasks(reason error) error {
	t.log.Warn("lost all tasks", "tasks", len(t.tasks), "reason", reason)
	t.assigned = false
	return t.closeTasks(t.all(), reason)
}

// suspend stops fetching for tasks.
func (t *Thread) suspend(tasks []*task) {
	remove := make(map[string][]int32)
	for _, task := range tasks {
		for _, in := range task.inputs {
			remove[in.topic] = append(remove[in.topic], in.partition)
			delete(t.inputs[in.topic], in.partition)
		}
	}
	ended := func(q *task) bool { return slices.Contains(tasks, q) }
	t.queued, t.idle = slices.DeleteFunc(t.queued, ended), slices.DeleteFunc(t.idle, ended)
	t.client.RemoveConsumePartitions(remove)
	t.client.ResumeFetchPartitions(remove) // or those that are held would be so when they come again
}

// closeTasks ends tasks, whatever their state, without a commit. What running tasks
// have done since the last one is thrown away if there is a reason to.
func (t *Thread) closeTasks(tasks []*task, reason error) error {
	t.suspend(tasks)
	var errs []error
	var broken *state.Error
	for _, task := range tasks {
		if task.updating() {
			t.updater.cancel(task)
		}
		delete(t.tasks, task.id)
		clean := reason == nil || task.state != running && !errors.As(reason, &broken)
		errs = append(errs, t.guard(func() error { return task.close(clean, reason) }))
	}
	return errors.Join(errs...)
}

// guard calls code of the application's, whose panics are errors.
func (t *Thread) guard(call func() error) (err error) {
	defer recovered(&err)
	return call()
}
