package streams

import "slices"

// mergeRepartitions makes one repartition topic of those below the same
// key-changing operation. As in Java, those that a change of values lies before
// are left alone: their topics hold other values.
func (p *plan) mergeRepartitions(processFix bool) {
	changesKeys := func(n *planNode) bool { return n.keyChanging || processFix && n.process }
	changesValues := func(n *planNode) bool { return n.valueChanging || processFix && (n.process || n.processValues) }

	var changers []*planNode // in the order of the calls
	below := make(map[*planNode][]*planNode)
	for _, n := range p.nodes {
		switch {
		case changesKeys(n):
			changers = append(changers, n)
		case n.repartition != nil && n.repartition.optimizable:
			changer := n.ancestor(changesKeys)
			if changer != nil && changer == n.ancestor(func(n *planNode) bool { return changesKeys(n) || changesValues(n) }) {
				below[changer] = append(below[changer], n)
			}
		}
	}
	changers = p.repartitionBehindMerges(changers, below)
	for _, changer := range changers {
		if len(below[changer]) > 0 {
			p.mergeBelow(changer, below[changer])
		}
	}
}

// mergeBelow puts one repartition topic right below a key-changing operation, in
// the place of others further down.
func (p *plan) mergeBelow(changer *planNode, others []*planNode) {
	merged := others[0].repartition.again(p)
	merged.priority = changer.priority
	p.nodes = append(p.nodes, merged)
	for _, other := range others {
		// What leads there moves below the new topic, unless it did already
		// because it leads to another one too.
		if top := other.ancestor(func(n *planNode) bool { return slices.Contains(n.parents, changer) }); top != nil {
			merged.addChild(top)
			changer.removeChild(top)
		}
		parents := slices.Clone(other.parents)
		for _, child := range slices.Clone(other.children) {
			for _, parent := range parents {
				parent.addChild(child)
			}
			other.removeChild(child)
		}
		for _, parent := range parents {
			parent.removeChild(other)
		}
		p.nodes = without(p.nodes, other)
		for _, group := range p.copartitioned {
			if i := slices.Index(group, other.name); i >= 0 {
				group[i] = merged.name
			}
		}
	}
	changer.addChild(merged)
}

// repartitionBehindMerges finds repartition topics behind a merge of streams whose
// keys were changed before it. They belong to the merge then, so that they stay
// behind it.
func (p *plan) repartitionBehindMerges(changers []*planNode, below map[*planNode][]*planNode) []*planNode {
	moved := make(map[*planNode]bool)
	var merges []*planNode
	for _, merge := range p.nodes {
		if !merge.merges {
			continue
		}
		merges = append(merges, merge)
		for _, changer := range changers {
			behind := !slices.ContainsFunc(below[changer], func(r *planNode) bool {
				return r.ancestor(func(n *planNode) bool { return slices.Contains(n.parents, merge) }) == nil
			})
			if behind && merge.ancestor(func(n *planNode) bool { return slices.Contains(n.parents, changer) }) != nil {
				for _, r := range below[changer] {
					if !slices.Contains(below[merge], r) {
						below[merge] = append(below[merge], r)
					}
				}
				moved[changer] = true
			}
		}
	}
	return append(slices.DeleteFunc(changers, func(n *planNode) bool { return moved[n] }), merges...)
}

// ancestor is n or the node above it that is found first, going up, to match. Of
// several parents the last one's answer counts, as in Java, unless one matches
// itself.
func (n *planNode) ancestor(match func(*planNode) bool) (found *planNode) {
	if match(n) {
		return n
	}
	for _, parent := range n.parents {
		if match(parent) {
			return parent
		}
		found = parent.ancestor(match)
	}
	return found
}
