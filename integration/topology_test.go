package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/serde"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/streams"
	"github.com/odradek-go/odradek/taskmgr"
)

// longest keeps the longest value seen of each first letter.
type longest struct {
	ctx   *streams.ProcessorContext[string, string]
	store *state.TimestampedKeyValue[string, string]
}

func (l *longest) Init(ctx *streams.ProcessorContext[string, string]) (err error) {
	l.ctx = ctx
	l.store, err = streams.GetStore[*state.TimestampedKeyValue[string, string]](ctx, "longest")
	return err
}

func (l *longest) Process(r streams.Record[string, string]) error {
	if r.Value == "fail" {
		return errFail
	}
	if r.Value == "panic" {
		panic("no")
	}
	best, _, _, err := l.store.Get(r.Value[:1])
	if err != nil || len(r.Value) <= len(best) {
		return err
	}
	if err := l.store.Put(r.Value[:1], r.Value, r.Timestamp); err != nil {
		return err
	}
	r.Key, r.KeyNull = r.Value[:1], false
	return l.ctx.ForwardTo("sink", r)
}

func (l *longest) Close() error { return nil }

var errFail = errors.New("told to fail")

func longestTopology(in, out string) *streams.Topology {
	t := streams.NewTopology()
	streams.AddSource(t, "source", streams.Consumed[string, string]{}, in)
	streams.AddProcessor(t, "longest", func() streams.Processor[string, string, string, string] { return &longest{} }, "source")
	streams.AddSink(t, "sink", out, streams.Produced[string, string]{}, "longest")
	t.AddStateStore(streams.NewTimestampedKeyValueStore("longest", serde.String, serde.String), "longest")
	return t
}

// received waits until a topic has exactly these values, in this order.
func (c *cluster) received(t *testing.T, topic string, want ...string) {
	t.Helper()
	eventually(t, "the output", func() error {
		var got []string
		for _, r := range c.read(t, topic) {
			got = append(got, string(r.Value))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
}

// processorAPI: a topology of sources, processors and sinks keeps its state over
// a restart.
func processorAPI(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	app := c.start(t, longestTopology(in, out))
	c.produce(t, in, "a", "b", "abc", "ab")
	c.received(t, out, "a", "b", "abc")
	if err := app.stop(); err != nil {
		t.Fatal(err)
	}
	c.start(t, longestTopology(in, out))
	c.produce(t, in, "xy", "ab", "bcd")
	c.received(t, out, "a", "b", "abc", "xy", "bcd")
}

// failingRecord: a record that can't be processed stops the application with an
// error that names it, and nothing behind it is committed.
func failingRecord(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	c.produce(t, in, "a", "fail", "b")
	for range 2 {
		app := c.start(t, longestTopology(in, out))
		err := app.ended(t)
		var te *taskmgr.TaskError
		if !errors.Is(err, errFail) || !errors.As(err, &te) || te.Topic != in || te.Offset != 1 || te.Task != (membership.TaskID{Subtopology: "0"}) {
			t.Fatalf("ended with %v", err)
		}
		if app.app.State() != streams.Error {
			t.Errorf("is %v", app.app.State())
		}
	}
}

// panicking: a panic of a processor is an error of Run.
func panicking(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	c.produce(t, in, "panic")
	err := c.start(t, longestTopology(in, out)).ended(t)
	var pe *taskmgr.PanicError
	if !errors.As(err, &pe) || pe.Value != "no" || !strings.Contains(string(pe.Stack), "longest") {
		t.Errorf("ended with %v", err)
	}
}

// missingSourceTopic: the error names the topic, and no task runs meanwhile.
func missingSourceTopic(t *testing.T, c *cluster) {
	out := c.topic(t, "out", 1)
	app := c.start(t, wordCountTopology(c.id+"-nowhere", out))
	err := app.ended(t)
	var missing *membership.MissingSourceTopicsError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), c.id+"-nowhere") {
		t.Errorf("ended with %v", err)
	}
}

// otherTopology: a second application under the id of a running one is refused,
// and the first one does not notice.
func otherTopology(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	first := c.start(t, longestTopology(in, out))
	running(t, first)
	if err := c.start(t, wordCountTopology(in, out)).ended(t); !errors.Is(err, membership.ErrTopologyMismatch) {
		t.Errorf("the other one ended with %v", err)
	}
	c.produce(t, in, "a")
	c.received(t, out, "a")
}

// groupIsDescribed: the broker knows the group as a streams group with the
// topology that it was sent.
func groupIsDescribed(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 2), c.topic(t, "out", 1)
	app := c.start(t, wordCountTopology(in, out), func(cfg *streams.Config) { cfg.NumStreamThreads = 2 })
	running(t, app)
	eventually(t, "a stable group", func() error {
		group, err := c.describe(t)
		if err != nil {
			return err
		}
		if group.State != "Stable" || len(group.Members) != 2 {
			return fmt.Errorf("it is %s with %d members", group.State, len(group.Members))
		}
		subs := group.Topology.Subtopologies
		if len(subs) != 2 || subs[0].SourceTopics[0] != in || subs[1].RepartitionSourceTopics[0].Topic != c.id+"-words-repartition" ||
			subs[1].StateChangelogTopics[0].Topic != c.id+"-counts-changelog" {
			return fmt.Errorf("its topology is %+v", subs)
		}
		tasks := make(map[string]int)
		for _, m := range group.Members {
			if m.ProcessID != group.Members[0].ProcessID {
				return errors.New("members of one process have two process ids")
			}
			for _, ids := range m.Assignment.ActiveTasks {
				for _, p := range ids.Partitions {
					tasks[fmt.Sprintf("%s_%d", ids.SubtopologyID, p)]++
				}
			}
		}
		for _, owners := range tasks {
			if owners != 1 {
				return fmt.Errorf("tasks are assigned as %v", tasks)
			}
		}
		if len(tasks) != 4 {
			return fmt.Errorf("tasks are assigned as %v", tasks)
		}
		return nil
	})
	if err := app.stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an empty group", func() error {
		group, err := c.describe(t)
		if err == nil && (group.State != "Empty" || len(group.Members) > 0) {
			err = fmt.Errorf("it is %s with %d members", group.State, len(group.Members))
		}
		return err
	})
}

// topologyDescription: the broker asks for the topology's description and gives
// it back; an application that is told not to keeps it to itself.
func topologyDescription(t *testing.T, c *cluster) {
	in, out := c.topic(t, "in", 1), c.topic(t, "out", 1)
	shy := *c
	shy.id += "-shy"
	running(t, c.start(t, wordCountTopology(in, out)), shy.start(t, wordCountTopology(in, out), func(cfg *streams.Config) {
		cfg.TopologyDescriptionPushDisabled = true
	}))
	eventually(t, "the topology's description", func() error {
		group, err := c.describe(t)
		if err != nil {
			return err
		}
		d := group.TopologyDescription
		if d == nil || len(d.Subtopologies) != 2 {
			return fmt.Errorf("it is %+v", d)
		}
		stores := make(map[string][]string)
		for _, sub := range d.Subtopologies {
			for _, n := range sub.Nodes {
				stores[n.Name] = n.Stores
			}
		}
		if want := "KSTREAM-AGGREGATE-0000000003"; len(stores) != 9 || len(stores[want]) != 1 || stores[want][0] != "counts" {
			return fmt.Errorf("its nodes and stores are %v", stores)
		}
		return nil
	})
	if group, err := shy.describe(t); err != nil || group.TopologyDescription != nil {
		t.Errorf("the broker has the description %+v (%v) of an application that does not send it", group.TopologyDescription, err)
	}
}

// describe asks the group's coordinator, which kgo can't find for this request.
func (c *cluster) describe(t *testing.T) (*kmsg.StreamsGroupDescribeResponseGroup, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	found := c.adm.FindGroupCoordinators(ctx, c.id)
	if err := found.Error(); err != nil {
		return nil, fmt.Errorf("find the coordinator: %w", err)
	}
	req := kmsg.NewPtrStreamsGroupDescribeRequest()
	req.Groups = []string{c.id}
	req.IncludeTopologyDescription = true
	resp, err := c.client.Broker(int(found[c.id].NodeID)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	group := resp.(*kmsg.StreamsGroupDescribeResponse).Groups[0]
	if group.ErrorCode != 0 {
		return nil, fmt.Errorf("describe: error %d", group.ErrorCode)
	}
	return &group, nil
}
