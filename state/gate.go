package state

import (
	"context"
	"slices"
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
	state atomic.Int32 // gateFree and so on
	mu    sync.Mutex
	queue []chan struct{} // closed when it is their turn; with mu

	// The owner's alone: what it has done since it got the gate.
	steps int
	since time.Time
}

// The states of a gate. It is wanted exactly as long as there is a queue: both change
// together, with mu.
const (
	gateFree   = iota // nobody has it
	gateHeld          // somebody has
	gateWanted        // and others wait for it
)

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
	if g.state.Load() != gateWanted {
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
	if g.TryEnter() {
		return nil
	}
	turn := g.enqueue()
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		g.abandon(turn)
		return context.Cause(ctx)
	}
}

// TryEnter takes the gate for a reader if nobody has it.
func (g *Gate) TryEnter() bool { return g.state.CompareAndSwap(gateFree, gateHeld) }

// enqueue takes a place in the queue. It is nil for a gate that is free by now, and
// taken.
func (g *Gate) enqueue() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.state.Load() != gateWanted && !g.state.CompareAndSwap(gateHeld, gateWanted) {
		if g.TryEnter() {
			return nil
		}
	}
	turn := make(chan struct{})
	g.queue = append(g.queue, turn)
	return turn
}

// abandon leaves the queue, or passes the turn on if it has come meanwhile.
func (g *Gate) abandon(turn chan struct{}) {
	g.mu.Lock()
	i := slices.Index(g.queue, turn)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		if len(g.queue) == 0 {
			g.state.Store(gateHeld) // by whoever has it, who leaves a wanted one with mu alone
		}
	}
	g.mu.Unlock()
	if i < 0 {
		g.Leave()
	}
}

// Leave gives a reader's gate back.
func (g *Gate) Leave() {
	if g.state.CompareAndSwap(gateHeld, gateFree) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.state.Store(gateFree)
		return
	}
	turn := g.queue[0]
	if g.queue = g.queue[1:]; len(g.queue) == 0 {
		g.state.Store(gateHeld)
	}
	close(turn)
}
