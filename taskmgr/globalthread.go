package taskmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// GlobalConfig describes what keeps the global stores of an instance.
type GlobalConfig struct {
	Topology *GlobalTopology

	// Client are the options of the client: seed brokers, TLS, SASL.
	Client []kgo.Opt

	// ClientID names it to the broker, and in logs.
	ClientID string

	// Directory and Disk are where persistent stores are; nil where there are none.
	Directory *Directory
	Disk      *state.Disk

	// Readable is where others find the stores; nil: they don't.
	Readable *state.Registry

	// CommitInterval is how often the stores are checkpointed.
	CommitInterval time.Duration

	// ReadCommitted has the topics' transactions read that are committed, and no others.
	ReadCommitted bool

	// OnRecordError is asked about a record that could not be processed, as
	// Config.OnRecordError.
	OnRecordError func(task membership.TaskID, rec *kgo.Record, err error, out Collector) error

	// Logger takes what there is to say; never nil.
	Logger *slog.Logger
}

// GlobalThread keeps the global stores of an instance current with their topics.
type GlobalThread struct {
	cfg    GlobalConfig
	log    *slog.Logger
	client *kgo.Client
	out    *producer
	state  *GlobalState

	readable []*state.Readable // what others have been told of
}

// NewGlobalThread opens the global stores. They are empty, or as they were at their
// last checkpoint, until Bootstrap has returned.
func NewGlobalThread(ctx context.Context, cfg GlobalConfig) (*GlobalThread, error) {
	opts := append(slices.Clone(cfg.Client),
		kgo.ClientID(cfg.ClientID),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepControlRecords(),
		kgo.RecordPartitioner(Partitioner()),
	)
	if cfg.ReadCommitted {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	g := &GlobalThread{cfg: cfg, log: cfg.Logger.With("thread", cfg.ClientID), client: client, out: newProducer(ctx, client, nil, nil)}
	if err := g.open(false); err != nil {
		client.Close()
		return nil, err
	}
	return g, nil
}

// open opens the stores; what is damaged on disk is read again.
func (g *GlobalThread) open(fresh bool) (err error) {
	dir := ""
	if g.cfg.Directory != nil {
		dir = filepath.Join(g.cfg.Directory.path, "global")
	}
	g.state, err = OpenGlobalState(g.cfg.Topology, dir, g.cfg.Disk, fresh, g.out, g.cfg.OnRecordError)
	if !fresh && errors.Is(err, state.ErrCorrupt) {
		g.log.Warn("the global stores are read anew, because their files are damaged", "err", err)
		return g.open(true)
	}
	return err
}

// State are the global stores.
func (g *GlobalThread) State() *GlobalState { return g.state }

// Bootstrap reads the topics up to where they end now. It is called once, before
// Run.
func (g *GlobalThread) Bootstrap(ctx context.Context) error {
	starts, ends, err := g.list(ctx)
	if err != nil {
		return err
	}
	for _, start := range starts.Offsets().Sorted() {
		at, ok := g.state.positions[start.Topic][start.Partition]
		end, _ := ends.Lookup(start.Topic, start.Partition)
		if ok && (at < start.At || at > end.Offset) {
			g.log.Warn("the global stores are read anew: a topic no longer has where they are",
				"topic", start.Topic, "partition", start.Partition, "position", at, "start", start.At, "end", end.Offset)
			if err := errors.Join(g.state.Close(), g.open(true)); err != nil {
				return err
			}
			break
		}
	}
	consume := make(map[string]map[int32]kgo.Offset)
	left := make(map[changelogKey]int64) // the ends of partitions that are behind them
	for _, start := range starts.Offsets().Sorted() {
		at := start.At
		if position, ok := g.state.positions[start.Topic][start.Partition]; ok {
			at = position
		}
		if consume[start.Topic] == nil {
			consume[start.Topic] = make(map[int32]kgo.Offset)
		}
		consume[start.Topic][start.Partition] = kgo.NewOffset().At(at)
		if end, _ := ends.Lookup(start.Topic, start.Partition); at < end.Offset {
			left[changelogKey{start.Topic, start.Partition}] = end.Offset
		}
	}
	g.client.AddConsumePartitions(consume)
	began := time.Now()
	for len(left) > 0 {
		err := g.poll(ctx, func(topic string, partition int32, next int64) {
			key := changelogKey{topic, partition}
			if end, ok := left[key]; ok && next >= end {
				delete(left, key)
			}
		})
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	g.log.Info("the global stores are complete", "topics", g.cfg.Topology.Topics, "took", time.Since(began))
	if err := g.checkpoint(); err != nil {
		return err
	}
	if g.cfg.Readable != nil {
		g.readable = g.state.readables()
		g.cfg.Readable.Add(g.readable...)
	}
	return nil
}

func (g *GlobalThread) checkpoint() error {
	g.state.gate.Lock()
	defer g.state.gate.Unlock()
	return g.state.Checkpoint()
}

// list looks up where the topics start and end. A topic may be on its way.
func (g *GlobalThread) list(ctx context.Context) (starts, ends kadm.ListedOffsets, err error) {
	adm := kadm.NewClient(g.client)
	names := g.cfg.Topology.Topics
	err = backoff.Retry(func() (err error) {
		if starts, err = adm.ListStartOffsets(ctx, names...); err == nil {
			err = starts.Error()
		}
		if err == nil {
			if ends, err = listEnds(ctx, adm, g.cfg.ReadCommitted, names); err == nil {
				err = ends.Error()
			}
		}
		if err != nil && !kerr.IsRetriable(err) && !retriable(err) {
			return backoff.Permanent(err)
		}
		return err
	}, retries(ctx, listTimeout))
	if err != nil {
		return nil, nil, fmt.Errorf("list the offsets of the topics of global stores, %v, which must exist: %w", names, err)
	}
	return starts, ends, nil
}

// Run keeps the stores current until ctx ends, and closes them. It returns the error
// that stopped it, if one did.
func (g *GlobalThread) Run(ctx context.Context) error {
	checkpointAt := time.Now().Add(g.cfg.CommitInterval)
	for ctx.Err() == nil {
		wait, cancel := context.WithDeadline(ctx, checkpointAt)
		err := g.poll(wait, func(string, int32, int64) {})
		cancel()
		if err != nil {
			return errors.Join(err, g.Close())
		}
		if now := time.Now(); !now.Before(checkpointAt) {
			checkpointAt = now.Add(g.cfg.CommitInterval)
			if err := cmp.Or(g.checkpoint(), g.out.flush(ctx)); err != nil && ctx.Err() == nil {
				return errors.Join(err, g.Close())
			}
		}
	}
	return errors.Join(g.checkpoint(), g.Close())
}

// Close closes the stores as they were at their last checkpoint. Run does so itself.
func (g *GlobalThread) Close() error {
	g.client.Close()
	if g.cfg.Readable != nil {
		g.cfg.Readable.Remove(g.readable...)
	}
	g.state.gate.Lock()
	defer g.state.gate.Unlock()
	return g.state.Close()
}

// poll processes what is fetched until ctx ends, and tells how far each partition
// is.
func (g *GlobalThread) poll(ctx context.Context, at func(topic string, partition int32, next int64)) (err error) {
	defer recovered(&err)
	fetches := g.client.PollRecords(ctx, maxPollRecords)
	fetches.EachError(func(topic string, partition int32, e error) {
		switch {
		case errors.Is(e, context.Canceled), errors.Is(e, context.DeadlineExceeded), errors.Is(e, kgo.ErrClientClosed):
		case retriable(e):
			g.log.Warn("reading the topic of a global store met an error", "topic", topic, "partition", partition, "err", e)
		default:
			err = errors.Join(err, fmt.Errorf("read the topic of a global store, %s-%d: %w", topic, partition, e))
		}
	})
	g.state.gate.Lock()
	defer g.state.gate.Unlock()
	g.state.SetSystemTime(time.Now().UnixMilli())
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		for _, rec := range p.Records {
			g.state.gate.Yield()
			if err == nil && !rec.Attrs.IsControl() {
				err = g.state.Process(rec)
			}
		}
		if n := len(p.Records); n > 0 && err == nil {
			at(p.Topic, p.Partition, p.Records[n-1].Offset+1)
		}
	})
	if err == nil {
		err = g.out.err()
	}
	return err
}
