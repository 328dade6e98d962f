package main

import (
	"context"

	"github.com/odradek-go/odradek/mirror"
)

// failOver starts the application on what was its cluster's mirror. The checkpoint
// is the last one that was mirrored. Where the application can't start, the plan
// still says how things are.
func failOver(ctx context.Context, b *cluster, checkpoint mirror.Checkpoint) (plan mirror.Plan, stop func() error, err error) {
	on, err := b.states.Examine(ctx, mirrorName, topics)
	if err != nil {
		return plan, nil, err
	}
	if plan, err = mirror.Safe(topics, checkpoint, on); err != nil {
		return plan, nil, err
	}
	if err := plan.Apply(ctx, b.client, applicationID); err != nil {
		return plan, nil, err
	}
	stop, err = b.startApp()
	return plan, stop, err
}
