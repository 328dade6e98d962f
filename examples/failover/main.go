// Failover moves a streams application to a mirror of the cluster that it ran on.
//
//	go run ./examples/failover
//
// starts two embedded clusters, A and B. An application counts words on A, and A is
// mirrored to B. In the middle of the work A dies. What package mirror says of B
// decides from where the application starts there, so that in the end every word
// that was mirrored is counted once. See -help.
//
// failover.go has what a program of yours would do; copy.go stands for the brokers
// that mirror (KIP-1279), and the rest is the world around them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/odradek-go/odradek/mirror"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "failover:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// errUsage is a wrong command line, of which the flag set has said what is wrong.
var errUsage = errors.New("usage")

// options are the command line.
type options struct {
	noCheckpoint bool
	seed         uint64
	log          *slog.Logger
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{}
	f := flag.NewFlagSet("failover", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.noCheckpoint, "no-checkpoint", false, "lose the checkpoint with A, so that state has to be rebuilt")
	f.Uint64Var(&o.seed, "seed", 1, "the seed of the words")
	verbose := f.Bool("v", false, "log what the application does to standard error")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, errUsage
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	level := slog.LevelError
	if *verbose {
		level = slog.LevelInfo
	}
	o.log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	a, err := startCluster(o.log, input, output)
	if err != nil {
		return err
	}
	defer a.stop()
	b, err := startCluster(o.log, input, output)
	if err != nil {
		return err
	}
	defer b.stop()
	words := &load{to: a, random: rand.New(rand.NewPCG(o.seed, 0))}

	fmt.Fprintln(stdout, "The application counts words on cluster A, which is mirrored to cluster B.")
	checkpoint, err := untilDeath(ctx, a, b, words)
	if err != nil {
		return err
	}
	if o.noCheckpoint {
		checkpoint = mirror.Checkpoint{}
	}
	mirrored, err := b.ends(ctx, input)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Cluster A dies under load. Of %d lines, %d were mirrored.\n\n", words.sent, mirrored[0]+mirrored[1])

	// Whoever is in charge stops the mirror, for the topics to become writable.
	if err := writeStates(ctx, b, mirror.Stopped); err != nil {
		return err
	}
	plan, stop, err := failOver(ctx, b, checkpoint)
	printPlan(stdout, &plan)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nOn cluster B the application can %s. It does.\n\n", plan.Strategy)
	_, err = b.waitIdle(ctx)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	return compare(ctx, b, stdout)
}

// printPlan shows how far the partitions are mirrored, and where to start.
func printPlan(w io.Writer, plan *mirror.Plan) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PARTITION\tROLE\tSTATE\tMIRRORED TO\tCOMMITTED\tENDED AT\tSTART")
	for _, p := range plan.Partitions {
		fmt.Fprintf(table, "%s-%d\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Topic, p.Partition, p.Role, p.State,
			offset(p.MirroredEnd), offset(p.Committed), offset(p.End), offset(p.Start))
	}
	table.Flush()
}

func offset(o int64) string {
	if o < 0 {
		return "-"
	}
	return fmt.Sprint(o)
}

// compare holds the counts against the truth.
func compare(ctx context.Context, c *cluster, w io.Writer) error {
	counts, err := c.counted(ctx)
	if err != nil {
		return err
	}
	truth, err := c.truth(ctx)
	if err != nil {
		return err
	}
	for _, word := range slices.Sorted(maps.Keys(truth)) {
		fmt.Fprintf(w, "%s\t%d\n", word, counts[word])
	}
	if !maps.Equal(counts, truth) {
		return fmt.Errorf("the counts are %v, but the lines that were mirrored have %v", counts, truth)
	}
	fmt.Fprintln(w, "All that was mirrored is counted, and nothing twice.")
	return nil
}
