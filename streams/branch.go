package streams

import "strconv"

// BranchedKStream sends each record of a stream to the first of several branches
// whose predicate is true (KIP-418). Make one with [KStream.Split].
type BranchedKStream[K, V any] struct {
	from     *KStream[K, V]
	node     *planNode
	branches *[]branch[K, V]
	out      map[string]*KStream[K, V]
}

// branch is one branch; without a predicate it takes what is left.
type branch[K, V any] struct {
	name      string
	predicate func(K, V) bool
}

// Branched says what becomes of a branch.
type Branched[K, V any] struct {
	// Name follows the name of the split in the branch's name; empty: the
	// branch's number, counted from 1, and 0 for the default one.
	Name string

	// Function turns the branch into what is in the map of branches; nil: the
	// branch itself. The branch is not in the map where it returns nil.
	Function func(*KStream[K, V]) *KStream[K, V]
}

// Split splits the stream into branches. Records for which there is no branch are
// dropped.
func (s *KStream[K, V]) Split(name ...Named) *BranchedKStream[K, V] {
	given := only(s.b, "Split", name)
	b := &BranchedKStream[K, V]{from: s, branches: new([]branch[K, V]), out: make(map[string]*KStream[K, V])}
	branches := b.branches
	b.node = operator[K, V, K, V](s, s.b.name(string(given), branchPrefix), func(*taskContext) (running, error) {
		return &branchNode[K, V]{branches: *branches}, nil
	})
	return b
}

// Branch adds a branch for the records for which predicate is true, and that no
// branch before it has taken.
func (b *BranchedKStream[K, V]) Branch(predicate func(K, V) bool, options ...Branched[K, V]) *BranchedKStream[K, V] {
	b.from.b.needs("Branch", b.from.node, predicate)
	b.add(predicate, len(*b.branches)+1, only(b.from.b, "Branch", options))
	return b
}

// DefaultBranch adds a branch for the records that no other has taken. It returns
// all branches by their names.
func (b *BranchedKStream[K, V]) DefaultBranch(options ...Branched[K, V]) map[string]*KStream[K, V] {
	b.add(nil, 0, only(b.from.b, "DefaultBranch", options))
	return b.out
}

// NoDefaultBranch returns all branches by their names.
func (b *BranchedKStream[K, V]) NoDefaultBranch() map[string]*KStream[K, V] { return b.out }

func (b *BranchedKStream[K, V]) add(predicate func(K, V) bool, number int, o Branched[K, V]) {
	name := b.node.name + o.Name
	if o.Name == "" {
		name += strconv.Itoa(number)
	}
	b.from.b.generate(name) // as in Java, which counts the branch
	*b.branches = append(*b.branches, branch[K, V]{name, predicate})
	stream := b.from.at(b.node)
	stream.node = transform(stream, name, func(r Record[K, V]) (Record[K, V], bool) { return r, true })
	if o.Function != nil {
		stream = o.Function(stream)
	}
	if stream != nil {
		b.out[name] = stream
	}
}

type branchNode[K, V any] struct {
	emitter[K, V]
	branches []branch[K, V]
}

func (n *branchNode[K, V]) receive(r Record[K, V]) error {
	for i, branch := range n.branches {
		if branch.predicate == nil || branch.predicate(r.Key, r.Value) {
			return n.children[i].receive(r)
		}
	}
	return nil
}
