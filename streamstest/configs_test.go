package streamstest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestGroupConfigs(t *testing.T) {
	b, cl := start(t)
	alter := func(op kmsg.IncrementalAlterConfigOp, name, value string) int16 {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = name, op, &value
		r.Configs = append(r.Configs, c)
		req.Resources = append(req.Resources, r)
		return request[*kmsg.IncrementalAlterConfigsResponse](t, cl, 0, req).Resources[0].ErrorCode
	}
	describe := func(names ...string) map[string]string {
		req := kmsg.NewPtrDescribeConfigsRequest()
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeGroupConfig, group, names
		req.Resources = append(req.Resources, r)
		out := make(map[string]string)
		for _, c := range request[*kmsg.DescribeConfigsResponse](t, cl, 0, req).Resources[0].Configs {
			if c.Value != nil {
				out[c.Name] = fmt.Sprintf("%s %d", *c.Value, c.Source)
			}
		}
		return out
	}
	const standbys = "streams.num.standby.replicas"
	if code := alter(kmsg.IncrementalAlterConfigOpSet, standbys, "1"); code != 0 {
		t.Errorf("set: error %d", code)
	}
	for name, value := range map[string]string{standbys: "9", "streams.nonsense": "1", "streams.session.timeout.ms": "soon", "consumer.nonsense": "1"} {
		if code := alter(kmsg.IncrementalAlterConfigOpSet, name, value); code != kerr.InvalidConfig.Code {
			t.Errorf("set %s to %s: error %d", name, value, code)
		}
	}
	if got := describe(standbys, "streams.heartbeat.interval.ms"); len(got) != 2 || got[standbys] != fmt.Sprintf("1 %d", kmsg.ConfigSourceGroupConfig) ||
		got["streams.heartbeat.interval.ms"] != fmt.Sprintf("100 %d", kmsg.ConfigSourceDefaultConfig) {
		t.Errorf("describe: %v", got)
	}
	a, c := newMember(t, b, cl, "a"), newMember(t, b, cl, "c")
	a.join(counting())
	c.join(counting())
	settle(t, b, a, c)
	if got := partitions(c.owned.StandbyTasks); !slices.Equal(got, a.active()) {
		t.Errorf("c stands by for %v, a runs %v", got, a.active())
	}
	if code := alter(kmsg.IncrementalAlterConfigOpDelete, standbys, ""); code != 0 {
		t.Errorf("delete: error %d", code)
	}
	a.heartbeat() // the first heartbeat after the change makes it known
	settle(t, b, a, c)
	if got := partitions(c.owned.StandbyTasks); len(got) != 0 {
		t.Errorf("c still stands by for %v", got)
	}
	if err := b.SetGroupConfig(group, map[string]string{"streams.heartbeat.interval.ms": "123"}); err != nil {
		t.Fatal(err)
	}
	if resp := a.heartbeat(); resp.HeartbeatIntervalMillis != 123 {
		t.Errorf("heartbeats every %d ms", resp.HeartbeatIntervalMillis)
	}
	if err := b.SetGroupConfig(group, map[string]string{"streams.heartbeat.interval.ms": "20000"}); err == nil {
		t.Error("heartbeats that are rarer than the session time-out allows are no error")
	}
}
