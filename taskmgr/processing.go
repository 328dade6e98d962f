package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// punctuate makes the calls that tasks have scheduled and that are due.
func (t *Thread) punctuate() (err error) {
	defer recovered(&err)
	if !t.mayProcess() {
		return nil
	}
	for _, task := range t.tasks {
		if task.state == running {
			if err := task.punctuate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestedCommits are the tasks whose code has asked for a commit.
func (t *Thread) requestedCommits() []*task {
	var tasks []*task
	for _, task := range t.tasks {
		if task.ctx.commit {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// noWait has kgo return what it has fetched already.
var noWait context.Context

// poll returns what was fetched; it waits for it until there is news, the time
// to commit has come, or progress has to be shown. What is queued is processed
// before more is fetched.
func (t *Thread) poll(ctx context.Context) kgo.Fetches {
	held := !t.mayProcess()
	if !held {
		t.wakeIdle(ctx)
	}
	if !held && len(t.queued) > 0 {
		return nil
	}
	if !held {
		if fetches := t.client.PollRecords(noWait, maxPollRecords); len(fetches) > 0 {
			return fetches
		}
	}
	wait := min(time.Until(t.commitAt), t.cfg.Member.RebalanceTimeout/3)
	if t.waiting {
		wait = min(wait, directoryWait)
	}
	if len(t.idle) > 0 {
		wait = min(wait, idleWait)
	}
	for _, task := range t.tasks {
		if due, any := task.ctx.nextPunctuation(); any && task.state == running {
			wait = min(wait, time.Until(due))
		}
	}
	if held && t.ready && !t.paused.Load() {
		wait = min(wait, confirmWait)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if !t.mail.wakes(cancel) {
		return nil
	}
	if held {
		<-ctx.Done()
		return nil
	}
	return t.client.PollRecords(ctx, maxPollRecords)
}

// mayProcess says whether records may be processed: the group is ready, and has
// lately confirmed that the thread is its member. A process that was stopped for
// a while may have lost its tasks to others without knowing.
func (t *Thread) mayProcess() bool { return t.ready && t.loop.Confirmed() && !t.paused.Load() }

// process runs what was fetched through the tasks. A panic of the code that it
// calls is an error like any other.
func (t *Thread) process(ctx context.Context, fetches kgo.Fetches) (err error) {
	defer recovered(&err)
	fetches.EachError(func(topic string, partition int32, e error) {
		var lost *kgo.ErrDataLoss
		switch {
		case errors.Is(e, context.Canceled), errors.Is(e, context.DeadlineExceeded):
		case errors.As(e, &lost), retriable(e):
			t.log.Warn("reading a source topic met an error", "topic", topic, "partition", partition, "err", e)
		default:
			err = errors.Join(err, fmt.Errorf("read %s-%d: %w", topic, partition, e))
		}
	})
	if err != nil {
		return err
	}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		in := t.inputs[p.Topic][p.Partition]
		if in == nil || len(p.Records) == 0 {
			return
		}
		t.idle = slices.DeleteFunc(t.idle, func(idle *task) bool { return idle == in.task })
		in.take(&p)
		if !slices.Contains(t.queued, in.task) {
			t.queued = append(t.queued, in.task)
		}
	})
	// However slow a record is, the thread looks up in time: at the end of its
	// context, at news, at the time to commit, and to show progress.
	until := time.Now().Add(turnTime)
	if t.commitAt.Before(until) {
		until = t.commitAt
	}
	mayGoOn := func() bool {
		return time.Now().Before(until) && ctx.Err() == nil && !t.mail.waiting() && t.mayProcess()
	}
	for len(t.queued) > 0 {
		task := t.queued[0]
		if err := task.process(mayGoOn); err != nil {
			return err
		}
		t.queued = t.queued[1:]
		if len(task.inputs) > 1 {
			t.hold(task)
		}
		switch {
		case !task.queued():
		case task.waits():
			t.idle = append(t.idle, task)
		default:
			t.queued = append(t.queued, task) // the others have their turn first
			return nil
		}
	}
	return nil
}

func (t *Thread) runningTasks() []*task {
	var tasks []*task
	for _, task := range t.tasks {
		if task.state == running {
			tasks = append(tasks, task)
		}
	}
	return tasks
}
