package demo

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

// copying is a program that copies a topic.
func copying() Program {
	return Program{
		Name: "copying", Partitions: 2, Inputs: []string{"in"},
		Outputs: []Output{Print("out", serde.String, serde.String, func(r streams.Record[string, string]) string { return r.Key + r.Value })},
		Sample: func(now time.Time) ([][]*kgo.Record, error) {
			first, err1 := JSON("in", "a", 1, now)
			second, err2 := JSON("in", "b", 2, now)
			return [][]*kgo.Record{{first}, {second}}, errors.Join(err1, err2)
		},
		Run: func(ctx context.Context, cfg streams.Config) error {
			b := streams.NewBuilder()
			streams.Stream[string, string](b, "in").To("out")
			app, err := streams.NewApp(b.Build(), cfg)
			if err != nil {
				return err
			}
			return app.Run(ctx)
		},
	}
}

func TestEmbedded(t *testing.T) {
	var out strings.Builder
	if err := Run(t.Context(), copying(), nil, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if want := "<- in: a 1\n-> out: a1\n<- in: b 2\n-> out: b2\n"; out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

// TestOnCluster: with -brokers the program runs until it is told to stop.
func TestOnCluster(t *testing.T) {
	broker, err := streamstest.NewBroker()
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	read, write := io.Pipe()
	var done error
	go func() {
		done = Run(ctx, copying(), []string{"-brokers", strings.Join(broker.Addrs(), ","), "-feed"}, write, io.Discard)
		write.Close()
	}()
	lines := make([]byte, len("-> out: a1\n-> out: b2\n"))
	if _, err := io.ReadFull(read, lines); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := io.Copy(io.Discard, read); err != nil {
		t.Fatal(err)
	}
	if done != nil {
		t.Errorf("ended with %v", done)
	}
}

// TestFailure: an application that fails ends the program with its error.
func TestFailure(t *testing.T) {
	p := copying()
	p.Run = func(context.Context, streams.Config) error { return errors.New("no luck") }
	if err := Run(t.Context(), p, nil, io.Discard, io.Discard); err == nil || err.Error() != "no luck" {
		t.Errorf("ended with %v", err)
	}
}

func TestUsage(t *testing.T) {
	var help strings.Builder
	if err := Run(t.Context(), copying(), []string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-brokers") {
		t.Errorf("got %v, %s", err, help.String())
	}
	if err := Run(t.Context(), copying(), []string{"-what"}, io.Discard, io.Discard); !errors.Is(err, errUsage) {
		t.Errorf("got %v", err)
	}
	if err := Run(t.Context(), copying(), []string{"what"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), `"what"`) {
		t.Errorf("got %v", err)
	}
}

// TestNoBroker: an address where nobody answers is in the error.
func TestNoBroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := Run(ctx, copying(), []string{"-brokers", address}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v", err)
	}
}
