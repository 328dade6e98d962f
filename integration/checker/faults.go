package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/integration/kafkatest"
)

// sessionTimeout is that of the group.
const sessionTimeout = 3 * time.Second

// breaker makes faults.
type breaker struct {
	kafka    *kafkatest.Kafka
	proxy    *proxy
	client   *kgo.Client
	adm      *kadm.Client
	children []*kafkatest.Child
	rand     *rand.Rand
	made     map[string]int
}

// fault makes one, and returns when what it takes is over.
func (b *breaker) fault(ctx context.Context) error {
	victim := b.children[b.rand.IntN(len(b.children))]
	switch n := b.rand.IntN(100); {
	case n < 20:
		b.made["killed a process"]++
		victim.Kill()
		sleep(ctx, time.Duration(b.rand.IntN(2000))*time.Millisecond)
		return victim.Start()
	case n < 32:
		b.made["stopped a process beyond its session, and woke it"]++
		return b.stop(ctx, victim, sessionTimeout+time.Duration(b.rand.IntN(5000))*time.Millisecond)
	case n < 40:
		b.made["stopped a process for a while, and woke it"]++
		return b.stop(ctx, victim, time.Duration(b.rand.IntN(1500))*time.Millisecond)
	case n < 43:
		return b.stopBroker(ctx, "restarted a broker", b.kafka.StopNode)
	case n < 46:
		return b.stopBroker(ctx, "killed a broker, and started it", b.killBroker)
	case n < 49 && len(b.kafka.Addrs()) > 1:
		if b.proxy.set(&trap{key: kmsg.EndTxn, what: pass}, 3*time.Second) {
			sleep(ctx, time.Duration(b.rand.IntN(20))*time.Millisecond)
			return b.stopBroker(ctx, "killed a broker in the middle of a commit, and started it", b.killBroker)
		}
		return nil
	case n < 54:
		b.made["cut half of the connections"]++
		b.proxy.cutSome(b.rand)
		return nil
	}
	return b.spoil()
}

// stopBroker stops one of the brokers and starts it again.
func (b *breaker) stopBroker(ctx context.Context, what string, stop func(int) error) error {
	if len(b.kafka.Addrs()) == 1 {
		// A broker of Kafka 4.4.0 that comes back and finds a transaction that is yet to be
		// completed in partitions without a leader takes them for deleted ("Couldn't find
		// leader endpoint for partitions …, these partitions are likely deleted already
		// and hence can be skipped"), and so what was committed is lost, whoever the
		// client is. With one broker, all partitions are then without.
		open := b.proxy.hold()
		defer open()
		if err := b.settle(ctx); err != nil {
			return err
		}
	}
	i := b.rand.IntN(len(b.kafka.Addrs()))
	b.made[what]++
	if err := stop(i); err != nil {
		return err
	}
	if len(b.kafka.Addrs()) > 1 {
		// One that comes back before the controller has missed it goes on as the leader
		// that it was, and a coordinator of Kafka 4.4.0 then acts on what nobody else has
		// of its log: it sends markers for a commit that is lost when the leader changes
		// after all, and the rest of the transaction is aborted.
		if err := b.missed(ctx, b.kafka.Addrs()[i]); err != nil {
			return err
		}
	}
	return b.kafka.StartNode(ctx, i)
}

// missed waits until the cluster does without the broker at an address.
func (b *breaker) missed(ctx context.Context, addr string) error {
	for {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{}
		known, err := req.RequestWith(ctx, b.client) // and not what the client remembers
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(known.Brokers, func(m kmsg.MetadataResponseBroker) bool {
			return net.JoinHostPort(m.Host, strconv.Itoa(int(m.Port))) == addr
		}) {
			return nil
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

func (b *breaker) killBroker(i int) error { b.kafka.KillNode(i); return nil }

// settle waits until no transaction is being ended.
func (b *breaker) settle(ctx context.Context) error {
	for {
		ending, err := b.adm.ListTransactions(ctx, nil, []string{"PrepareCommit", "PrepareAbort"})
		if err != nil {
			return err
		}
		if len(ending) == 0 {
			return nil
		}
		sleep(ctx, 10*time.Millisecond)
	}
}

func (b *breaker) stop(ctx context.Context, victim *kafkatest.Child, d time.Duration) error {
	if err := victim.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	sleep(ctx, d)
	return victim.Signal(syscall.SIGCONT)
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
