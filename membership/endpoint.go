package membership

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Endpoint is where an application answers interactive queries
// (application.server).
type Endpoint struct {
	Host string
	// Port is 1 to 65535.
	Port uint16
}

// String returns "host:port".
func (e Endpoint) String() string {
	return net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
}

func (e Endpoint) compare(o Endpoint) int {
	return cmp.Or(cmp.Compare(e.Host, o.Host), cmp.Compare(e.Port, o.Port))
}

// TopicPartitions are partitions of one topic, ascending.
type TopicPartitions struct {
	Topic      string
	Partitions []int32
}

// EndpointPartitions is what the members behind one endpoint own together, in
// terms of source topics (repartition topics that are sources included). It is
// a snapshot; nobody changes it after it was handed out.
type EndpointPartitions struct {
	Endpoint Endpoint
	// Active are the inputs of active tasks, sorted by topic; nil is none.
	Active []TopicPartitions
	// Standby are the inputs of standby and warm-up tasks, sorted by topic;
	// nil is none.
	Standby []TopicPartitions
}

// endpointsFromWire unions the entries of one endpoint: the coordinator sends
// one entry for each member, and the stream threads of an application share
// their endpoint.
func endpointsFromWire(in []kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint) []EndpointPartitions {
	type both struct{ active, standby map[string][]int32 }
	byEndpoint := make(map[Endpoint]both)
	for i := range in {
		e := Endpoint{in[i].UserEndpoint.Host, in[i].UserEndpoint.Port}
		b, ok := byEndpoint[e]
		if !ok {
			b = both{make(map[string][]int32), make(map[string][]int32)}
			byEndpoint[e] = b
		}
		for _, tp := range in[i].ActivePartitions {
			b.active[tp.Topic] = append(b.active[tp.Topic], tp.Partitions...)
		}
		for _, tp := range in[i].StandbyPartitions {
			b.standby[tp.Topic] = append(b.standby[tp.Topic], tp.Partitions...)
		}
	}
	out := make([]EndpointPartitions, 0, len(byEndpoint))
	for e, b := range byEndpoint {
		out = append(out, EndpointPartitions{e, sortedTopics(b.active), sortedTopics(b.standby)})
	}
	slices.SortFunc(out, func(a, b EndpointPartitions) int { return a.Endpoint.compare(b.Endpoint) })
	return out
}

func sortedTopics(in map[string][]int32) []TopicPartitions {
	var out []TopicPartitions
	for t, ps := range in {
		slices.Sort(ps)
		out = append(out, TopicPartitions{t, slices.Compact(ps)})
	}
	slices.SortFunc(out, func(a, b TopicPartitions) int { return cmp.Compare(a.Topic, b.Topic) })
	return out
}
