package streams

// subtopology is a part of a topology that only topics connect with the rest: the
// unit that tasks are made of.
type subtopology struct {
	id     int
	nodes  []*node // in the topology's order, parents before children
	stores []*store
}

// subtopologies groups the nodes that are connected by an edge or a shared store.
// Ids are Java's: counted in the order of the first nodes.
func (t *Topology) subtopologies() []*subtopology {
	group := make(map[*node]*node) // a forest; each tree is a subtopology
	var root func(n *node) *node
	root = func(n *node) *node {
		if up := group[n]; up != nil && up != n {
			group[n] = root(up)
			return group[n]
		}
		return n
	}
	for _, n := range t.nodes {
		for _, child := range n.children {
			group[root(child)] = root(n)
		}
	}
	for _, s := range t.stores {
		for _, user := range s.users[1:] {
			group[root(user)] = root(s.users[0])
		}
	}

	byRoot := make(map[*node]*subtopology)
	var subs []*subtopology
	for _, n := range t.nodes {
		sub := byRoot[root(n)]
		if sub == nil {
			sub = &subtopology{id: len(subs)}
			byRoot[root(n)] = sub
			subs = append(subs, sub)
		}
		sub.nodes = append(sub.nodes, n)
	}
	for _, s := range t.stores {
		sub := byRoot[root(s.users[0])]
		sub.stores = append(sub.stores, s)
	}
	return subs
}

// sourceTopics are the topics that the subtopology reads.
func (s *subtopology) sourceTopics() []string {
	var topics []string
	for _, n := range s.nodes {
		topics = append(topics, n.topics...)
	}
	return topics
}
