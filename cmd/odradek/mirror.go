package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/mirror"
)

// mirrorFlags say how a cluster speaks KIP-1279.
type mirrorFlags struct {
	keys   apiKeys
	states stateNumbers
}

func (m *mirrorFlags) flags(f *flag.FlagSet) {
	f.Var(&m.keys, "api-keys", "the API keys of ReadMirrorStates and WriteMirrorStates, as `READ,WRITE`. Kafka has\nnot assigned them yet: they are what these brokers have. Required")
	f.Var(&m.states, "states", "the numbers of the mirror's states, as `STATE=n,…`, where these brokers number them\notherwise than "+draftStates())
}

// client returns a client for the states, made with a Kafka client of option.
func (m *mirrorFlags) client(kafka *kgo.Client) (*mirror.Client, error) {
	return mirror.NewClient(kafka, mirror.Config{
		Keys: m.keys.Keys, States: m.states.StateNumbers, Logger: slog.New(slog.DiscardHandler),
	})
}

// check says what is wrong before anything is connected to.
func (m *mirrorFlags) check() error {
	if m.keys == (apiKeys{}) {
		return &usageError{reason: "-api-keys is needed: Kafka has not assigned the API keys of ReadMirrorStates and WriteMirrorStates yet"}
	}
	if err := errors.Join(m.keys.Validate(), m.states.Validate()); err != nil {
		return &usageError{reason: oneLine(err)}
	}
	return nil
}

type apiKeys struct{ mirror.Keys }

func (k *apiKeys) String() string {
	if *k == (apiKeys{}) {
		return ""
	}
	return fmt.Sprintf("%d,%d", k.ReadMirrorStates, k.WriteMirrorStates)
}

func (k *apiKeys) Set(s string) error {
	read, write, _ := strings.Cut(s, ",")
	r, err1 := strconv.ParseInt(strings.TrimSpace(read), 10, 16)
	w, err2 := strconv.ParseInt(strings.TrimSpace(write), 10, 16)
	if errors.Join(err1, err2) != nil {
		return errors.New("two numbers are needed, such as 1000,1001")
	}
	k.ReadMirrorStates, k.WriteMirrorStates = int16(r), int16(w)
	return nil
}

type stateNumbers struct{ mirror.StateNumbers }

func (n *stateNumbers) String() string { return "" }

func (n *stateNumbers) Set(s string) error {
	n.StateNumbers = make(mirror.StateNumbers)
	for pair := range strings.SplitSeq(s, ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(pair), "=")
		state, err := mirror.ParseState(name)
		if err != nil {
			return err
		}
		i, err := strconv.ParseInt(number, 10, 8)
		if err != nil {
			return fmt.Errorf("%q has no number, such as STOPPED=5", pair)
		}
		if other, twice := n.StateNumbers[int8(i)]; twice {
			return fmt.Errorf("%s and %s have the number %d both", other, state, i)
		}
		n.StateNumbers[int8(i)] = state
	}
	return nil
}

func draftStates() string {
	var all []string
	draft := mirror.DraftStateNumbers()
	for n := range int8(127) {
		if state, ok := draft[n]; ok {
			all = append(all, fmt.Sprintf("%s=%d", state, n))
		}
	}
	return strings.Join(all, ",")
}

// savedCheckpoint is what a checkpoint file has.
type savedCheckpoint struct {
	Group        string            `json:"group"`
	Inputs       []string          `json:"inputs"`
	Repartitions []string          `json:"repartitions"`
	Changelogs   []string          `json:"changelogs"`
	Outputs      []string          `json:"outputs"`
	Checkpoint   mirror.Checkpoint `json:"checkpoint"`
}

// applicationFlags say what the application's topics are.
type applicationFlags struct {
	group                                     string
	inputs, repartitions, changelogs, outputs words
	stateless                                 bool
	checkpointFile                            string
	allowRepeats                              bool
}

func (a *applicationFlags) flags(f *flag.FlagSet) {
	f.StringVar(&a.checkpointFile, "checkpoint", "", "the application's last checkpoint, a `FILE` of odradek mirror checkpoint.\nWithout it, the offsets that the group has committed on the mirror are taken,\nand state can only be rebuilt")
	a.topicFlags(f)
	f.BoolVar(&a.allowRepeats, "allow-repeats", false, "allow a start at which some records are processed, and counted, twice")
}

func (a *applicationFlags) topicFlags(f *flag.FlagSet) {
	f.Var(&a.inputs, "input-topics", "the application's input `topics`, separated by commas (default: those of the\ncheckpoint, or of the topology that the broker knows)")
	f.Var(&a.repartitions, "repartition-topics", "its repartition `topics` (default: likewise)")
	f.Var(&a.changelogs, "changelog-topics", "its changelog `topics` (default: likewise)")
	f.Var(&a.outputs, "output-topics", "its output `topics` (default: likewise)")
	f.BoolVar(&a.stateless, "stateless", false, "it has neither repartition nor changelog topics")
}

// given are the topics that flags name.
func (a *applicationFlags) given() mirror.Application {
	return mirror.Application{Inputs: a.inputs, Repartitions: a.repartitions, Changelogs: a.changelogs, Outputs: a.outputs}
}

// load returns the application's topics and its checkpoint.
func (a *applicationFlags) load(ctx context.Context, e *env, kafka *kgo.Client) (app mirror.Application, checkpoint mirror.Checkpoint, err error) {
	if a.checkpointFile != "" {
		saved, err := readCheckpoint(a.checkpointFile, a.group)
		if err != nil {
			return app, checkpoint, err
		}
		app = mirror.Application{Inputs: saved.Inputs, Repartitions: saved.Repartitions, Changelogs: saved.Changelogs, Outputs: saved.Outputs}
		checkpoint = saved.Checkpoint
		if given := a.given(); len(given.Inputs)+len(given.Repartitions)+len(given.Changelogs) > 0 {
			return app, checkpoint, &usageError{reason: "-checkpoint says which topics there are; no flags can"}
		}
		app.Outputs = append(app.Outputs, a.outputs...)
	} else {
		if app, err = a.topics(ctx, e, kafka); err != nil {
			return app, checkpoint, err
		}
		if checkpoint.Committed, err = committed(ctx, kafka, a.group, app); err != nil {
			return app, checkpoint, err
		}
	}
	app.AllowRepeats = a.allowRepeats
	return app, checkpoint, nil
}

// topics are those that flags name, or that the broker knows of. What isn't known
// is never taken for nothing: state that is overlooked would be wrong.
func (a *applicationFlags) topics(ctx context.Context, e *env, kafka *kgo.Client) (mirror.Application, error) {
	app := a.given()
	internals := len(app.Repartitions)+len(app.Changelogs) > 0
	switch {
	case a.stateless && internals:
		return app, &usageError{reason: "-stateless, and -repartition-topics or -changelog-topics, exclude each other"}
	case len(app.Inputs) > 0 && (internals || a.stateless):
		return app, nil
	case len(app.Inputs) > 0 || internals || a.stateless:
		return app, &usageError{reason: "where -input-topics are given, -repartition-topics and -changelog-topics, or -stateless, have to be given too"}
	}
	g, err := describeGroup(ctx, kafka, a.group)
	if errors.Is(err, errNoGroup) || err == nil && g.Topology == nil {
		return app, fmt.Errorf("the broker doesn't know which topics group %q has: give a -checkpoint, or -input-topics and what belongs to it", a.group)
	}
	if err != nil {
		return app, err
	}
	app = mirror.ApplicationOf(&g.StreamsGroupDescribeResponseGroup)
	if g.TopologyDescription == nil && len(a.outputs) == 0 {
		e.note("The broker doesn't know the output topics of group %q; name them with -output-topics if some of them are inputs too.", a.group)
	}
	app.Outputs = append(app.Outputs, a.outputs...)
	return app, nil
}

// committed is what the group has committed on the mirror, where brokers that mirror
// bring it (KIP-1279).
func committed(ctx context.Context, kafka *kgo.Client, group string, app mirror.Application) (map[string]map[int32]mirror.Commit, error) {
	commits, err := kadm.NewClient(kafka).FetchOffsets(ctx, group)
	if err == nil {
		err = commits.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the offsets that group %q has committed: %w", group, err)
	}
	all := make(map[string]map[int32]mirror.Commit)
	for _, topics := range [][]string{app.Inputs, app.Repartitions} {
		for _, topic := range topics {
			for partition, o := range commits[topic] {
				if all[topic] == nil {
					all[topic] = make(map[int32]mirror.Commit)
				}
				all[topic][partition] = mirror.Commit{Offset: o.At, Metadata: o.Metadata}
			}
		}
	}
	return all, nil
}

func readCheckpoint(file, group string) (savedCheckpoint, error) {
	var saved savedCheckpoint
	data, err := os.ReadFile(file)
	if err != nil {
		return saved, fmt.Errorf("-checkpoint %w", err)
	}
	if err := json.Unmarshal(data, &saved); err != nil {
		return saved, fmt.Errorf("-checkpoint %s: %w", file, err)
	}
	if saved.Group != group {
		return saved, fmt.Errorf("-checkpoint %s is one of group %q, not of %q", file, saved.Group, group)
	}
	return saved, nil
}
