package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/odradek-go/odradek/mirror"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the moment after A died.
type world struct {
	ctx        context.Context
	b          *cluster
	checkpoint mirror.Checkpoint
}

func afterDeath(t *testing.T, seed uint64) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	log := slog.New(slog.DiscardHandler)
	start := func() *cluster {
		c, err := startCluster(log, input, output)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.stop)
		return c
	}
	w := &world{ctx: ctx, b: start()}
	a := start()
	var err error
	w.checkpoint, err = untilDeath(ctx, a, w.b, &load{to: a, random: rand.New(rand.NewPCG(seed, 0))})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) stopMirror(t *testing.T) {
	t.Helper()
	if err := writeStates(w.ctx, w.b, mirror.Stopped); err != nil {
		t.Fatal(err)
	}
}

// failOver starts the application on B, waits until it has nothing more to do, and
// holds its counts against the truth.
func (w *world) failOver(t *testing.T) mirror.Plan {
	t.Helper()
	plan, stop, err := failOver(w.ctx, w.b, w.checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.b.waitIdle(w.ctx)
	if err := errors.Join(err, stop()); err != nil {
		t.Fatal(err)
	}
	counts, err := w.b.counted(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := w.b.truth(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(counts, truth) {
		t.Errorf("counts %v, want %v", counts, truth)
	}
	return plan
}

// State is restored from what was mirrored of the changelog, and the application
// goes on in the middle of the input.
func TestResume(t *testing.T) {
	for seed := range uint64(2) {
		w := afterDeath(t, seed)
		w.stopMirror(t)
		plan := w.failOver(t)
		if plan.Strategy != mirror.Resume {
			t.Errorf("the strategy is to %s", plan.Strategy)
		}
		for _, p := range plan.Partitions {
			if p.Role == mirror.Input && (p.Start <= 0 || p.Start >= p.MirroredEnd) {
				t.Errorf("%s-%d starts at %d of %d", p.Topic, p.Partition, p.Start, p.MirroredEnd)
			}
			if p.Role == mirror.Changelog && p.MirroredEnd <= 0 {
				t.Errorf("%s-%d has nothing to restore", p.Topic, p.Partition)
			}
		}
	}
}

// A mirror that stopped in the middle of copying internal topics has state that
// belongs to no committed offsets. It is made anew.
func TestRebuildWhatIsTorn(t *testing.T) {
	w := afterDeath(t, 1)
	records, err := w.b.read(w.ctx, changelog, 0, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	one := &kgo.Record{Topic: changelog, Key: records[0].Key, Value: records[0].Value}
	if err := w.b.client.ProduceSync(w.ctx, one).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.stopMirror(t)
	if plan := w.failOver(t); plan.Strategy != mirror.Rebuild {
		t.Errorf("the strategy is to %s", plan.Strategy)
	}
}

// Nothing is touched where the application can't start.
func TestRefuse(t *testing.T) {
	w := afterDeath(t, 1)
	refused := func(says string) {
		t.Helper()
		_, stop, err := failOver(w.ctx, w.b, w.checkpoint)
		if !errors.Is(err, mirror.ErrUnsafe) || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v", err)
		}
		if stop != nil {
			_ = stop()
			t.Error("the application was started")
		}
	}
	refused("lines-0: it is MIRRORING, and so may change")
	w.stopMirror(t)
	w.checkpoint = mirror.Checkpoint{}
	if _, err := kadm.NewClient(w.b.client).DeleteRecords(w.ctx, kadm.Offsets{input: {1: {Topic: input, Partition: 1, At: 1}}}); err != nil {
		t.Fatal(err)
	}
	refused("it can't rebuild its state from its inputs: lines-1: the first record on the mirror has offset 1")
	if committed, err := kadm.NewClient(w.b.client).FetchOffsets(w.ctx, applicationID); err != nil || len(committed) > 0 {
		t.Errorf("committed %v, %v", committed, err)
	}
}

func TestProgram(t *testing.T) {
	for want, args := range map[string][]string{
		"the application can resume. It does.":                            nil,
		"the application can rebuild its state from its inputs. It does.": {"-no-checkpoint"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out, io.Discard); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), want) || !strings.HasSuffix(out.String(), "All that was mirrored is counted, and nothing twice.\n") {
			t.Errorf("%v says\n%s", args, out.String())
		}
	}
	if err := run(t.Context(), []string{"-nothing"}, io.Discard, io.Discard); !errors.Is(err, errUsage) {
		t.Errorf("a wrong flag: %v", err)
	}
	if err := run(t.Context(), []string{"more"}, io.Discard, io.Discard); err == nil {
		t.Error("an argument is taken")
	}
}
