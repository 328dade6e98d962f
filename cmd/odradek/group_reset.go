package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/internal/restart"
)

var groupReset = &command{
	name:  "group reset",
	args:  "GROUP",
	short: "reset input offsets and delete internal topics, to process all again",
	long: `Has an application process its input again, as kafka-streams-application-reset does:

  - commits new offsets for its input topics: their earliest ones, unless a flag says
    otherwise. Offsets beyond a partition's start or end are moved to it. Input topics
    that aren't given keep their offsets.
  - deletes its internal topics, those that begin with "GROUP-" and end as Kafka
    Streams' do (see -dry-run), with what was committed of them. Topics of other
    streams groups whose ids begin alike are kept.

It refuses while the group has members. Output topics stay as they are. Local state of
the application's instances has to be deleted too, or the results will be wrong.

This can't be undone: use -dry-run first.`,
	new: func(f *flag.FlagSet) func(context.Context, *env, string) error {
		var r reset
		f.Var(&r.inputs, "input-topics", "the input `topics` to reset, separated by commas")
		f.BoolVar(&r.allInputs, "all-input-topics", false, "reset all input topics of the topology that the broker knows")
		f.Var(&r.internals, "internal-topics", "delete these `topics` only, separated by commas; they must be among\nthose that are deleted without this flag")
		f.BoolVar(&r.dryRun, "dry-run", false, "show what would be done, and do nothing")
		r.to.flags(f)
		return r.run
	},
}

// reset is one reset.
type reset struct {
	inputs, internals words
	allInputs         bool
	dryRun            bool
	to                position

	group  string
	client *kgo.Client
	adm    *kadm.Client
}

func (r *reset) run(ctx context.Context, e *env, group string) error {
	if err := r.to.check(e.connection.set); err != nil {
		return err
	}
	ctx, client, done, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	r.group, r.client, r.adm = group, client, kadm.NewClient(client)
	if err := r.inactive(ctx); err != nil {
		return err
	}
	topics, err := r.adm.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list the topics: %w", err)
	}
	internals, err := r.internalTopics(ctx, e, topics.Names())
	if err != nil {
		return err
	}
	inputs, err := r.inputTopics(ctx, topics)
	if err != nil {
		return err
	}
	moves, err := r.to.moves(ctx, r.adm, group, inputs)
	if err != nil {
		return err
	}
	r.print(e, moves, internals)
	switch {
	case r.dryRun:
		e.note("This was a dry run: nothing has been changed.")
		return nil
	case len(moves)+len(internals) == 0:
		e.note("There is nothing to do.")
		return nil
	}
	change := restart.Change{Commits: make(kadm.Offsets), Deletes: internals}
	for _, m := range moves {
		change.Commits.Add(kadm.Offset{Topic: m.topic, Partition: m.partition, At: m.to, LeaderEpoch: -1})
	}
	if err := change.Apply(ctx, r.client, group); err != nil {
		return fmt.Errorf("reset group %q: %w", group, err)
	}
	e.note("Done. Delete the local state of the application's instances before they start.")
	return nil
}

// inactive refuses while the group has members, and names them.
func (r *reset) inactive(ctx context.Context) error {
	_, err := restart.Inactive(ctx, r.adm, r.group)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("group %q: %w", r.group, err)
	if !errors.Is(err, restart.ErrGroupActive) {
		return err
	}
	g, describeErr := describeGroup(ctx, r.client, r.group)
	if describeErr != nil || len(g.Members) == 0 {
		return err // another kind of group; what is known is said
	}
	var members []string
	for _, m := range g.Members {
		members = append(members, fmt.Sprintf("%s at %s", m.ClientID, m.ClientHost))
	}
	return fmt.Errorf("%w; they are %s", err, strings.Join(members, ", "))
}

// internalTopics are the topics to delete.
func (r *reset) internalTopics(ctx context.Context, e *env, all []string) ([]string, error) {
	groups, err := streamsGroups(ctx, r.adm)
	if err != nil {
		return nil, err
	}
	var internals []string
	for _, topic := range all {
		if !internalTopic(r.group, topic) {
			continue
		}
		if other := owner(groups.Groups(), r.group, topic); other != "" {
			e.note("%s is kept: it looks like a topic of the streams group %q.", topic, other)
			continue
		}
		internals = append(internals, topic)
	}
	slices.Sort(internals)
	if len(r.internals) == 0 {
		return internals, nil
	}
	for _, topic := range r.internals {
		if !slices.Contains(internals, topic) {
			return nil, fmt.Errorf("-internal-topics: %s isn't an internal topic of group %q; those are %v", topic, r.group, internals)
		}
	}
	slices.Sort(r.internals)
	return slices.Compact(r.internals), nil
}

// inputTopics are the topics whose offsets are reset.
func (r *reset) inputTopics(ctx context.Context, all kadm.TopicDetails) ([]string, error) {
	inputs := slices.Clone(r.inputs)
	if len(inputs) == 0 {
		inputs = r.to.topics()
	}
	if r.allInputs {
		g, err := describeGroup(ctx, r.client, r.group)
		if err != nil {
			return nil, fmt.Errorf("-all-input-topics: %w", err)
		}
		if g.Topology == nil {
			return nil, fmt.Errorf("-all-input-topics: the broker has no topology of group %q", r.group)
		}
		for _, s := range g.Topology.Subtopologies {
			inputs = append(inputs, s.SourceTopics...)
		}
	}
	slices.Sort(inputs)
	inputs = slices.Compact(inputs)
	for _, topic := range inputs {
		switch {
		case !all.Has(topic):
			return nil, fmt.Errorf("the input topic %s doesn't exist", topic)
		case internalTopic(r.group, topic):
			return nil, fmt.Errorf("%s is an internal topic, which is deleted, and no input topic", topic)
		}
	}
	return inputs, nil
}

func (r *reset) print(e *env, moves []move, internals []string) {
	if len(moves) > 0 {
		t := newTable(e.stdout, "INPUT TOPIC", "PARTITION", "COMMITTED", "RESET TO")
		for _, m := range moves {
			t.row(m.topic, strconv.Itoa(int(m.partition)), number(m.from), number(m.to))
		}
		t.flush()
	}
	if len(internals) > 0 {
		if len(moves) > 0 {
			fmt.Fprintln(e.stdout)
		}
		fmt.Fprintln(e.stdout, "INTERNAL TOPIC TO DELETE")
		for _, topic := range internals {
			fmt.Fprintln(e.stdout, topic)
		}
	}
}
