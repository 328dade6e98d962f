package streams_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	. "github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/streamstest"
)

var anyLetter = regexp.MustCompile("in-[a-z]")

// copyMatching copies all topics in-[a-z] to the topic "out".
func copyMatching(b *Builder) *Topology {
	StreamMatching[string, string](b, anyLetter).To("out")
	return b.Build()
}

// TestPatternSource: topics that match are read, those that come later too; others
// are not.
func TestPatternSource(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		create := func(topic string) {
			t.Helper()
			if err := w.broker.Cluster().CreateTopic(topic, 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		put := func(topics ...string) {
			t.Helper()
			for _, topic := range topics {
				r := &kgo.Record{Topic: topic, Value: []byte(topic)}
				if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
		}
		create("in-a")
		create("in-22")
		put("in-a", "in-22")
		stop := w.start(t, copyMatching(NewBuilder()))
		time.Sleep(10 * time.Second)
		put("in-a")
		create("in-b")
		put("in-b", "in-a", "in-b")
		if err := stop(); err != nil {
			t.Errorf("ended with %v", err)
		}
		create("in-c")
		put("in-c")
		stop = w.start(t, copyMatching(NewBuilder())) // goes on where it was
		put("in-a", "in-b")
		if err := stop(); err != nil {
			t.Errorf("ended with %v", err)
		}
		var got []string
		for _, r := range w.consume(t, "out") {
			got = append(got, strings.TrimPrefix(string(r.Value), "in-"))
		}
		slices.Sort(got)
		if want := "[a a a a b b b c]"; fmt.Sprint(got) != want {
			t.Errorf("read %v, want %s", got, want)
		}
	}, streamstest.WithSourceTopicRegex())
}

// TestPatternUnsupported: Kafka 4.4 takes no patterns, which is said.
func TestPatternUnsupported(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		stop := w.start(t, copyMatching(NewBuilder()))
		time.Sleep(10 * time.Second)
		if err := stop(); !errors.Is(err, membership.ErrPatternsUnsupported) {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestPatternsOverlap: a topic that several sources would read is an error.
func TestPatternsOverlap(t *testing.T) {
	simulate(t, func(t *testing.T, w *world) {
		b := NewBuilder()
		StreamMatching[string, string](b, regexp.MustCompile("in-a|x")).To("out")
		stop := w.start(t, copyMatching(b))
		time.Sleep(10 * time.Second)
		if err := stop(); err == nil || !strings.Contains(err.Error(), `topic "in-a" matches the patterns or names of 2 sources`) {
			t.Errorf("ended with %v", err)
		}
	}, streamstest.WithSourceTopicRegex(), streamstest.WithKfake(kfake.SeedTopics(1, "in-a")))
}

// TestPatternJoin: a stream of a pattern is copartitioned with what it is joined with,
// and used twice it is one source.
func TestPatternJoin(t *testing.T) {
	b := NewBuilder()
	JoinTable(StreamMatching[string, string](b, anyLetter), Table[string, string](b, "table"), concat).To("joined")
	StreamMatching[string, string](b, anyLetter).To("out")
	sub := compile(t, b.Build()).Heartbeat.Subtopologies[0]
	if !slices.Equal(sub.SourceTopicRegex, []string{"in-[a-z]"}) || !slices.Equal(sub.SourceTopics, []string{"table"}) {
		t.Errorf("reads %q and %q", sub.SourceTopicRegex, sub.SourceTopics)
	}
	if got := fmt.Sprint(sub.CopartitionGroups); got != "[{[0] [0] [] {map[]}}]" {
		t.Errorf("copartitioned are %s", got)
	}

	d := streamstest.NewDriver(t, b.Build())
	streamstest.NewInputTopic[string, string](d, "table").Pipe("k", "right")
	for _, topic := range []string{"in-a", "in-b"} {
		streamstest.NewInputTopic[string, string](d, topic).Pipe("k", topic)
	}
	if got := streamstest.NewOutputTopic[string, string](d, "joined").ReadValues(); !slices.Equal(got, []string{"in-aright", "in-bright"}) {
		t.Errorf("joined are %q", got)
	}
	if err := d.TryPipe(&kgo.Record{Topic: "in-aa"}); err == nil || !strings.Contains(err.Error(), `["in-a" "in-b" "table" "in-[a-z]"]`) {
		t.Errorf("%v does not say what is read", err)
	}
}
