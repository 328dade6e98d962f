package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/odradek-go/odradek/integration/kafkatest"
	"github.com/odradek-go/odradek/streams"
)

// options are what is checked, and how hard.
type options struct {
	duration  time.Duration // of the load
	rate      int           // of writes, a second
	keys      int
	askers    int // who ask at the same time
	guarantee streams.ProcessingGuarantee
	seed      uint64
	say       func(format string, args ...any)
}

func main() {
	kafkatest.BeChild(runChild)
	o := options{say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	flag.DurationVar(&o.duration, "duration", 3*time.Minute, "for how long to write, to ask and to make faults")
	flag.IntVar(&o.rate, "rate", 300, "records to write a second")
	flag.IntVar(&o.keys, "keys", 500, "different keys")
	flag.IntVar(&o.askers, "clients", 16, "how many ask at the same time")
	flag.Uint64Var(&o.seed, "seed", 1, "the faults are others with another seed")
	atLeastOnce := flag.Bool("at-least-once", false, "of the application, and not exactly once")
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
		fmt.Fprintln(os.Stderr, "queries:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
