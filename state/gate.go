package state

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Gate lets others read the stores of a task between the steps of the goroutine that
// has them (KIP-67). The owner holds it while it works and yields it now and then;
// nothing is locked for a single record.
//
// It is handed over in the order in which it was asked for, so that neither a busy
// owner nor many readers keep the others out. The zero value is free.
type Gate struct {
	mu      sync.Mutex
	held    bool
	queue   []chan struct{} // closed when it is their turn
	waiting atomic.Int32    // the queue's length

	// The owner's alone: what it has done since it got the gate.
	steps int
	since time.Time
}

const (
	// yieldSteps and yieldTime are how many steps the owner makes, and how long it
	// works, before it lets readers in that wait.
	yieldSteps = 16
	yieldTime  = time.Millisecond
)

// Lock takes the gate for the owner.
func (g *Gate) Lock() {
	_ = g.Enter(context.Background()) // which never ends
	g.steps, g.since = 0, time.Now()
}

// Unlock gives the owner's gate back.
func (g *Gate) Unlock() { g.Leave() }

// Yield is called by the owner between steps, such as records. It lets in those who
// wait, if the owner has done a few steps or took long.
func (g *Gate) Yield() {
	if g.waiting.Load() == 0 {
		return
	}
	if g.steps++; g.steps < yieldSteps && time.Since(g.since) < yieldTime {
		return
	}
	g.Unlock()
	g.Lock()
}

// Enter takes the gate for a reader, or returns the error of ctx, which ended first.
func (g *Gate) Enter(ctx context.Context) error {
	g.mu.Lock()
	if !g.held {
		g.held = true
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	g.queue = append(g.queue, turn)
	g.waiting.Add(1)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		g.abandon(turn)
		return context.Cause(ctx)
	}
}

// TryEnter takes the gate for a reader if nobody has it.
func (g *Gate) TryEnter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held {
		return false
	}
	g.held = true
	return true
}

// abandon leaves the queue, or passes the turn on if it has come meanwhile.
func (g *Gate) abandon(turn chan struct{}) {
	g.mu.Lock()
	for i, queued := range g.queue {
		if queued == turn {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			g.waiting.Add(-1)
			g.mu.Unlock()
			return
		}
	}
	g.mu.Unlock()
	g.Leave()
}

// Leave gives a reader's gate back.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.held = false
		return
	}
	turn := g.queue[0]
	g.queue = g.queue[1:]
	g.waiting.Add(-1)
	close(turn)
}
