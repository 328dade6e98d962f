package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/odradek-go/odradek/membership"
)

// close ends all tasks and the membership after the thread has ended for a reason,
// nil where it was told to. It returns the reason, with what else went wrong.
//
// Tasks are committed where the thread is still the group's member and they are
// whole. Java's member that fails goes without a word; ours leaves, so that its
// tasks move on at once and not after the session time-out.
func (t *Thread) close(ctx context.Context, reason error) error {
	shutdown := errors.Is(reason, membership.ErrShutdownRequested)
	err, untrusted := reason, reason
	if reason == nil || shutdown {
		untrusted = nil
		switch e := t.commit(ctx, t.runningTasks()); {
		case errors.Is(e, errFenced):
			untrusted = e
			t.log.Warn("the last commit was refused: another member repeats what it held", "err", e)
		case e != nil && ctx.Err() != nil:
			untrusted = e
			err = errors.Join(err, fmt.Errorf("%w of %v: %v", ErrCloseTimeout, t.cfg.CloseTimeout, e))
		case e != nil:
			untrusted = e
			err = errors.Join(err, e)
		}
	}
	var task *TaskError
	if errors.As(reason, &task) && !t.out.transactional() { // where they would be aborted
		t.flushLetters(ctx)
	}
	if untrusted != nil {
		err = errors.Join(err, t.undo(ctx, t.all(), untrusted))
	} else {
		err = errors.Join(err, t.closeTasks(t.all(), nil))
	}
	if reason == nil || shutdown {
		err = errors.Join(err, t.flushLast(ctx))
	}
	switch {
	case shutdown:
		// The coordinator tells the others as long as the member that asked for
		// the shutdown is there. So nobody leaves: the session time-out ends it.
		return err
	case reason != nil && t.cfg.OnFailure(reason):
		return errors.Join(err, t.shutdownApplication(ctx))
	}
	leave := t.cfg.Leave
	if reason != nil && leave == membership.LeaveDefault && t.cfg.Member.InstanceID == "" {
		leave = membership.LeaveGroup // the default is Java's, which says nothing
	}
	if e := t.loop.Leave(ctx, leave); e != nil && reason == nil {
		err = errors.Join(err, fmt.Errorf("leave the group: %w", e))
	}
	return err
}

// flushLast writes what processors have sent when they were closed.
func (t *Thread) flushLast(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	if t.out.inTransaction() {
		return t.commit(ctx, nil)
	}
	if t.out.sent.pending.Load() == 0 {
		return nil
	}
	return t.out.flush(ctx)
}

// letterTimeout is how long a thread that fails waits until its dead letter, if
// there is one, is written.
const letterTimeout = 5 * time.Second

func (t *Thread) flushLetters(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, letterTimeout)
	defer cancel()
	if err := t.out.flush(ctx); err != nil {
		t.log.Warn("what was sent before the failure may not be written", "err", err)
	}
}

// shutdownApplication asks the group coordinator to stop every member, and waits
// until it has taken that in.
func (t *Thread) shutdownApplication(ctx context.Context) error {
	t.loop.RequestShutdown()
	if err := t.mail.waitLeft(ctx); !errors.Is(err, membership.ErrShutdownRequested) {
		return fmt.Errorf("ask the group to shut the application down: %w", err)
	}
	return nil
}

// RequestShutdown asks the group coordinator to stop every member of the group,
// this one included: its Run ends with membership.ErrShutdownRequested.
func (t *Thread) RequestShutdown() { t.loop.RequestShutdown() }
