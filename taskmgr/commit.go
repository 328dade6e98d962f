package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// commit commits what tasks have processed: first their stores and all that they
// have sent, then their offsets, so that a crash in between repeats records and
// loses none. Where there are transactions all is in one, which is the thread's: what
// any of the tasks has done is committed along.
func (t *Thread) commit(ctx context.Context, tasks []*task) error {
	tasks = dirtyTasks(tasks)
	if t.out.inTransaction() || t.out.transactional() && len(tasks) > 0 {
		tasks = dirtyTasks(t.all())
	} else if len(tasks) == 0 {
		return nil
	}
	for _, task := range tasks {
		if err := t.guard(task.flush); err != nil {
			return err
		}
	}
	// The offsets come last, though a transaction needs them in no order: with them the
	// group accepts us for the last time. Whoever has the tasks by then reads the
	// changelogs up to where they end, and must find all that we will ever commit.
	if err := t.out.flush(ctx); err != nil {
		return err
	}
	if t.out.inTransaction() && t.out.sent.stored.Load() == 0 {
		// The broker has none of it, and so no transaction.
		if err := t.out.abort(ctx); err != nil {
			return err
		}
	}
	commit := t.commitOffsets
	if t.out.inTransaction() {
		commit = t.commitTransaction
	}
	if err := commit(ctx, tasks); err != nil {
		return err
	}
	for _, task := range tasks {
		if err := task.committed(); err != nil {
			return err
		}
	}
	return nil
}

// dirtyTasks are the running ones that have something to commit.
func dirtyTasks(tasks []*task) []*task {
	return slices.DeleteFunc(slices.Clone(tasks), func(task *task) bool { return task.state != running || !task.dirty() })
}

// commitOffsets commits the offsets of tasks.
func (t *Thread) commitOffsets(ctx context.Context, tasks []*task) error {
	inputs := inputsOf(tasks, func(in *input) bool { return in.dirty })
	return t.commitInputs(ctx, inputs, func(who identity, topics topics) error {
		inputs = slices.DeleteFunc(inputs, func(in *input) bool { return !in.dirty })
		return commitOffsets(ctx, t.client, who, topics, inputs)
	})
}

// commitTransaction commits the open transaction with the offsets of tasks in it.
func (t *Thread) commitTransaction(ctx context.Context, tasks []*task) error {
	// A transaction without any offset would not be refused after the tasks are
	// another member's: so those that have not changed are in it, too.
	inputs := inputsOf(tasks, func(in *input) bool { return in.dirty || in.next >= 0 })
	err := t.commitInputs(ctx, inputs, func(who identity, topics topics) error {
		return t.out.addOffsets(ctx, who, topics, inputs)
	})
	if err != nil {
		return t.out.txn.fail("commit", err)
	}
	if err := t.out.end(ctx); err != nil {
		return err
	}
	t.aborts = nil
	for _, in := range inputs {
		in.dirty = false
	}
	return nil
}

// inputsOf are those of the inputs of tasks that which says.
func inputsOf(tasks []*task, which func(*input) bool) (inputs []*input) {
	for _, task := range tasks {
		for _, in := range task.inputs {
			if which(in) {
				inputs = append(inputs, in)
			}
		}
	}
	return inputs
}

// commitInputs has try commit the offsets of inputs, again where that may help.
func (t *Thread) commitInputs(ctx context.Context, inputs []*input, try func(identity, topics) error) error {
	if len(inputs) == 0 {
		return nil
	}
	var names []string
	for _, of := range byTopic(inputs) {
		names = append(names, of.topic)
	}
	return t.retry(ctx, func(who identity) error {
		ts, err := fetchTopics(ctx, t.client, names)
		if err != nil {
			return err
		}
		return try(who, ts)
	})
}

// commitRetry is the first wait between attempts to commit or fetch offsets, during which
// nothing is processed: a transaction may be busy for a moment, taking in a partition.
const commitRetry = 10 * time.Millisecond

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
	}, retriesFrom(ctx, commitRetry, taskTimeout))
}
