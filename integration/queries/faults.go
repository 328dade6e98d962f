package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

// sessionTimeout is that of the group.
const sessionTimeout = 3 * time.Second

// breaker makes faults. The last process is one more than there usually are.
type breaker struct {
	kafka     *kafkatest.Kafka
	processes []*process
	rand      *rand.Rand
	made      map[string]int

	mu   sync.Mutex
	runs []string // addresses of the processes that are there
}

// running are the addresses of the processes that are there.
func (b *breaker) running() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs
}

func (b *breaker) lives(p *process, does bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var runs []string
	for _, address := range b.runs {
		if address != p.address {
			runs = append(runs, address)
		}
	}
	if does {
		runs = append(runs, p.address)
	}
	b.runs = runs
}

func (b *breaker) start(p *process) error {
	if err := p.Start(); err != nil {
		return err
	}
	b.lives(p, true)
	return nil
}

// fault is something that happens to a process, which is over when it returns.
type fault struct {
	name string
	make func(ctx context.Context, victim *process) error
}

func (b *breaker) faults() []fault {
	paused := func(beyond bool) func(ctx context.Context, victim *process) error {
		return func(ctx context.Context, victim *process) error {
			d := b.upTo(sessionTimeout / 3)
			if beyond {
				d += sessionTimeout + time.Second
			}
			if err := victim.Signal(syscall.SIGSTOP); err != nil {
				return err
			}
			sleep(ctx, d)
			return victim.Signal(syscall.SIGCONT)
		}
	}
	return []fault{
		{"stopped a process, and started it", func(ctx context.Context, victim *process) error {
			if err := victim.Stop(stopPatience); err != nil {
				return err
			}
			sleep(ctx, b.upTo(2*time.Second))
			return victim.Start()
		}},
		{"killed a process, and started it", func(ctx context.Context, victim *process) error {
			victim.Kill()
			sleep(ctx, b.upTo(sessionTimeout))
			return victim.Start()
		}},
		{"paused a process beyond its session, and woke it", paused(true)},
		{"paused a process for a while, and woke it", paused(false)},
		{"added a process, and took it away", func(ctx context.Context, _ *process) error {
			added := b.processes[len(b.processes)-1]
			if err := b.start(added); err != nil {
				return err
			}
			sleep(ctx, 2*time.Second+b.upTo(3*time.Second))
			b.lives(added, false)
			return added.Stop(stopPatience)
		}},
	}
}

// run makes faults until ctx ends: each in turn, in another order each time, with
// moments of peace between them.
func (b *breaker) run(ctx context.Context) error {
	all := b.faults()
	for {
		b.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, f := range all {
			if sleep(ctx, b.upTo(2*time.Second)); ctx.Err() != nil {
				return nil
			}
			// What has begun is ended in any case, so that all processes are there.
			if err := f.make(context.WithoutCancel(ctx), b.processes[b.rand.IntN(len(b.processes)-1)]); err != nil {
				return err
			}
			b.made[f.name]++
			for _, p := range b.processes {
				if err := p.Lives(); err != nil {
					return err
				}
			}
		}
	}
}

func (b *breaker) upTo(d time.Duration) time.Duration { return time.Duration(b.rand.Int64N(int64(d))) }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
