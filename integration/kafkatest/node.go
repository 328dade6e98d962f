package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// stopPatience is how long a node has for a controlled shutdown.
const stopPatience = 30 * time.Second

// node is one broker and controller; its folder outlives its processes.
type node struct {
	id         int
	clusterID  string
	addr       string // where clients connect
	controller string // where controllers connect
	dir        string

	mu   sync.Mutex // guards starting and ending
	proc *process   // nil before the first start
}

func (n *node) dataDir() string    { return filepath.Join(n.dir, "data") }
func (n *node) configFile() string { return filepath.Join(n.dir, "server.properties") }
func (n *node) logFile() string    { return filepath.Join(n.dir, "broker.log") }

// format writes the node's configuration and prepares its data folder.
func (n *node) format(ctx context.Context, java javaCommand, properties string) error {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(n.configFile(), []byte(properties), 0o644); err != nil {
		return err
	}
	_, err := run(java.cmd(ctx, "kafka.tools.StorageTool", "format", "-t", n.clusterID, "-c", n.configFile()))
	return err
}

// launch starts the node's process and does not wait until it serves.
func (n *node) launch(java javaCommand) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil && n.proc.running() {
		return errors.New("it is running")
	}
	log, err := os.OpenFile(n.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := java.cmd(context.Background(), "kafka.Kafka", n.configFile())
	cmd.Stdout, cmd.Stderr = log, log
	n.proc, err = startProcess(cmd)
	return err
}

// ready waits until the node answers and knows of at least so many brokers,
// itself among them.
func (n *node) ready(ctx context.Context, brokers int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(n.addr), kgo.DialTimeout(2*time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	n.mu.Lock()
	proc := n.proc
	n.mu.Unlock()
	for {
		notReady := n.probe(ctx, client, brokers)
		if notReady == nil {
			return nil
		}
		select {
		case <-proc.done:
			return fmt.Errorf("the broker ended: %w", exitError(proc.err))
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w: %w", context.Cause(ctx), notReady)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (n *node) probe(ctx context.Context, client *kgo.Client, brokers int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; null would be all
	resp, err := client.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return err
	}
	metadata := resp.(*kmsg.MetadataResponse)
	if metadata.ClusterID == nil || *metadata.ClusterID != n.clusterID {
		return fmt.Errorf("another cluster answers at %s", n.addr)
	}
	var self bool
	seen := metadata.Brokers
	for _, broker := range seen {
		self = self || broker.NodeID == int32(n.id)
	}
	if !self || len(seen) < brokers {
		return fmt.Errorf("it knows of %d brokers, itself: %t; want %d", len(seen), self, brokers)
	}
	return nil
}

// end ends the node's process, if it runs, in the given way.
func (n *node) end(how func(*process) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil || !n.proc.running() {
		return nil
	}
	return how(n.proc)
}

func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// javaCommand is how a JVM is run: its options and class path.
type javaCommand struct {
	options   []string
	classpath string
	logLevel  string // of Kafka's logging, which goes to standard error
}

func (j javaCommand) cmd(ctx context.Context, class string, args ...string) *exec.Cmd {
	all := append([]string{}, j.options...)
	all = append(all,
		"-Dorg.slf4j.simpleLogger.defaultLogLevel="+j.logLevel,
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-cp", j.classpath, class)
	return exec.CommandContext(ctx, "java", append(all, args...)...)
}
