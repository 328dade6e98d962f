package streamstest

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// DescribeConfigs
//
// Behavior:
// * Group resources have the streams.* configs beside what kfake has

func (b *Broker) describeConfigs(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.DescribeConfigsRequest)
	names := make(map[string][]string) // of the configs wanted, by group; nil: all
	for _, r := range req.Resources {
		if r.ResourceType == kmsg.ConfigResourceTypeGroupConfig {
			names[r.ResourceName] = r.ConfigNames
		}
	}
	if len(names) == 0 {
		return nil, false, nil
	}
	theirs := *req
	theirs.Version = max(theirs.Version, 4)
	answer, err := b.ask.node(node, &theirs)
	if err != nil {
		return nil, true, err
	}
	resp := answer.(*kmsg.DescribeConfigsResponse)
	resp.Version = req.Version
	for i := range resp.Resources {
		r := &resp.Resources[i]
		wanted, ok := names[r.ResourceName]
		if !ok || r.ResourceType != kmsg.ConfigResourceTypeGroupConfig || r.ErrorCode != 0 {
			continue
		}
		var configs []coordinator.GroupConfig
		b.with(func(groups *coordinator.Coordinator, _ time.Time) { configs = groups.GroupConfigs(r.ResourceName) })
		for _, c := range configs {
			if wanted != nil && !slices.Contains(wanted, c.Name) {
				continue
			}
			rc := kmsg.NewDescribeConfigsResponseResourceConfig()
			rc.Name, rc.Value, rc.Source = c.Name, kmsg.StringPtr(c.Value), kmsg.ConfigSourceDefaultConfig
			rc.IsDefault = !c.OfGroup
			if c.OfGroup {
				rc.Source = kmsg.ConfigSourceGroupConfig
			}
			r.Configs = append(r.Configs, rc)
		}
	}
	return resp, true, nil
}
