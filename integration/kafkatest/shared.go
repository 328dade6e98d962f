package kafkatest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// topologyPlugin makes the broker ask streams group members for descriptions
// of their topologies, and keeps what they answer (KIP-1331).
const topologyPlugin = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"

var shared struct {
	sync.Mutex
	main    bool // Main runs, so there is someone to end the broker
	started bool
	kafka   *Kafka
	err     error
}

// Shared returns the one-node cluster that all tests of the test binary share,
// starting it on first use. It calls [Require] first. The binary's TestMain has
// to be [Main]. Topics and groups of other tests are on it, so tests name
// theirs uniquely, and stop nothing.
//
// It has the default configuration (see [Config]), with the broker asking
// members for topology descriptions.
func Shared(t testing.TB) *Kafka {
	t.Helper()
	Require(t)
	shared.Lock()
	defer shared.Unlock()
	if !shared.main {
		t.Fatal("kafkatest: Shared needs func TestMain(m *testing.M) { kafkatest.Main(m) } in this package")
	}
	if !shared.started {
		shared.started = true
		shared.kafka, shared.err = Start(context.Background(), Config{
			BrokerConfig: map[string]string{"group.streams.topology.description.plugin.class": topologyPlugin},
		})
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.kafka
}

// Main is the TestMain of a package whose tests use [Shared]. It runs the
// tests, ends the shared cluster, and exits the process: with the tests' code,
// or 1 if they passed but left goroutines behind or the cluster could not be
// ended.
func Main(m *testing.M) {
	shared.Lock()
	shared.main = true
	shared.Unlock()

	code := m.Run()

	shared.Lock()
	kafka := shared.kafka
	shared.Unlock()
	if kafka != nil {
		if err := kafka.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "kafkatest: goroutines left after all tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}
