package mirror

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Client reads and writes the states of mirrors. It can be used by several
// goroutines at once.
type Client struct {
	kafka *kgo.Client
	cfg   Config

	mu        sync.Mutex
	answers   map[string]int32          // the broker that answered last, by mirror
	announces map[announcement]struct{} // requests that brokers are known to announce
}

type announcement struct {
	broker int32
	key    int16
}

// NewClient returns a client that sends its requests with kafka, which must have
// been made with [Keys.ClientOption], and stays the caller's to close. The error is
// [ErrConfig].
func NewClient(kafka *kgo.Client, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if !cfg.Keys.sentBy(kafka) {
		return nil, fmt.Errorf("%w: the Kafka client refuses requests with the API keys %d and %d; make it with Keys.ClientOption", ErrConfig, cfg.Keys.ReadMirrorStates, cfg.Keys.WriteMirrorStates)
	}
	return &Client{
		kafka:     kafka,
		cfg:       cfg,
		answers:   make(map[string]int32),
		announces: make(map[announcement]struct{}),
	}, nil
}

// Read returns the states of a mirror's topics with all their partitions; of all
// its topics if none are named.
//
// With an error, what was answered without one is returned too. The error is
// [PartitionError]s, one for each partition that has one, or one for all: that of
// the request, [ErrUnsupported], or that of the connection.
func (c *Client) Read(ctx context.Context, mirror string, topics ...string) (States, error) {
	return c.read(ctx, mirror, wholeTopics(topics), len(topics) == 0, true)
}

// ReadPartitions returns the states of partitions. A topic without partitions is
// read with all it has. Errors are those of [Client.Read].
func (c *Client) ReadPartitions(ctx context.Context, mirror string, partitions map[string][]int32) (States, error) {
	var slots []slot
	for topic, ps := range partitions {
		if len(ps) == 0 {
			slots = append(slots, slot{topic, wholeTopic})
		}
		for _, p := range ps {
			slots = append(slots, slot{topic, p})
		}
	}
	return c.read(ctx, mirror, sortSlots(slots), false, true)
}

// Topics returns which topics a mirror has, sorted, without the states of their
// partitions: of all its topics, or of those named. Errors are those of
// [Client.Read].
func (c *Client) Topics(ctx context.Context, mirror string, topics ...string) ([]string, error) {
	states, err := c.read(ctx, mirror, wholeTopics(topics), len(topics) == 0, false)
	return slices.Sorted(maps.Keys(states)), err
}

// Write sets the states of partitions. They are written in batches, so that after
// an error some may have been set and others not; writing them once more does no
// harm. The error is [PartitionError]s or one for all, as that of [Client.Read].
func (c *Client) Write(ctx context.Context, mirror string, states States) error {
	var slots []slot
	for topic, partitions := range states {
		for partition, p := range partitions {
			if _, ok := c.cfg.States.number(p.State); !ok {
				return fmt.Errorf("%w: States has no number for the state %s of %s-%d", ErrConfig, p.State, topic, partition)
			}
			slots = append(slots, slot{topic, partition})
		}
	}
	return c.inBatches(sortSlots(slots), func(slots []slot) error {
		b := batch{op: "write", mirror: mirror, pending: slots}
		err := c.exchange(ctx, mirror, c.cfg.Keys.WriteMirrorStates,
			func() kmsg.Request { return c.writeRequest(&b, states) },
			func(resp kmsg.Response) error { return b.takeWritten(resp.(*WriteMirrorStatesResponse)) })
		return b.close(err)
	})
}

// Remove takes topics out of a mirror, with their states. Removing what isn't
// there does no harm.
func (c *Client) Remove(ctx context.Context, mirror string, topics ...string) error {
	return c.inBatches(wholeTopics(topics), func(slots []slot) error {
		return c.exchange(ctx, mirror, c.cfg.Keys.WriteMirrorStates,
			func() kmsg.Request {
				req := NewWriteMirrorStatesRequest(c.cfg.Keys, mirror)
				for _, s := range slots {
					req.RemovedTopics = append(req.RemovedTopics, s.topic)
				}
				return req
			},
			func(resp kmsg.Response) error { return errorForCode(resp.(*WriteMirrorStatesResponse).ErrorCode) })
	})
}

func (c *Client) read(ctx context.Context, mirror string, slots []slot, all, partitions bool) (States, error) {
	states := make(States)
	read := func(slots []slot) error {
		b := batch{op: "read", mirror: mirror, pending: slots, all: all}
		err := c.exchange(ctx, mirror, c.cfg.Keys.ReadMirrorStates,
			func() kmsg.Request { return c.readRequest(&b, partitions) },
			func(resp kmsg.Response) error {
				return b.takeRead(resp.(*ReadMirrorStatesResponse), c.cfg.States, states)
			})
		return b.close(err)
	}
	if all {
		return states, read(nil)
	}
	return states, c.inBatches(slots, read)
}

func (c *Client) readRequest(b *batch, partitions bool) *ReadMirrorStatesRequest {
	req := NewReadMirrorStatesRequest(c.cfg.Keys, b.mirror)
	req.NeedPartitionStates = partitions
	req.Topics = topicsOf(b.pending, func(s slot) ReadPartition {
		return ReadPartition{PartitionIndex: s.partition}
	})
	return req
}

func (c *Client) writeRequest(b *batch, states States) *WriteMirrorStatesRequest {
	req := NewWriteMirrorStatesRequest(c.cfg.Keys, b.mirror)
	req.Topics = topicsOf(b.pending, func(s slot) WritePartition {
		p := states[s.topic][s.partition]
		number, _ := c.cfg.States.number(p.State)
		return WritePartition{PartitionIndex: s.partition, LastMirroredOffset: p.LastMirroredOffset, State: number}
	})
	return req
}

// topicsOf puts slots, which are sorted, into topics.
func topicsOf[P any](slots []slot, partition func(slot) P) []Topic[P] {
	var topics []Topic[P]
	for _, s := range slots {
		if len(topics) == 0 || topics[len(topics)-1].Name != s.topic {
			topics = append(topics, Topic[P]{Name: s.topic})
		}
		if t := &topics[len(topics)-1]; s.partition != wholeTopic {
			t.Partitions = append(t.Partitions, partition(s))
		}
	}
	return topics
}

func wholeTopics(topics []string) []slot {
	slots := make([]slot, len(topics))
	for i, t := range topics {
		slots[i] = slot{t, wholeTopic}
	}
	return sortSlots(slots)
}

// sortSlots sorts slots and takes out those that are there twice.
func sortSlots(slots []slot) []slot {
	slices.SortFunc(slots, func(a, b slot) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
	return slices.Compact(slots)
}
