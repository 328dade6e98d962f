package streams

// sizedSet is a set of nodes as Java's TopologyDescription has it: a TreeSet, sorted
// by sizes that change while it is filled, so that the order in the end depends on
// the shape of the red-black tree.
type sizedSet struct{ root *sizedEntry }

type sizedEntry struct {
	node   *describedNode
	parent *sizedEntry
	child  [2]*sizedEntry // left and right
	red    bool
}

// side is which child of its parent e is.
func (e *sizedEntry) side() int {
	if e.parent.child[1] == e {
		return 1
	}
	return 0
}

func (s *sizedSet) add(n *describedNode) {
	if s.root == nil {
		s.root = &sizedEntry{node: n}
		return
	}
	for e := s.root; ; {
		order := bySize(n, e.node)
		if order == 0 {
			return
		}
		side := max(order, 0)
		if e.child[side] == nil {
			added := &sizedEntry{node: n, parent: e, red: true}
			e.child[side] = added
			s.rebalance(added)
			return
		}
		e = e.child[side]
	}
}

// rebalance restores the rule that a red entry has no red child.
func (s *sizedSet) rebalance(e *sizedEntry) {
	for e != s.root && e.parent.red {
		grandparent, side := e.parent.parent, e.parent.side()
		if uncle := grandparent.child[1-side]; uncle != nil && uncle.red {
			e.parent.red, uncle.red, grandparent.red = false, false, true
			e = grandparent
			continue
		}
		if e.side() != side {
			e = e.parent
			s.rotate(e, side)
		}
		e.parent.red, grandparent.red = false, true
		s.rotate(grandparent, 1-side)
	}
	s.root.red = false
}

// rotate moves an entry down to a side, and its child on the other side up.
func (s *sizedSet) rotate(e *sizedEntry, side int) {
	up := e.child[1-side]
	if e.child[1-side] = up.child[side]; up.child[side] != nil {
		up.child[side].parent = e
	}
	if up.parent = e.parent; e.parent == nil {
		s.root = up
	} else {
		e.parent.child[e.side()] = up
	}
	up.child[side], e.parent = e, up
}

// nodes are the nodes in the tree's order.
func (s *sizedSet) nodes() (nodes []*describedNode) {
	var walk func(*sizedEntry)
	walk = func(e *sizedEntry) {
		if e != nil {
			walk(e.child[0])
			nodes = append(nodes, e.node)
			walk(e.child[1])
		}
	}
	walk(s.root)
	return nodes
}
