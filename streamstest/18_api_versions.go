package streamstest

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ApiVersions
//
// Behavior:
// * Announces the streams-group requests, those of WithMirrorStates, and the feature streams.version beside what kfake has
// * Whatever kfake answers with an error is left to it

func (b *Broker) apiVersions(node int32, kreq kmsg.Request) (kmsg.Response, bool, error) {
	req := kreq.(*kmsg.ApiVersionsRequest)
	b.mu.Lock()
	have := b.announced
	b.mu.Unlock()
	if have == nil {
		asked, err := sleeping(&b.ask, b.ask.apiVersions)
		if err != nil {
			return nil, true, err
		}
		have = asked
		b.announce(have)
	}
	if !b.goodApiVersions(node, req, have) {
		return nil, false, nil
	}
	resp := *have
	resp.Version = req.Version
	resp.ApiKeys = slices.Clone(have.ApiKeys)
	ours := []struct{ key, highest int16 }{{88, b.config.version}, {89, b.config.version}, {93, b.config.version - 1}}
	if m := b.config.mirrors; m.on {
		ours = append(ours, []struct{ key, highest int16 }{{m.ReadMirrorStates, 0}, {m.WriteMirrorStates, 0}}...)
	}
	for _, k := range ours {
		if k.highest >= 0 {
			key := kmsg.NewApiVersionsResponseApiKey()
			key.ApiKey, key.MaxVersion = k.key, k.highest
			resp.ApiKeys = append(resp.ApiKeys, key)
		}
	}
	slices.SortFunc(resp.ApiKeys, func(a, b kmsg.ApiVersionsResponseApiKey) int { return cmp.Compare(a.ApiKey, b.ApiKey) })
	addStreamsFeature(&resp)
	return &resp, true, nil
}

func (b *Broker) announce(have *kmsg.ApiVersionsResponse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announced = have
}

var softwareName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// goodApiVersions reports whether kfake would answer without an error.
func (b *Broker) goodApiVersions(node int32, req *kmsg.ApiVersionsRequest, have *kmsg.ApiVersionsResponse) bool {
	i := slices.IndexFunc(have.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == 18 })
	if i < 0 || req.Version > have.ApiKeys[i].MaxVersion {
		return false
	}
	if req.Version >= 3 && (!softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion)) {
		return false
	}
	if req.Version < 5 || req.ClusterID == nil && req.NodeID == -1 {
		return true
	}
	return req.ClusterID != nil && *req.ClusterID == b.ask.id() && req.NodeID == node
}

// addStreamsFeature finalizes streams.version at level 1, where clusters with streams groups have it.
func addStreamsFeature(resp *kmsg.ApiVersionsResponse) {
	const name = "streams.version"
	resp.SupportedFeatures = slices.DeleteFunc(slices.Clone(resp.SupportedFeatures), func(f kmsg.ApiVersionsResponseSupportedFeature) bool { return f.Name == name })
	resp.FinalizedFeatures = slices.DeleteFunc(slices.Clone(resp.FinalizedFeatures), func(f kmsg.ApiVersionsResponseFinalizedFeature) bool { return f.Name == name })
	supported := kmsg.NewApiVersionsResponseSupportedFeature()
	supported.Name, supported.MaxVersion = name, 1
	finalized := kmsg.NewApiVersionsResponseFinalizedFeature()
	finalized.Name, finalized.MinVersionLevel, finalized.MaxVersionLevel = name, 1, 1
	resp.SupportedFeatures = append(resp.SupportedFeatures, supported)
	resp.FinalizedFeatures = append(resp.FinalizedFeatures, finalized)
	resp.FinalizedFeaturesEpoch = max(resp.FinalizedFeaturesEpoch, 1)
}

// UpdateFeatures: kfake changes what ApiVersions has to say.
func (b *Broker) updateFeatures(int32, kmsg.Request) (kmsg.Response, bool, error) {
	b.announce(nil)
	return nil, false, nil
}
