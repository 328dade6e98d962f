package streamstest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/streamstest"
)

// In simulated time nothing takes long: a session runs out while its member is silent.
func TestSimulatedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(kfake.VirtualNetwork)
		b, err := streamstest.NewBroker(streamstest.WithKafkaDefaults(), streamstest.WithNodes(2),
			streamstest.WithNetwork(network), streamstest.WithKfake(kfake.SeedTopics(4, "in")))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.Dialer(network.DialContext))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
		a.join(counting())
		c.join(counting())
		time.Sleep(3 * time.Second) // the initial rebalance delay
		settle(t, b, a, c)
		if len(a.active()) != 2 || len(c.active()) != 2 {
			t.Fatalf("a runs %v, c runs %v", a.active(), c.active())
		}
		for range 8 { // 40 s
			time.Sleep(5 * time.Second)
			a.heartbeat()
		}
		if g, _ := b.Group(group); len(g.Members) != 2 {
			t.Fatalf("c is gone after 40 s of its session of 45 s")
		}
		time.Sleep(5 * time.Second)
		if g, _ := b.Group(group); len(g.Members) != 1 {
			t.Fatalf("c is still there after its session")
		}
		a.heartbeat()
		settle(t, b, a)
		if len(a.active()) != 4 {
			t.Errorf("a runs %v alone", a.active())
		}
		if resp := c.send(nil); resp.ErrorCode != kerr.UnknownMemberID.Code {
			t.Errorf("c: error %d", resp.ErrorCode)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := b.WaitStable(ctx, group, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for a second member: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.join(counting())
		settle(t, b, a, c)
		if g, err := b.WaitStable(ctx, group, 2); err != nil || len(g.Members) != 2 {
			t.Errorf("waiting for two members: %v", err)
		}
	})
}

// A member that does not give up its tasks within its rebalance time-out is removed.
func TestSimulatedRebalanceTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(kfake.VirtualNetwork)
		b, err := streamstest.NewBroker(streamstest.WithNetwork(network), streamstest.WithSessionTimeout(time.Hour),
			streamstest.WithKfake(kfake.SeedTopics(4, "in")))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.Dialer(network.DialContext))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
		a.join(counting())
		settle(t, b, a)
		c.join(counting())
		a.send(nil) // is told to give up two tasks, within the 60 s of its rebalance time-out
		time.Sleep(59 * time.Second)
		if resp := a.send(nil); resp.ErrorCode != 0 {
			t.Fatalf("after 59 s: error %d", resp.ErrorCode)
		}
		time.Sleep(time.Second)
		if resp := a.send(nil); resp.ErrorCode != kerr.UnknownMemberID.Code {
			t.Errorf("after 60 s: error %d", resp.ErrorCode)
		}
		settle(t, b, c)
		if len(c.active()) != 4 {
			t.Errorf("c runs %v", c.active())
		}
	})
}
