package membership

import (
	"context"
	"sync"
	"time"
)

// drive is the loop. It ends when the member has left or failed, or with ctx.
func (l *Loop) drive(ctx context.Context) error {
	var requests sync.WaitGroup
	sending, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		requests.Wait()
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := l.step()
		switch {
		case r.Done:
			return nil
		case r.Err != nil:
			return r.Err
		}
		if seq := r.FindCoordinator; seq != 0 {
			n := l.lookups
			l.lookups++
			requests.Go(func() { l.findCoordinator(sending, n, seq) })
		}
		if r.Heartbeat != nil {
			requests.Go(func() { l.heartbeat(sending, r.Node, r.HeartbeatSeq, r.Heartbeat) })
		}
		if r.Inquiry != nil {
			requests.Go(func() { l.inquire(sending, r.Node, r.InquirySeq, r.Inquiry) })
		}
		if r.Description != nil {
			requests.Go(func() { l.describe(sending, r.Node, r.DescriptionSeq, r.Description) })
		}

		var due <-chan time.Time
		if !r.Wake.IsZero() {
			timer.Reset(time.Until(r.Wake))
			due = timer.C
		}
		select {
		case <-l.signal:
		case <-due:
		case <-ctx.Done():
		}
	}
}

// step tells the member what has happened and makes known what it says.
func (l *Loop) step() Ready {
	now := time.Now()
	l.member.Progress(l.born.Add(time.Duration(l.progress.Load())))
	for _, e := range l.posted() {
		e(l.member, now)
	}
	r := l.member.Ready(now)

	l.epoch.Store(l.member.Epoch())
	l.until.Store(int64(l.member.ConfirmedUntil().Sub(l.born)))
	l.state.Store(uint32(l.member.State()))
	if stale := l.member.State() == Stale; stale != l.stale.Load() {
		l.stale.Store(stale)
		l.wake() // progress may have come before stale was set
	}
	for _, t := range r.Transitions {
		l.log.Debug("member changed its state", "from", t.From, "to", t.To, "epoch", l.member.Epoch())
		if l.cb.OnStateChange != nil {
			l.cb.OnStateChange(t.From, t.To)
		}
	}
	for _, err := range r.Warnings {
		l.log.Warn("the coordinator reports a problem", "err", err)
		if l.cb.OnWarning != nil {
			l.cb.OnWarning(err)
		}
	}
	if r.Endpoints != nil && l.cb.OnEndpoints != nil {
		l.cb.OnEndpoints(r.Endpoints.Epoch, r.Endpoints.Partitions)
	}
	if r.Readiness != nil {
		if n := len(r.Readiness.Statuses); n > 0 {
			l.log.Log(context.Background(), statusLevel(r.Readiness.Statuses), "the group is in a condition", "ready", r.Readiness.Ready, "statuses", joinStatuses(r.Readiness.Statuses))
		}
		if l.cb.OnReady != nil {
			l.cb.OnReady(r.Readiness.Ready, r.Readiness.Statuses)
		}
	}
	if r.Lost != nil {
		l.log.Warn("all tasks are lost; the member rejoins when they are released", "err", r.Lost)
		if l.cb.OnTasksLost != nil {
			l.cb.OnTasksLost(r.Lost)
		}
	}
	if r.Assignment != nil {
		l.log.Debug("new assignment", "localEpoch", r.Assignment.LocalEpoch,
			"active", r.Assignment.Active, "standby", r.Assignment.Standby, "warmup", r.Assignment.Warmup)
		if l.cb.OnAssignment != nil {
			l.cb.OnAssignment(*r.Assignment)
		}
	}
	if r.Done {
		l.finish()
	}
	return r
}

// finish is called by the owner, so it doesn't race with itself.
func (l *Loop) finish() {
	select {
	case <-l.left:
	default:
		l.leaveErr = l.member.LeaveErr()
		close(l.left)
	}
}
