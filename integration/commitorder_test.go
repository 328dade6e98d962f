package integration

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// TestOffsetsComeLast: when the group is asked to accept the offsets of a transaction, all
// its records are at the brokers. Who has the tasks by then has read the changelogs up to
// where they ended, and would not see what comes later.
func TestOffsetsComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(kfake.VirtualNetwork)
		broker, err := streamstest.NewBroker(streamstest.WithNetwork(network), streamstest.WithInitialRebalanceDelay(0),
			streamstest.WithKfake(kfake.SeedTopics(2, "in"), kfake.SeedTopics(1, "out")))
		if err != nil {
			t.Fatal(err)
		}
		defer broker.Close()
		client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.Dialer(network.DialContext))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		transactions, late, offsets := 0, 0, false
		broker.Cluster().Fault(kfake.Fault{
			Keys: []kmsg.Key{kmsg.Produce, kmsg.TxnOffsetCommit, kmsg.EndTxn}, Count: -1, Observe: true,
			When: func(req kmsg.Request) bool {
				switch r := req.(type) {
				case *kmsg.ProduceRequest:
					if r.TransactionID != nil && offsets {
						late++
					}
				case *kmsg.TxnOffsetCommitRequest:
					offsets = true
				case *kmsg.EndTxnRequest:
					transactions, offsets = transactions+1, false
				}
				return true
			},
		})
		app, err := streams.NewApp(inMemoryWordCount(), streams.Config{
			ApplicationID: "app", Brokers: broker.Addrs(), ProcessingGuarantee: streams.ExactlyOnceV2, StateStoreCacheMaxBytes: -1,
			ClientOptions: []kgo.Opt{kgo.Dialer(func(ctx context.Context, kind, addr string) (net.Conn, error) {
				conn, err := network.DialContext(ctx, kind, addr)
				return slowProducer{conn}, err
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- app.Run(ctx) }()
		lines, _ := text(200)
		for _, line := range lines {
			if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "in", Value: []byte(line)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(time.Second)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		broker.Close()
		if transactions < 5 || late > 0 {
			t.Errorf("in %d transactions %d requests with records came after the offsets", transactions, late)
		}
	})
}

// slowProducer is a connection on which records take their time.
type slowProducer struct{ net.Conn }

func (c slowProducer) Write(b []byte) (int, error) {
	if len(b) >= 6 && kmsg.Key(binary.BigEndian.Uint16(b[4:])) == kmsg.Produce {
		time.Sleep(20 * time.Millisecond)
	}
	return c.Conn.Write(b)
}
