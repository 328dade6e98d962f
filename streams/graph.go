package streams

import (
	"errors"
	"fmt"
	"slices"

	"github.com/odradek-go/odradek/taskmgr"
)

// receiver is a node of a running graph as its parents see it.
type receiver[K, V any] interface {
	receive(Record[K, V]) error
}

// running is a node of a running graph, whatever its types.
type running interface {
	// connect adds a child. Build has checked the types, so a child of another
	// type is a defect of ours.
	connect(name string, child running) error
	open() error
	close() error
}

// emitter is the output side of a running node, which embeds it.
type emitter[K, V any] struct {
	children []receiver[K, V]
	names    []string
}

func (e *emitter[K, V]) connect(name string, child running) error {
	r, ok := child.(receiver[K, V])
	if !ok {
		return fmt.Errorf("streams: %q does not take %T", name, Record[K, V]{})
	}
	e.children = append(e.children, r)
	e.names = append(e.names, name)
	return nil
}

func (e *emitter[K, V]) forward(r Record[K, V]) error {
	for _, c := range e.children {
		if err := c.receive(r); err != nil {
			return err
		}
	}
	return nil
}

// forwardTo sends a record of the node of that name to one of its children.
func (e *emitter[K, V]) forwardTo(node, child string, r Record[K, V]) error {
	i := slices.Index(e.names, child)
	if i < 0 {
		return fmt.Errorf("streams: processor %q has no child %q, only %q", node, child, e.names)
	}
	return e.children[i].receive(r)
}

func (e *emitter[K, V]) open() error  { return nil }
func (e *emitter[K, V]) close() error { return nil }

// graph is the running graph of one task.
type graph struct {
	sources  map[string]taskmgr.Source
	matching []matchingSource
	nodes    []running
	ctx      *taskContext
}

func (g *graph) Source(topic string) taskmgr.Source {
	if source := g.sources[topic]; source != nil {
		return source
	}
	for _, m := range g.matching {
		if m.matches(topic) {
			return m.source
		}
	}
	return nil
}

func (g *graph) Close() error {
	var errs []error
	for _, n := range g.nodes {
		errs = append(errs, n.close())
	}
	for _, f := range g.ctx.onClose {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// taskContext is what a node is made with.
type taskContext struct {
	*taskmgr.Context
	topicName func(string) string // a topic's name in the cluster
	global    []string            // global stores
	format    StoreFormat         // of the DSL's stores
	onClose   []func() error      // what nodes want done at the end, besides their own close
	shared    map[any]any         // what several nodes have in common, by what they know it by
}

// taskContext is what a node's code knows of the task, with the stores that the node is
// connected to.
func (ctx *taskContext) taskContext(node string, stores []string) TaskContext {
	return TaskContext{ctx.Context, node, stores, ctx.global}
}

// shared is what the nodes of a task have in common that know it by key. The first of
// them makes it.
func shared[T any](ctx *taskContext, key any, make func() T) T {
	if known, ok := ctx.shared[key].(T); ok {
		return known
	}
	if ctx.shared == nil {
		ctx.shared = map[any]any{}
	}
	v := make()
	ctx.shared[key] = v
	return v
}

// newGraph makes the running nodes of one subtopology, parents before children.
func newGraph(nodes []*node, ctx *taskContext) (*graph, error) {
	g := &graph{sources: make(map[string]taskmgr.Source), ctx: ctx}
	made := make(map[*node]running, len(nodes))
	for _, n := range nodes {
		r, err := n.make(ctx)
		if err != nil {
			g.nodes = nil // not open
			return nil, errors.Join(fmt.Errorf("%s: %w", n.name, err), g.Close())
		}
		made[n] = r
		g.nodes = append(g.nodes, r)
		if source, ok := r.(taskmgr.Source); ok {
			for _, topic := range n.topics {
				g.sources[ctx.topicName(topic)] = source
			}
			if n.pattern != nil {
				g.matching = append(g.matching, matchingSource{wholeNames(n.pattern), source})
			}
		}
	}
	for _, n := range nodes {
		for _, child := range n.children {
			if err := made[n].connect(child.name, made[child]); err != nil {
				return nil, err
			}
		}
	}
	for i, r := range g.nodes {
		if err := r.open(); err != nil {
			g.nodes = g.nodes[:i]
			return nil, errors.Join(fmt.Errorf("%s: %w", nodes[i].name, err), g.Close())
		}
	}
	return g, nil
}
