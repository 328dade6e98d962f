package streams

import (
	"slices"

	"github.com/odradek-go/odradek/iq"
)

// storeInfos is what interactive queries need to know of the stores.
func (t *Topology) storeInfos(cfg Config) []iq.StoreInfo {
	var infos []iq.StoreInfo
	for _, s := range t.stores {
		info := iq.StoreInfo{Name: s.Name, Kind: s.new(), Global: s.global}
		if s.global {
			infos = append(infos, info)
			continue
		}
		var matches []func(string) bool
		for _, n := range sourcesOf(s.users) {
			for _, topic := range n.topics {
				name := topic
				if _, ok := t.internal[topic]; ok {
					name = cfg.ApplicationID + "-" + topic
				}
				if !slices.Contains(info.Sources, name) {
					info.Sources = append(info.Sources, name)
				}
				if info.Partition == nil {
					info.Partition = t.partitionOf(topic)
				}
			}
			if n.pattern != nil {
				matches = append(matches, wholeNames(n.pattern))
			}
		}
		if len(matches) > 0 {
			info.Match = func(topic string) bool {
				return slices.ContainsFunc(matches, func(match func(string) bool) bool { return match(topic) })
			}
		}
		infos = append(infos, info)
	}
	return infos
}

// sourcesOf are the sources above nodes.
func sourcesOf(nodes []*node) []*node {
	var sources []*node
	seen := make(map[*node]bool)
	var climb func(*node)
	climb = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n.kind == sourceKind {
			sources = append(sources, n)
		}
		for _, parent := range n.parents {
			climb(parent)
		}
	}
	for _, n := range nodes {
		climb(n)
	}
	return sources
}

// partitionOf is the partitioner of an internal topic, by encoded keys; nil for the
// default one, and for topics that others write.
func (t *Topology) partitionOf(topic string) func(key []byte, partitions int) (int32, error) {
	if _, ok := t.internal[topic]; !ok {
		return nil
	}
	for _, n := range t.nodes {
		if n.kind == sinkKind && n.topic == topic && n.partition != nil {
			return n.partition
		}
	}
	return nil
}
