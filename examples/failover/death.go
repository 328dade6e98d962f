package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/mirror"
)

// bursts is how often lines are produced, and a checkpoint waited for, before the
// load goes on and on.
const bursts = 5

// untilDeath runs the application on A, and the mirror, until A dies under load. It
// returns the last checkpoint that was mirrored.
func untilDeath(ctx context.Context, a, b *cluster, words *load) (_ mirror.Checkpoint, err error) {
	stopApp, err := a.startApp()
	if err != nil {
		return mirror.Checkpoint{}, err
	}
	defer func() {
		a.stop()
		stopApp() // which can't end well any more
	}()
	if err := words.produce(ctx, 1); err != nil {
		return mirror.Checkpoint{}, err
	}
	if _, err := a.waitIdle(ctx); err != nil { // and so has its internal topics
		return mirror.Checkpoint{}, err
	}
	c := &copier{from: a, to: b}
	if err := c.createTopics(ctx); err != nil {
		return mirror.Checkpoint{}, err
	}
	for range bursts {
		if err := words.produce(ctx, 40); err != nil {
			return mirror.Checkpoint{}, err
		}
		for fresh := false; !fresh; {
			if fresh, err = c.round(ctx); err != nil {
				return mirror.Checkpoint{}, err
			}
		}
	}

	// From now on there is hardly a moment without something to do.
	loading, stop := context.WithCancel(ctx)
	loaded := make(chan error, 1)
	go func() {
		for {
			if err := words.produce(loading, 10); err != nil {
				loaded <- err
				return
			}
		}
	}()
	err = c.rounds(ctx, 300)
	a.stop()
	stop()
	if loadErr := <-loaded; err == nil && !errors.Is(loadErr, context.Canceled) && !errors.Is(loadErr, kgo.ErrClientClosed) {
		err = loadErr
	}
	return c.checkpoint, err
}

// rounds mirrors until so many more lines are on B.
func (c *copier) rounds(ctx context.Context, lines int64) error {
	var first int64 = -1
	for {
		ends, err := c.to.ends(ctx, input)
		if err != nil {
			return err
		}
		have := ends[0] + ends[1]
		if first < 0 {
			first = have
		}
		if have >= first+lines {
			return nil
		}
		if _, err := c.round(ctx); err != nil {
			return err
		}
	}
}
