package membership

import (
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestEndpoints(t *testing.T) {
	cfg := testConfig()
	cfg.Endpoint = &Endpoint{"host", 7}
	d := drive(t, cfg)
	d.m.Join(d.now)
	d.pump()
	if l := d.last(); l.EndpointInformationEpoch != -1 || l.UserEndpoint == nil || l.UserEndpoint.Port != 7 {
		t.Errorf("joined with %+v", l)
	}
	part := func(epoch int32, es ...kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint) *kmsg.StreamsGroupHeartbeatResponse {
		r := granted(1, none, none, none)
		r.EndpointInformationEpoch = epoch
		r.PartitionsByUserEndpoint = es
		return r
	}
	type active = kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpointActivePartition
	type standby = kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpointStandbyPartition
	entry := func(host string, a []active, s []standby) kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint {
		return kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint{
			UserEndpoint: kmsg.Endpoint{Host: host, Port: 1}, ActivePartitions: a, StandbyPartitions: s,
		}
	}
	d.m.HeartbeatAnswered(d.now, d.last().seq, part(4,
		entry("b", []active{{Topic: "y", Partitions: []int32{2}}}, nil),
		entry("a", nil, []standby{{Topic: "x", Partitions: []int32{0}}}),
		entry("b", []active{{Topic: "x", Partitions: []int32{1}}, {Topic: "y", Partitions: []int32{0, 2}}}, nil),
	))
	r := d.m.Ready(d.now)
	want := &Endpoints{4, []EndpointPartitions{
		{Endpoint{"a", 1}, nil, []TopicPartitions{{"x", []int32{0}}}},
		{Endpoint{"b", 1}, []TopicPartitions{{"x", []int32{1}}, {"y", []int32{0, 2}}}, nil},
	}}
	if !reflect.DeepEqual(r.Endpoints, want) {
		t.Errorf("endpoints %+v, want %+v", r.Endpoints, want)
	}
	d.m.Reconciled(r.Assignment.LocalEpoch)
	d.pump()
	if l := d.last(); l.EndpointInformationEpoch != 4 {
		t.Errorf("echoed %d", l.EndpointInformationEpoch)
	}
	// Null is unchanged; the epoch may go down; empty is nobody.
	d.m.HeartbeatAnswered(d.now, d.last().seq, part(4))
	if r := d.m.Ready(d.now); r.Endpoints != nil {
		t.Errorf("null changed the endpoints: %v", r.Endpoints)
	}
	d.next()
	down := part(0)
	down.PartitionsByUserEndpoint = []kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint{}
	d.m.HeartbeatAnswered(d.now, d.last().seq, down)
	if r := d.m.Ready(d.now); r.Endpoints == nil || r.Endpoints.Epoch != 0 || len(r.Endpoints.Partitions) != 0 {
		t.Errorf("endpoints %v", r.Endpoints)
	}
	// The echo survives a fence.
	d.beat(refusal(110, ""))
	if l := d.last(); l.MemberEpoch != 0 || l.EndpointInformationEpoch != 0 || l.UserEndpoint == nil {
		t.Errorf("rejoined with %+v", l)
	}
}

func TestEndpointEpochOnCoordinatorChange(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version int16
		node    int32
		want    int32
	}{
		{"same node", 1, 1, 9},
		{"another node", 1, 2, -1},
		{"same node, version 0", 0, 1, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := joined(t, testConfig())
			r := ok(1)
			r.EndpointInformationEpoch, r.Version = 9, tt.version
			d.beat(r)
			d.noCoordinator = true
			moved := refusal(16, "")
			moved.Version = tt.version
			d.beat(moved)
			d.m.CoordinatorAnswered(d.now, d.asking, tt.node, 0, "")
			d.pump()
			if l := d.last(); l.EndpointInformationEpoch != tt.want {
				t.Errorf("echoed %d, want %d", l.EndpointInformationEpoch, tt.want)
			}
		})
	}
}
