package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streams"
)

// options are what is checked, and how hard.
type options struct {
	records   int // to process
	faults    int // to make meanwhile
	keys      int
	processes int
	nodes     int // of the cluster
	guarantee streams.ProcessingGuarantee
	seed      uint64
	cache     bool // changes of stores are held back, so that only the last counts are sent
	verbose   bool // the processes log what their clients do
	say       func(format string, args ...any)
}

func main() {
	kafkatest.BeChild(runChild)
	o := options{say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	flag.IntVar(&o.records, "records", 1_000_000, "records to process")
	flag.IntVar(&o.faults, "faults", 100, "faults to make meanwhile")
	flag.IntVar(&o.keys, "keys", 1000, "different keys of the counts")
	flag.IntVar(&o.processes, "processes", 3, "processes that share the work")
	flag.IntVar(&o.nodes, "nodes", 1, "nodes of the cluster; with more than one, topics have replicas and brokers are also killed in the middle of commits")
	flag.Uint64Var(&o.seed, "seed", 1, "the faults are others with another seed")
	flag.BoolVar(&o.cache, "cache", false, "have stores hold changes back in a cache: each key's counts must then rise, and end right")
	flag.BoolVar(&o.verbose, "v", false, "have the processes log what their Kafka clients do")
	atLeastOnce := flag.Bool("at-least-once", false, "check that guarantee, and not exactly once")
	flag.Parse()
	o.guarantee = streams.ExactlyOnceV2
	if *atLeastOnce {
		o.guarantee = streams.AtLeastOnce
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(check(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "checker:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
