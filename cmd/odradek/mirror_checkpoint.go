package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"time"

	"github.com/odradek-go/odradek/mirror"
)

var mirrorCheckpoint = &command{
	name:  "mirror checkpoint",
	args:  "GROUP",
	short: "write down where an application stands, for mirror status",
	long: `Prints a checkpoint of an application as JSON: what its group has committed, and where
its repartition and changelog topics end. It is to be taken on the cluster that the
application runs on, and to be kept for odradek mirror status.

Only an exact checkpoint can be resumed from without counting anything twice: one that
is taken when all that there is has been processed and committed, such as after the
application was stopped. -wait waits for that.`,
	new: func(f *flag.FlagSet) func(context.Context, *env, string) error {
		var app applicationFlags
		app.topicFlags(f)
		wait := f.Bool("wait", false, "wait until the checkpoint is exact, at most for -timeout")
		return func(ctx context.Context, e *env, group string) error {
			ctx, kafka, done, err := e.connect(ctx)
			if err != nil {
				return err
			}
			defer done()
			app.group = group
			topics, err := app.topics(ctx, e, kafka)
			if err != nil {
				return err
			}
			for {
				checkpoint, err := mirror.Capture(ctx, kafka, group, topics)
				if err != nil {
					return err
				}
				if checkpoint.Exact || !*wait {
					return printCheckpoint(e, group, topics, checkpoint)
				}
				select {
				case <-ctx.Done():
					return fmt.Errorf("the checkpoint of group %q isn't exact yet: %w", group, ctx.Err())
				case <-time.After(100 * time.Millisecond):
				}
			}
		}
	},
}

func printCheckpoint(e *env, group string, topics mirror.Application, checkpoint mirror.Checkpoint) error {
	if !checkpoint.Exact {
		e.note("The checkpoint isn't exact: the application has something to do, so that changelogs may hold what became of records after the committed offsets.")
	}
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(savedCheckpoint{
		Group: group, Inputs: topics.Inputs, Repartitions: topics.Repartitions, Changelogs: topics.Changelogs, Outputs: topics.Outputs,
		Checkpoint: checkpoint,
	})
}
