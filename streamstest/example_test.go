package streamstest_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/streamstest"
)

// A broker with a topic, for the application under test to join.
func ExampleNewBroker() {
	broker, err := streamstest.NewBroker(
		streamstest.WithKfake(kfake.SeedTopics(3, "orders")),
		streamstest.WithStandbyReplicas(1),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer broker.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("tea")}).FirstErr(); err != nil {
		log.Fatal(err)
	}

	// Start the application with broker.Addrs() here, and wait for it with
	// broker.WaitStable(ctx, "my-application", 1).
	_, running := broker.Group("my-application")
	fmt.Println("running:", running)
	// Output: running: false
}
