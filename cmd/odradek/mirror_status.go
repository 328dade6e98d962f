package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/mirror"
)

const safety = `For the application of a group, it says whether it can start on the mirror, and at
which offsets, so that its state and its inputs agree. It can

  resume    where it has an exact checkpoint (odradek mirror checkpoint), and its
            internal topics end on the mirror where they did at the checkpoint;
  rebuild   its state from its inputs, where they are there from the beginning.

The exit code is 3 where it can't start.`

var mirrorStatus = &command{
	name:  "mirror status",
	args:  "MIRROR",
	short: "show how far topics are mirrored, and whether to start there",
	long: `Shows how far a mirror's topics are mirrored (KIP-1279), on the cluster that has the
copies.

` + safety,
	new: func(f *flag.FlagSet) func(context.Context, *env, string) error {
		var m mirrorFlags
		var app applicationFlags
		m.flags(f)
		f.StringVar(&app.group, "group", "", "say whether the application of this `GROUP` can start (default: show all topics)")
		app.flags(f)
		return func(ctx context.Context, e *env, name string) error {
			if err := m.check(); err != nil {
				return err
			}
			ctx, kafka, done, err := e.connect(ctx, m.keys.ClientOption())
			if err != nil {
				return err
			}
			defer done()
			if app.group == "" {
				return printStates(ctx, e.stdout, &m, kafka, name)
			}
			_, err = judge(ctx, e, &m, &app, kafka, name)
			return err
		}
	},
}

var mirrorPrepare = &command{
	name:  "mirror prepare",
	args:  "MIRROR",
	short: "commit and delete what a start on the mirror needs",
	long: `Does what has to be done on the cluster that has the copies before an application
starts there: commits the offsets to start at to its group, and, with -rebuild, deletes its
internal topics where its state has to be rebuilt. odradek mirror status shows what
that will be.

` + safety,
	new: func(f *flag.FlagSet) func(context.Context, *env, string) error {
		var m mirrorFlags
		var app applicationFlags
		m.flags(f)
		f.StringVar(&app.group, "group", "", "the application's `GROUP`. Required")
		rebuild := f.Bool("rebuild", false, "allow internal topics to be deleted, where state has to be rebuilt")
		app.flags(f)
		return func(ctx context.Context, e *env, name string) error {
			if err := m.check(); err != nil {
				return err
			}
			if app.group == "" {
				return &usageError{reason: "-group is needed"}
			}
			ctx, kafka, done, err := e.connect(ctx, m.keys.ClientOption())
			if err != nil {
				return err
			}
			defer done()
			plan, err := judge(ctx, e, &m, &app, kafka, name)
			if err != nil {
				return err
			}
			if plan.Strategy == mirror.Rebuild && !*rebuild {
				return fmt.Errorf("nothing was done: to rebuild its state, internal topics of %s would be deleted and outputs written once more; -rebuild allows that", app.group)
			}
			if err := plan.Apply(ctx, kafka, app.group); err != nil {
				return err
			}
			e.note("Done: the application can be started on this cluster, without local state of an earlier run.")
			return nil
		}
	},
}

// printStates shows all that the mirror has.
func printStates(ctx context.Context, w io.Writer, m *mirrorFlags, kafka *kgo.Client, name string) error {
	client, err := m.client(kafka)
	if err != nil {
		return err
	}
	states, err := client.Read(ctx, name)
	if len(states) == 0 {
		if err == nil {
			err = fmt.Errorf("mirror %q has no topics", name)
		}
		return err
	}
	t := newTable(w, "TOPIC", "PARTITION", "STATE", "LAST MIRRORED")
	for _, topic := range slices.Sorted(maps.Keys(states)) {
		for _, partition := range slices.Sorted(maps.Keys(states[topic])) {
			p := states[topic][partition]
			t.row(topic, strconv.Itoa(int(partition)), p.State.String(), number(p.LastMirroredOffset))
		}
	}
	t.flush()
	return err
}

// judge shows how things are, and returns the plan.
func judge(ctx context.Context, e *env, m *mirrorFlags, a *applicationFlags, kafka *kgo.Client, name string) (mirror.Plan, error) {
	client, err := m.client(kafka)
	if err != nil {
		return mirror.Plan{}, err
	}
	app, checkpoint, err := a.load(ctx, e, kafka)
	if err != nil {
		return mirror.Plan{}, err
	}
	on, err := client.Examine(ctx, name, app)
	if err != nil {
		return mirror.Plan{}, err
	}
	plan, err := mirror.Safe(app, checkpoint, on)
	printPlan(e.stdout, &plan)
	fmt.Fprintln(e.stdout)
	if unsafe, ok := errors.AsType[*mirror.UnsafeError](err); ok {
		printObstacles(e.stdout, a.group, unsafe.Obstacles)
		return plan, err
	}
	fmt.Fprintf(e.stdout, "%s can %s.\n", a.group, plan.Strategy)
	for _, topic := range plan.Deletes() {
		fmt.Fprintf(e.stdout, "  %s has to be deleted before\n", topic)
	}
	return plan, err
}

func printPlan(w io.Writer, plan *mirror.Plan) {
	t := newTable(w, "TOPIC", "PARTITION", "ROLE", "STATE", "MIRRORED TO", "LOG", "COMMITTED", "ENDED AT", "START")
	for _, p := range plan.Partitions {
		state, log := "", ""
		if p.Mirrored {
			state = p.State.String()
		}
		if p.Log.End >= 0 {
			log = fmt.Sprintf("%d–%d", p.Log.Start, p.Log.End)
		}
		t.row(p.Topic, strconv.Itoa(int(p.Partition)), p.Role.String(), state, number(p.MirroredEnd), log,
			number(p.Committed), number(p.End), number(p.Start))
	}
	t.flush()
}

func printObstacles(w io.Writer, group string, obstacles []mirror.Obstacle) {
	for i, o := range obstacles {
		if i == 0 || o.Strategy != obstacles[i-1].Strategy {
			fmt.Fprintf(w, "%s can't %s:\n", group, o.Strategy)
		}
		fmt.Fprintf(w, "  %s\n", o)
	}
}
