package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// Queries answers interactive queries of the application's stores (KIP-67): of those
// that are here, and by asking other instances of those that are elsewhere, for which
// these need an ApplicationServer and a server there, such as with
// Config.Queries.Listen. It is always the same one, and may be used before Run and
// after.
//
// Processors must not ask for stores of their own task: they have them.
func (a *App) Queries() *iq.Service {
	a.queries.want()
	return a.queries.service
}

// queries is what an application has for interactive queries.
type queries struct {
	service  *iq.Service
	registry state.Registry
	stores   []iq.StoreInfo
	changed  chan struct{} // has an element when there is something new below

	running atomic.Bool
	client  atomic.Pointer[kgo.Client] // nil: not running

	mu        sync.Mutex
	wanted    bool // somebody asks
	epoch     int32
	endpoints []membership.EndpointPartitions
}

func newQueries(t *Topology, cfg Config) (*queries, error) {
	self, err := cfg.endpoint()
	if err != nil {
		return nil, err
	}
	q := &queries{stores: t.storeInfos(cfg), changed: make(chan struct{}, 1), epoch: -1}
	options := cfg.Queries
	orDefault(&options.Logger, cfg.Logger)
	q.wanted = options.Listen
	q.service = iq.New(iq.Config{
		Options: options, Self: self, Stores: q.stores, Registry: &q.registry,
		Running:    q.whyNot,
		EndOffsets: q.endOffsets,
	})
	return q, nil
}

var errNotRun = errors.New("Run is not under way")

func (q *queries) whyNot() error {
	if q.running.Load() {
		return nil
	}
	return errNotRun
}

func (q *queries) want() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.wanted {
		q.wanted = true
		q.wake()
	}
}

// endpointsChanged takes over what a member has been told. Members are told the same,
// one after the other.
func (q *queries) endpointsChanged(epoch int32, endpoints []membership.EndpointPartitions) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.epoch, q.endpoints = epoch, endpoints
	q.wake()
}

func (q *queries) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

func (q *queries) known() (epoch int32, endpoints []membership.EndpointPartitions, wanted bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.epoch, q.endpoints, q.wanted
}

const (
	// partitionsAge is for how long the numbers of partitions count as known, as
	// Java's metadata.max.age.ms.
	partitionsAge = 5 * time.Minute

	// queryTimeout bounds a request for metadata or offsets.
	queryTimeout = 10 * time.Second
)

// runQueries keeps the router current, and the server listening if that is wanted,
// until ctx ends.
func (a *App) runQueries(ctx context.Context) error {
	q := a.queries
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	client, err := kgo.NewClient(append(a.cfg.clientOptions(), kgo.ClientID(a.cfg.ClientID+"-queries"))...)
	if err != nil {
		return err
	}
	defer client.Close()
	q.client.Store(client)
	defer q.client.Store(nil)
	q.running.Store(true)
	defer q.running.Store(false)
	var group errgroup.Group
	group.Go(func() error { q.keepRouter(ctx, kadm.NewClient(client), a.cfg.Logger); return nil })
	if a.cfg.Queries.Listen {
		if err = q.service.Serve(ctx); err != nil {
			err = fmt.Errorf("answer interactive queries: %w", err)
		}
		stop()
	}
	return errors.Join(err, group.Wait())
}

// keepRouter keeps the router current until ctx ends.
func (q *queries) keepRouter(ctx context.Context, adm *kadm.Client, log *slog.Logger) {
	var counts map[string]int
	var counted time.Time
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	used := false
	for {
		epoch, endpoints, wanted := q.known()
		wait := partitionsAge
		if used = used || wanted || len(endpoints) > 0; used {
			topics := q.topics(endpoints)
			if time.Since(counted) >= partitionsAge || !covers(counts, topics, endpoints) {
				var err error
				if counts, err = countPartitions(ctx, adm, topics); err != nil && ctx.Err() == nil {
					log.Warn("could not look up the partitions of source topics, by which interactive queries find keys", "err", err)
				}
				counted = time.Now()
			}
			q.service.Router().Update(epoch, endpoints, counts)
			if covers(counts, topics, endpoints) {
				pause.Reset()
			} else { // a topic is yet to be made, or our brokers don't know it yet
				wait = pause.NextBackOff()
			}
		}
		select {
		case <-q.changed:
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// topics are the source topics of all stores, as far as they are known.
func (q *queries) topics(endpoints []membership.EndpointPartitions) []string {
	var topics []string
	for i := range q.stores {
		topics = append(topics, q.stores[i].Topics(endpoints)...)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// covers says whether the number of partitions is known of each topic, and that no
// endpoint has more.
func covers(counts map[string]int, topics []string, endpoints []membership.EndpointPartitions) bool {
	if slices.ContainsFunc(topics, func(topic string) bool { return counts[topic] == 0 }) {
		return false
	}
	for _, e := range endpoints {
		for _, tp := range e.Active {
			n, ok := counts[tp.Topic]
			if ok && len(tp.Partitions) > 0 && int(slices.Max(tp.Partitions)) >= n {
				return false
			}
		}
	}
	return true
}

// countPartitions looks up how many partitions topics have. Those that don't exist are
// left out.
func countPartitions(ctx context.Context, adm *kadm.Client, topics []string) (map[string]int, error) {
	counts := make(map[string]int, len(topics))
	if len(topics) == 0 {
		return counts, nil
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	details, err := adm.ListTopics(ctx, topics...)
	for topic, d := range details {
		if d.Err == nil {
			counts[topic] = len(d.Partitions)
		}
	}
	return counts, err
}

// endOffsets looks up where the partitions of a topic end.
func (q *queries) endOffsets(ctx context.Context, topic string) (map[int32]int64, error) {
	client := q.client.Load()
	if client == nil {
		return nil, errNotRun
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	ends := make(map[int32]int64)
	for partition, o := range listed[topic] {
		if o.Err != nil {
			return nil, fmt.Errorf("list the end of %s-%d: %w", topic, partition, o.Err)
		}
		ends[partition] = o.Offset
	}
	return ends, nil
}
