package streams

// Processed says how a processor is put into the DSL.
type Processed struct {
	// Name is the processor's; empty: generated.
	Name string

	// Stores are the names of stores that the processor uses and that
	// [Builder.AddStateStore] has added.
	Stores []string

	// NewStores are stores that are added along with the processor, and that it
	// uses, the stores() of a ConnectedStoreProvider in Java (KIP-401).
	NewStores []StateStore
}

// name names the processor. A given name uses up no number: here Java differs
// from its other operators.
func (o Processed) name(p *plan, prefix string) string {
	if o.Name != "" {
		return o.Name
	}
	return p.generate(prefix)
}

// connect connects the processor of that name with its stores.
func (o Processed) connect(t *Topology, name string) {
	for _, s := range o.NewStores {
		t.AddStateStore(s, name)
	}
	t.ConnectProcessorAndStateStores(name, o.Stores...)
}

// Process sends the stream through a processor (KIP-820). Each task calls
// newProcessor once. Because the processor may change keys, what depends on keys
// behind it goes through a repartition topic; [ProcessValues] has no need for it.
func Process[K, V, KOut, VOut any](s *KStream[K, V], newProcessor func() Processor[K, V, KOut, VOut], options ...Processed) *KStream[KOut, VOut] {
	o := only(s.b, "Process", options)
	name := o.name(&s.b.plan, processorPrefix)
	n := s.b.add(name, func(n *planNode, t *Topology) {
		AddProcessor(t, name, newProcessor, n.parentNames()...)
		o.connect(t, name)
	}, s.node)
	n.process = true
	return &KStream[KOut, VOut]{b: s.b, node: n, sources: s.sources, rekeyed: true}
}

// ProcessValues sends the stream through a processor that can't change keys
// (KIP-820). Each task calls newProcessor once.
func ProcessValues[K, V, VOut any](s *KStream[K, V], newProcessor func() FixedKeyProcessor[K, V, VOut], options ...Processed) *KStream[K, VOut] {
	o := only(s.b, "ProcessValues", options)
	name := o.name(&s.b.plan, processValuesPrefix)
	n := s.b.add(name, func(n *planNode, t *Topology) {
		addFixedKeyProcessor(t, name, newProcessor, n.parentNames())
		o.connect(t, name)
	}, s.node)
	n.processValues = true
	return &KStream[K, VOut]{b: s.b, node: n, sources: s.sources, keys: s.keys, rekeyed: s.rekeyed}
}
