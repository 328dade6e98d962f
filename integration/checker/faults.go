package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

// sessionTimeout is that of the group.
const sessionTimeout = 3 * time.Second

// breaker makes faults.
type breaker struct {
	kafka    *kafkatest.Kafka
	proxy    *proxy
	children []*child
	rand     *rand.Rand
	made     map[string]int
}

// fault makes one, and returns when what it takes is over.
func (b *breaker) fault(ctx context.Context) error {
	victim := b.children[b.rand.IntN(len(b.children))]
	switch n := b.rand.IntN(100); {
	case n < 20:
		b.made["killed a process"]++
		victim.kill()
		sleep(ctx, time.Duration(b.rand.IntN(2000))*time.Millisecond)
		return victim.start()
	case n < 32:
		b.made["stopped a process beyond its session, and woke it"]++
		return b.stop(ctx, victim, sessionTimeout+time.Duration(b.rand.IntN(5000))*time.Millisecond)
	case n < 40:
		b.made["stopped a process for a while, and woke it"]++
		return b.stop(ctx, victim, time.Duration(b.rand.IntN(1500))*time.Millisecond)
	case n < 43:
		b.made["restarted the broker"]++
		if err := b.kafka.StopNode(0); err != nil {
			return err
		}
		return b.kafka.StartNode(ctx, 0)
	case n < 46:
		b.made["killed the broker, and started it"]++
		b.kafka.KillNode(0)
		return b.kafka.StartNode(ctx, 0)
	case n < 52:
		b.made["cut half of the connections"]++
		b.proxy.cutSome(b.rand)
		return nil
	}
	return b.spoil()
}

func (b *breaker) stop(ctx context.Context, victim *child, d time.Duration) error {
	if err := victim.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	sleep(ctx, d)
	return victim.signal(syscall.SIGCONT)
}

// spoil does something to a request of a commit, or of what leads to one.
func (b *breaker) spoil() error {
	keys := []kmsg.Key{
		kmsg.EndTxn, kmsg.EndTxn, kmsg.EndTxn, kmsg.TxnOffsetCommit, kmsg.TxnOffsetCommit, kmsg.Produce, kmsg.Produce,
		kmsg.InitProducerID, kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.StreamsGroupHeartbeat, kmsg.Fetch,
	}
	t := &trap{key: keys[b.rand.IntN(len(keys))], what: trick(b.rand.IntN(int(tricks))), hold: 500 * time.Millisecond}
	what := t.what.String()
	if t.what == hold && b.rand.IntN(3) == 0 {
		t.hold, what = transactionTimeout+2*time.Second, "held beyond the transaction time-out"
	}
	if b.proxy.set(t, 3*time.Second) {
		b.made[fmt.Sprintf("%s: %s", kmsg.NameForKey(t.key.Int16()), what)]++
	}
	return nil
}

func (b *breaker) total() (n int) {
	for _, times := range b.made {
		n += times
	}
	return n
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
