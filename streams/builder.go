package streams

// Builder makes a topology from the DSL: streams and tables, and what becomes of
// them. Nodes, stores and internal topics get the names that Java's
// StreamsBuilder gives the same calls in the same order, so that a Go and a Java
// program can be members of one group.
type Builder struct{ plan }

// NewBuilder returns an empty builder.
func NewBuilder() *Builder { return &Builder{plan: plan{generated: make(map[string]bool)}} }

// Build returns the topology of all calls up to now. What is wrong with them is
// reported by [NewApp].
func (b *Builder) Build(config ...TopologyConfig) *Topology {
	c := only(b, "Build", config)
	p := b.plan.clone()
	t := NewTopology()
	t.format = c.StoreFormat
	t.errs = append(t.errs, b.errs...)
	p.optimize(c, t)
	p.write(t)
	t.copartitioned = p.copartitioned
	for _, s := range t.stores {
		orDefault(&s.Type, c.StoreType)
		s.headers = s.headers || s.logsHeaders && c.StoreFormat == HeadersFormat
	}
	if c.EnsureExplicitInternalResourceNaming {
		t.ensureExplicitNames(p.generated)
	}
	return t
}

// AddStateStore adds a state store, to be connected to processors by its name:
// see [Processed].
func (b *Builder) AddStateStore(s StateStore) {
	b.add("", func(_ *planNode, t *Topology) { t.AddStateStore(s) })
}

// only returns the one element of an optional argument, or its zero value.
func only[T any](b *Builder, operator string, options []T) (option T) {
	switch len(options) {
	case 0:
	case 1:
		option = options[0]
	default:
		b.errorf("%s: %d options where one is taken", operator, len(options))
	}
	return option
}
