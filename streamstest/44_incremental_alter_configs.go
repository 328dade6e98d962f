package streamstest

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/odradek-go/odradek/streamstest/internal/coordinator"
)

// IncrementalAlterConfigs
//
// Behavior:
// * The streams.* configs of group resources are the coordinator's, all others kfake's
// * Within one resource, kfake's come first: if it refuses them, nothing is changed

func (b *Broker) incrementalAlterConfigs(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.IncrementalAlterConfigsRequest)
	theirs := *req
	theirs.Version = max(theirs.Version, 1)
	theirs.Resources = nil
	type groupConfigs = []kmsg.IncrementalAlterConfigsRequestResourceConfig
	ours := make(map[string]groupConfigs)
	for _, r := range req.Resources {
		forKfake := r
		forKfake.Configs = nil
		for _, c := range r.Configs {
			if r.ResourceType == kmsg.ConfigResourceTypeGroupConfig && coordinator.IsGroupConfig(c.Name) {
				ours[r.ResourceName] = append(ours[r.ResourceName], c)
			} else {
				forKfake.Configs = append(forKfake.Configs, c)
			}
		}
		theirs.Resources = append(theirs.Resources, forKfake)
	}
	if len(ours) == 0 {
		return nil, false, nil
	}
	answer, err := b.ask.node(node, &theirs)
	if err != nil {
		return nil, true, err
	}
	resp := answer.(*kmsg.IncrementalAlterConfigsResponse)
	resp.Version = req.Version
	for i := range resp.Resources {
		r := &resp.Resources[i]
		if r.ResourceType != kmsg.ConfigResourceTypeGroupConfig || r.ErrorCode != 0 {
			continue
		}
		if err := b.alterGroupConfigs(r.ResourceName, ours[r.ResourceName], req.ValidateOnly); err != nil {
			r.ErrorCode, r.ErrorMessage = err.Code.Code, kmsg.StringPtr(err.Message)
		}
	}
	return resp, true, nil
}

func (b *Broker) alterGroupConfigs(group string, configs []kmsg.IncrementalAlterConfigsRequestResourceConfig, validateOnly bool) *coordinator.Error {
	set := make(map[string]string)
	var remove []string
	for _, c := range configs {
		switch {
		case c.Op == kmsg.IncrementalAlterConfigOpDelete:
			remove = append(remove, c.Name)
		case c.Op == kmsg.IncrementalAlterConfigOpSet && c.Value != nil:
			set[c.Name] = *c.Value
		default:
			return &coordinator.Error{Code: kerr.InvalidConfig, Message: "Group configs can only be set to a value, or deleted."}
		}
	}
	var err *coordinator.Error
	b.with(func(groups *coordinator.Coordinator, _ time.Time) {
		err = groups.AlterGroupConfigs(group, set, remove, validateOnly)
	})
	return err
}
