package taskmgr

import (
	"cmp"
	"context"
	"errors"
	"slices"

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
		if err := t.loseTasks(ctx, n.lost); err != nil {
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
			t.unfinished = &n
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
	errs := []error{t.closeTasks(end, nil)}
	for _, task := range demoted {
		errs = append(errs, t.guard(func() error { return task.fail(task.endGraph()) }))
	}
	if err := errors.Join(append(errs, t.flushLast(ctx))...); err != nil {
		return err
	}
	for _, task := range demoted {
		if task.state == restoring {
			task.state = standby
		} else if err := task.demote(); err != nil {
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
		if err := t.addTask(id, then); err != nil {
			return err
		}
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
