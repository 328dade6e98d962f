package iq

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// StoreInfo is what a topology says of a store.
type StoreInfo struct {
	Name string

	// Global says that every instance has the store whole. It has one partition, 0,
	// and no sources.
	Global bool

	// Sources are the source topics whose records reach the store, by their names
	// in the cluster; its partitions are theirs.
	Sources []string

	// Match says whether a topic that no name is given of is one of them; nil: there
	// are no patterns.
	Match func(topic string) bool

	// Partition is the partition of an encoded key by the topology's partitioner;
	// nil: Kafka's default. For windows the key is the one within.
	Partition func(key []byte, partitions int) (int32, error)

	// Kind is a store of the kind, never opened.
	Kind state.Store
}

// Route says who has a partition of a store (Java's KeyQueryMetadata).
type Route struct {
	Partition int32

	// Active is the instance whose store is the truth; zero: none is known, such as
	// while the group rebalances, or it has no endpoint, or every instance has the
	// store, which is global.
	Active membership.Endpoint

	// Standbys are the instances that have copies, warm-ups included, by endpoint.
	Standbys []membership.Endpoint
}

// HasActive says whether an active instance is known.
func (r *Route) HasActive() bool { return r.Active != (membership.Endpoint{}) }

// Host is what one instance has (Java's StreamsMetadata).
type Host struct {
	Endpoint membership.Endpoint

	// Stores and StandbyStores are those of which it has partitions, sorted.
	Stores, StandbyStores []string

	// Partitions and StandbyPartitions are the source partitions of its tasks.
	Partitions, StandbyPartitions []membership.TopicPartitions
}

// Snapshot is who has what, as of one epoch. It never changes, and neither must what
// it returns.
type Snapshot struct {
	// Epoch is the coordinator's, which can go down when that moves; −1 before the
	// first.
	Epoch int32

	// Hosts are the instances that have endpoints, by endpoint.
	Hosts []Host

	stores map[string]*routes
	list   []*routes // likewise, in the order in which the router was told of them
}

// routes are those of one store.
type routes struct {
	info        StoreInfo
	byPartition []Route // empty: the number of partitions is not known
	hosts       []membership.Endpoint
}

// Router knows who has what. Lookups take no lock and allocate nothing.
type Router struct {
	now atomic.Pointer[Snapshot]

	mu       sync.Mutex
	stores   []StoreInfo
	watchers map[chan *Snapshot]struct{}
}

// NewRouter returns a router for the stores of a topology that knows nothing yet.
func NewRouter(stores []StoreInfo) *Router {
	r := &Router{stores: slices.Clone(stores), watchers: make(map[chan *Snapshot]struct{})}
	r.now.Store(newSnapshot(r.stores, -1, nil, nil))
	return r
}

// Update takes over what the coordinator has published, with the number of partitions
// that the source topics really have: the map has only those of members with
// endpoints. Stores with a source topic whose number isn't there, or 0, can't be
// looked up.
func (r *Router) Update(epoch int32, endpoints []membership.EndpointPartitions, partitions map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := newSnapshot(r.stores, epoch, endpoints, partitions)
	r.now.Store(s)
	for w := range r.watchers {
		select { // what nobody has taken is out of date
		case <-w:
		default:
		}
		w <- s
	}
}

// Snapshot is who has what at the moment.
func (r *Router) Snapshot() *Snapshot { return r.now.Load() }

// Watch returns a channel with the snapshot at the moment and, whenever that has
// changed, the newest one; those in between may be left out. It is closed when ctx
// ends.
func (r *Router) Watch(ctx context.Context) <-chan *Snapshot {
	w := make(chan *Snapshot, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	w <- r.now.Load()
	r.watchers[w] = struct{}{}
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
		close(w)
	})
	return w
}

// Lookup finds out who has the partition of a store that an encoded key is in. The
// error is ErrUnknownStore, or ErrNotReady where the number of partitions isn't known
// yet.
func (r *Router) Lookup(store string, key []byte) (*Route, error) {
	return r.now.Load().Lookup(store, key)
}

// Lookup is [Router.Lookup].
func (s *Snapshot) Lookup(store string, key []byte) (*Route, error) {
	of := s.stores[store]
	if of == nil || len(of.byPartition) == 0 {
		return nil, s.missing(store, of)
	}
	partition, err := of.partition(key)
	if err != nil {
		return nil, err
	}
	return &of.byPartition[partition], nil
}

// missing is the error for a store that can't be looked up.
func (s *Snapshot) missing(store string, of *routes) error {
	if of == nil {
		return &Error{Kind: ErrUnknownStore, Store: store, Partition: -1}
	}
	return &Error{Kind: ErrNotReady, Store: store, Partition: -1}
}

func (of *routes) partition(key []byte) (int32, error) {
	n := len(of.byPartition)
	if of.info.Partition == nil {
		return DefaultPartition(key, n), nil
	}
	p, err := of.info.Partition(key, n)
	if err == nil && (p < 0 || int(p) >= n) {
		err = errOutOfRange
	}
	if err != nil {
		return 0, &Error{Kind: ErrInvalidQuery, Store: of.info.Name, Partition: p, Err: err}
	}
	return p, nil
}

// Partition says who has a partition of a store.
func (s *Snapshot) Partition(store string, partition int32) (*Route, error) {
	of := s.stores[store]
	switch {
	case of == nil || len(of.byPartition) == 0:
		return nil, s.missing(store, of)
	case partition < 0 || int(partition) >= len(of.byPartition):
		return nil, &Error{Kind: ErrInvalidQuery, Store: store, Partition: partition, Err: errOutOfRange}
	}
	return &of.byPartition[partition], nil
}

// Partitions is how many partitions a store has, 0 where that is not known.
func (s *Snapshot) Partitions(store string) int {
	if of := s.stores[store]; of != nil {
		return len(of.byPartition)
	}
	return 0
}

// StoreHosts are the instances that have partitions of a store, active or not.
func (s *Snapshot) StoreHosts(store string) []membership.Endpoint {
	if of := s.stores[store]; of != nil {
		return of.hosts
	}
	return nil
}

// Stores are the names of all stores of the topology, sorted.
func (s *Snapshot) Stores() []string { return slices.Sorted(maps.Keys(s.stores)) }

func newSnapshot(stores []StoreInfo, epoch int32, endpoints []membership.EndpointPartitions, partitions map[string]int) *Snapshot {
	s := &Snapshot{Epoch: epoch, stores: make(map[string]*routes, len(stores)), list: make([]*routes, len(stores))}
	readers := make(map[string][]*routes) // the stores that a topic reaches
	var global []string
	for i, info := range stores {
		of := &routes{info: info}
		s.stores[info.Name], s.list[i] = of, of
		if info.Global {
			global = append(global, info.Name)
			of.byPartition = make([]Route, 1)
			continue
		}
		n, known := 0, true
		for _, topic := range info.Topics(endpoints) {
			readers[topic] = append(readers[topic], of)
			n, known = max(n, partitions[topic]), known && partitions[topic] > 0
		}
		if known {
			of.byPartition = make([]Route, n)
			for p := range of.byPartition {
				of.byPartition[p].Partition = int32(p)
			}
		}
	}
	for _, e := range endpoints {
		host := Host{Endpoint: e.Endpoint, Partitions: e.Active, StandbyPartitions: e.Standby}
		host.Stores = reached(e.Active, readers, func(of *routes, p int32) { of.byPartition[p].Active = e.Endpoint })
		host.Stores = slices.Sorted(slices.Values(append(host.Stores, global...)))
		host.StandbyStores = reached(e.Standby, readers, func(of *routes, p int32) {
			route := &of.byPartition[p]
			if n := len(route.Standbys); n == 0 || route.Standbys[n-1] != e.Endpoint {
				route.Standbys = append(route.Standbys, e.Endpoint)
			}
		})
		for _, of := range s.stores {
			if slices.Contains(host.Stores, of.info.Name) || slices.Contains(host.StandbyStores, of.info.Name) {
				of.hosts = append(of.hosts, e.Endpoint)
			}
		}
		s.Hosts = append(s.Hosts, host)
	}
	return s
}

// Topics are the store's source topics, as far as they are known: those that are named,
// and those that endpoints have and that match.
func (info *StoreInfo) Topics(endpoints []membership.EndpointPartitions) []string {
	topics := slices.Clone(info.Sources)
	if info.Match != nil {
		for _, e := range endpoints {
			for _, tp := range slices.Concat(e.Active, e.Standby) {
				if info.Match(tp.Topic) && !slices.Contains(topics, tp.Topic) {
					topics = append(topics, tp.Topic)
				}
			}
		}
	}
	return topics
}

// reached calls f with the partitions of stores that source partitions reach, and
// returns the stores' names, sorted.
func reached(sources []membership.TopicPartitions, readers map[string][]*routes, f func(of *routes, partition int32)) []string {
	var names []string
	for _, tp := range sources {
		for _, of := range readers[tp.Topic] {
			if len(tp.Partitions) > 0 {
				names = append(names, of.info.Name)
			}
			for _, p := range tp.Partitions {
				if p >= 0 && int(p) < len(of.byPartition) {
					f(of, p)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
