package streamstest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
	"github.com/odradek-go/odradek/streamstest/internal/mirrorstates"
)

// Broker is an embedded Kafka cluster that knows streams groups. Its methods can be called from several goroutines,
// but not from a control function or a fault's When, which run while the cluster waits.
type Broker struct {
	config  config
	cluster *kfake.Cluster
	ask     asker
	faults  faults
	clients clientIDs

	// life is held for reading while the cluster is asked something from outside of it, because a closed cluster does
	// not answer.
	life   sync.RWMutex
	closed bool

	mu        sync.Mutex
	groups    *coordinator.Coordinator
	mirrors   mirrorstates.States
	nodes     map[string]int32          // the last known coordinator of each group
	announced *kmsg.ApiVersionsResponse // what kfake announces; nil: to be asked for
}

// NewBroker starts a broker. Close stops it.
func NewBroker(opts ...Option) (*Broker, error) {
	c := defaults()
	for _, o := range opts {
		o(&c)
	}
	if err := c.groups.Validate(); err != nil {
		return nil, fmt.Errorf("streamstest: %w", err)
	}
	if err := c.mirrors.check(c.noStreams); err != nil {
		return nil, fmt.Errorf("streamstest: WithMirrorStates: %w", err)
	}
	b := &Broker{
		config: c,
		groups: coordinator.New(c.groups, c.log),
		nodes:  make(map[string]int32),
	}
	user := superuser{name: "streamstest-coordinator", password: rand.Text()}
	kopts := []kfake.Opt{
		kfake.NumBrokers(c.nodes),
		kfake.WithLogger(kfakeLogger{c.log}),
		kfake.Superuser("PLAIN", user.name, user.password),
		kfake.ListenFn(b.listening(net.Listen)),
	}
	kopts = append(kopts, c.kfake...)
	if c.network != nil {
		kopts = append(kopts, kfake.ListenFn(b.listening(listenOn(c.network))))
	}
	cluster, err := newCluster(kopts)
	if err != nil {
		return nil, fmt.Errorf("streamstest: start the embedded cluster: %w", err)
	}
	b.cluster = cluster
	if c.noStreams {
		return b, nil
	}
	b.ask.cluster, b.ask.dial, b.ask.user = cluster, c.dial, user
	if err := b.ask.probe(cluster.ListenAddrs()); err != nil {
		cluster.Close()
		return nil, fmt.Errorf("streamstest: %w", err)
	}
	if err := b.checkMirrorStates(); err != nil {
		cluster.Close()
		return nil, fmt.Errorf("streamstest: %w", err)
	}
	// On "any key", so that control functions which users register for a key come first.
	cluster.Control(b.control)
	return b, nil
}

// newCluster makes an error of what kfake panics on, such as a cluster without nodes.
func newCluster(opts []kfake.Opt) (cluster *kfake.Cluster, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kfake panics: %v", p)
		}
	}()
	return kfake.NewCluster(opts...)
}

// listening makes a listener whose connections tell what kfake can't.
func (b *Broker) listening(f listen) listen { return b.config.mirrors.carrying(b.clients.listening(f)) }

// Addrs returns the address, host:port, of every node.
func (b *Broker) Addrs() []string {
	b.life.RLock()
	defer b.life.RUnlock()
	if b.closed {
		return nil
	}
	return b.cluster.ListenAddrs()
}

// Cluster returns the kfake cluster, for topics, records, committed offsets, faults and failing nodes. Close the
// Broker, not the cluster.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close stops the broker and closes all connections. Nothing of it runs afterwards. It can be called more than once.
func (b *Broker) Close() {
	b.life.Lock()
	defer b.life.Unlock()
	if !b.closed {
		b.closed = true
		b.cluster.Close()
	}
}

// SetGroupConfig sets group configs of a streams group, such as streams.num.standby.replicas, in addition to those
// already set: all of them or, with an error, none. The group need not exist yet. Members see the change with their
// next heartbeat.
func (b *Broker) SetGroupConfig(group string, configs map[string]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.groups.AlterGroupConfigs(group, configs, nil, false); err != nil {
		return fmt.Errorf("streamstest: group %s: %w", group, err)
	}
	return nil
}

// with calls f with the coordinator of the groups. f must not ask the cluster anything.
func (b *Broker) with(f func(groups *coordinator.Coordinator, now time.Time)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.groups, time.Now())
}

// coordinates reports whether the node is the coordinator of the group. If it has become that just now, what a
// coordinator keeps in memory is gone.
func (b *Broker) coordinates(node int32, group string) bool {
	if b.cluster.CoordinatorFor(group) != node {
		return false
	}
	b.with(func(groups *coordinator.Coordinator, now time.Time) {
		if last, known := b.nodes[group]; known && last != node {
			groups.Moved(now, group)
		}
		b.nodes[group] = node
	})
	return true
}

// topics returns what there is of the given topics.
func (b *Broker) topics(names []string) coordinator.Topics {
	found := make(map[string]coordinator.Topic, len(names))
	for _, name := range names {
		info := b.cluster.TopicInfo(name)
		if info == nil {
			continue
		}
		partitions := b.cluster.PartitionInfos(name)
		if partitions == nil {
			continue
		}
		found[name] = coordinator.Topic{ID: info.TopicID, Partitions: int32(len(partitions))}
	}
	return lookup(found)
}

func lookup(topics map[string]coordinator.Topic) coordinator.Topics {
	return func(name string) (coordinator.Topic, bool) {
		t, ok := topics[name]
		return t, ok
	}
}

// listenOn lets each node listen on a port of its own. kfake asks for port 0, which means any.
func listenOn(network *kfake.VirtualNetwork) func(string, string) (net.Listener, error) {
	return func(netw, address string) (net.Listener, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if port != "0" {
			return network.Listen(netw, address)
		}
		const first, last = 9092, 9999
		var errs error
		for p := first; p <= last; p++ {
			l, err := network.Listen(netw, net.JoinHostPort(host, strconv.Itoa(p)))
			if err == nil {
				return l, nil
			}
			errs = err
		}
		return nil, errors.Join(fmt.Errorf("no free port from %d to %d on the virtual network", first, last), errs)
	}
}

// kfakeLogger passes on what kfake logs.
type kfakeLogger struct{ log *slog.Logger }

func (l kfakeLogger) Logf(level kfake.LogLevel, msg string, args ...any) {
	if !l.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	l.log.Debug("kfake: "+fmt.Sprintf(msg, args...), "kfake_level", level.String())
}
