package kafkatest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// startPatience is how long nodes have to become ready. A quiet machine needs
// seconds; a busy one must not fail a test for being busy.
const startPatience = 3 * time.Minute

// Kafka is a cluster of real Apache Kafka nodes on this machine. Its methods
// may be called at the same time; those about the same node take turns.
type Kafka struct {
	config  Config
	install installation
	dir     string
	nodes   []*node
	patches string // what begins the class path of all
}

// New starts a cluster for one test, and ends it with the test. It calls
// [Require] first.
func New(t testing.TB, config Config) *Kafka {
	t.Helper()
	Require(t)
	kafka, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kafka.Close(); err != nil {
			t.Error(err)
		}
	})
	return kafka
}

// Start starts a cluster and returns when every node serves and knows all
// others. The context bounds the start only; [Kafka.Close] ends the cluster. An
// error quotes the end of the log of the node that did not start.
func Start(ctx context.Context, config Config) (*Kafka, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	install, err := install(ctx, config.Version)
	if err != nil {
		return nil, err
	}
	// Another process may take a port between the look and the use.
	for attempt := 1; ; attempt++ {
		kafka, err := create(ctx, config, install)
		if err == nil {
			err = kafka.Start(ctx)
		}
		if err == nil {
			return kafka, nil
		}
		retry := attempt < 3 && kafka.portTaken()
		if err = errors.Join(err, kafka.Close()); !retry {
			return nil, err
		}
	}
}

// portTaken reports whether a node found something else on one of its ports.
func (k *Kafka) portTaken() bool {
	for i := range k.nodes {
		if strings.Contains(k.LogTail(i, 1000), "Address already in use") {
			return true
		}
	}
	return false
}

// create prepares a cluster's folders. The cluster is to be closed even if there
// is an error.
func create(ctx context.Context, config Config, install installation) (*Kafka, error) {
	k := &Kafka{config: config, install: install}
	var err error
	if k.dir = config.Dir; k.dir == "" {
		if k.dir, err = os.MkdirTemp("", "odradek-kafka-"); err != nil {
			return k, fmt.Errorf("kafkatest: %w", err)
		}
	}
	addrs, err := freeAddrs(2 * config.Nodes)
	if err != nil {
		return k, fmt.Errorf("kafkatest: %w", err)
	}
	id := make([]byte, 16)
	rand.Read(id)
	id[0] &= 0x7f // the tools take a leading dash for an option
	clusterID := base64.RawURLEncoding.EncodeToString(id)
	for i := range config.Nodes {
		k.nodes = append(k.nodes, &node{
			id:         i + 1,
			clusterID:  clusterID,
			addr:       addrs[2*i],
			controller: addrs[2*i+1],
			dir:        filepath.Join(k.dir, "node-"+strconv.Itoa(i+1)),
		})
	}
	if config.Patches != "" {
		classes, err := k.install.compile(ctx, config.Patches, config.ExtraClasspath)
		if err != nil {
			return k, fmt.Errorf("kafkatest: compiling %s: %w", config.Patches, err)
		}
		k.patches = classes + string(os.PathListSeparator)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range k.nodes {
		group.Go(func() error {
			java := k.java(quickJVM, "warn")
			if err := n.format(ctx, java, config.properties(n, k.nodes)); err != nil {
				return fmt.Errorf("kafkatest: formatting node %d of Apache Kafka %s: %w", n.id, config.Version, err)
			}
			return nil
		})
	}
	return k, group.Wait()
}

// freeAddrs returns addresses that nothing listens on. They are below the range
// that systems pick clients' ports from, so that a stopped node's stays free.
func freeAddrs(n int) ([]string, error) {
	const low, high = 15000, 32000
	addrs := make([]string, 0, n)
	taken := make(map[string]bool)
	for range 100 * n {
		port, err := rand.Int(rand.Reader, big.NewInt(high-low))
		if err != nil {
			return nil, err
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(low+int(port.Int64())))
		listener, err := net.Listen("tcp", addr)
		if err != nil || taken[addr] {
			continue
		}
		listener.Close()
		taken[addr] = true
		if addrs = append(addrs, addr); len(addrs) == n {
			return addrs, nil
		}
	}
	return nil, fmt.Errorf("found no %d free ports from %d to %d on 127.0.0.1", n, low, high)
}

func (k *Kafka) java(options []string, logLevel string) javaCommand {
	return javaCommand{options: options, classpath: k.patches + k.install.classpath(k.config.ExtraClasspath...), logLevel: logLevel}
}

// Version returns the version of Apache Kafka that runs.
func (k *Kafka) Version() string { return k.config.Version }

// Addrs returns the address, host:port, of each node, node 0's first. A node
// keeps its address when it is stopped and started again.
func (k *Kafka) Addrs() []string {
	addrs := make([]string, len(k.nodes))
	for i, n := range k.nodes {
		addrs[i] = n.addr
	}
	return addrs
}

// Bootstrap returns all addresses, with commas between, as Kafka's tools and
// Java clients take them.
func (k *Kafka) Bootstrap() string { return strings.Join(k.Addrs(), ",") }

// LogTail returns the last lines of what node i has logged.
func (k *Kafka) LogTail(i, lines int) string { return tailFile(k.nodes[i].logFile(), lines) }

// Start starts all nodes, each of which must have been stopped or killed, with
// the data they had, and returns when every node serves and knows all others.
func (k *Kafka) Start(ctx context.Context) error {
	return k.start(ctx, k.nodes, len(k.nodes))
}

// StartNode starts node i, counted from 0, with the data it had, and returns
// when it serves. That takes a majority of the cluster's nodes.
func (k *Kafka) StartNode(ctx context.Context, i int) error {
	return k.start(ctx, k.nodes[i:i+1], 1)
}

func (k *Kafka) start(ctx context.Context, nodes []*node, brokers int) error {
	for _, n := range nodes {
		if err := n.launch(k.java(k.config.JVMOptions, "info")); err != nil {
			return fmt.Errorf("kafkatest: starting node %d of Apache Kafka %s: %w", n.id, k.config.Version, err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("gave up after %v", startPatience))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range nodes {
		group.Go(func() error {
			if err := n.ready(ctx, brokers); err != nil {
				return fmt.Errorf("kafkatest: starting node %d of Apache Kafka %s at %s: %w; its log ends:\n%s",
					n.id, k.config.Version, n.addr, err, tailFile(n.logFile(), 40))
			}
			return nil
		})
	}
	return group.Wait()
}

// StopNode has node i, counted from 0, shut down as an operator would, and
// returns when it has ended. Its data stay. It does nothing if the node is not
// running, and returns an error if it had to be killed.
func (k *Kafka) StopNode(i int) error {
	n := k.nodes[i]
	err := n.end(func(p *process) error { return p.stop(stopPatience) })
	if err != nil {
		return fmt.Errorf("kafkatest: stopping node %d: %w; its log ends:\n%s", n.id, err, tailFile(n.logFile(), 20))
	}
	return nil
}

// KillNode ends node i, counted from 0, as kill -9 does, and returns when it has
// ended. Its data stay as they are.
func (k *Kafka) KillNode(i int) {
	k.nodes[i].end(func(p *process) error { p.kill(); return nil })
}

// Stop stops all nodes at once, as [Kafka.StopNode] does one. Their data stay
// until [Kafka.Close].
func (k *Kafka) Stop() error {
	var group errgroup.Group
	for i := range k.nodes {
		group.Go(func() error { return k.StopNode(i) })
	}
	return group.Wait()
}

// Kill ends all nodes as kill -9 does. Their data stay until [Kafka.Close].
func (k *Kafka) Kill() {
	for i := range k.nodes {
		k.KillNode(i)
	}
}

// Close kills all nodes and removes their data, unless they are in Config.Dir. It may
// be called again.
func (k *Kafka) Close() error {
	k.Kill()
	if k.config.Dir != "" {
		return nil
	}
	if err := os.RemoveAll(k.dir); err != nil {
		return fmt.Errorf("kafkatest: removing the data of Apache Kafka: %w", err)
	}
	return nil
}
