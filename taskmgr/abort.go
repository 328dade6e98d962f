package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/odradek-go/odradek/membership"
)

// survive does what must be done about an error so that the thread can go on. It
// returns the error where it can't.
func (t *Thread) survive(ctx, life context.Context, err error) error {
	cause := err
	if e := t.out.err(); e != nil && t.out.transactional() {
		cause = e // whatever processors have made of it
	}
	var produce *ProduceError
	var transaction *TransactionError
	inTransaction := t.out.transactional() && (errors.As(cause, &produce) || errors.As(cause, &transaction))
	switch {
	case errors.Is(cause, errFenced), inTransaction && producerFenced(cause):
		// Nothing is ours any more, which the group has told a commit before a
		// heartbeat, or our transaction has timed out and the group may soon tell:
		// stop at once, and have the member rejoin.
		t.loop.Fence(cause)
		return t.loseTasks(life, cause)
	case inTransaction && passing(cause):
		return t.beginAgain(ctx, life, cause)
	}
	return err
}

// beginAgain undoes what running tasks have done since the last commit, which can't be
// committed, and has them begin from there.
func (t *Thread) beginAgain(ctx, life context.Context, reason error) error {
	if t.aborts == nil {
		t.aborts = retries(life, taskTimeout)
	}
	wait := t.aborts.NextBackOff()
	if wait == backoff.Stop {
		return fmt.Errorf("nothing could be committed for %v: %w", taskTimeout, reason)
	}
	tasks := t.runningTasks()
	t.log.Warn("a transaction is aborted, and done again", "tasks", len(tasks), "in", wait, "reason", reason)
	if err := t.undo(life, tasks, reason); err != nil {
		return err
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	for _, task := range tasks {
		if err := t.addTask(task.id, restoring); err != nil {
			return err
		}
	}
	if n := t.unfinished; n != nil {
		t.unfinished = nil
		t.mail.putBack(*n)
	}
	return t.openTasks()
}

// loseTasks closes all tasks without a commit: they are no longer ours.
func (t *Thread) loseTasks(ctx context.Context, reason error) error {
	t.log.Warn("lost all tasks", "tasks", len(t.tasks), "reason", reason)
	t.assigned, t.unfinished = false, nil
	return t.undo(ctx, t.all(), reason)
}

// undo closes tasks without a commit. What they have done since the last one is
// undone, if there are transactions: the stores are found as they were, and the
// records that were sent count for nobody. Whoever restores the stores next has all
// that is committed, since the transaction has ended before.
func (t *Thread) undo(ctx context.Context, tasks []*task, reason error) error {
	if !t.out.transactional() {
		return t.closeTasks(tasks, reason)
	}
	t.out.txn.undoing = true // processors may send something as they close
	err := t.closeTasks(tasks, reason)
	return errors.Join(err, t.out.abort(ctx))
}

// addTask makes a task that is to be restoring or standby.
func (t *Thread) addTask(id membership.TaskID, then taskState) error {
	spec, ok := t.cfg.Topology[id.Subtopology]
	if !ok {
		return &TaskError{Task: id, Err: errors.New("the group's topology has a subtopology that this application has not: does another application use the same id?")}
	}
	task := newTask(id, spec, t.out, t.storage, then)
	task.onError, task.maxIdle = t.cfg.OnRecordError, t.cfg.MaxTaskIdle
	task.ctx.Logger = t.cfg.Logger
	t.tasks[id] = task
	return nil
}
