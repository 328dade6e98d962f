package streams

// finalEmission knows up to which time results have been sent on of windows that
// close (KIP-825). It is kept in the metadata of commits, under the store's name.
type finalEmission struct {
	ctx   *taskContext
	store string
	last  int64 // −1: none
	next  int64 // when to look again, by the wall clock
}

func newFinalEmission(ctx *taskContext, store string) *finalEmission {
	e := &finalEmission{ctx: ctx, store: store, last: -1}
	if last, ok := ctx.ProcessorMetadata(store); ok {
		e.last = last
	}
	return e
}

// due says whether to look for windows that have closed up to a time.
func (e *finalEmission) due(closeTime, now int64) bool {
	if now < e.next {
		return false
	}
	e.next = now + e.ctx.EmitInterval
	return e.last < 0 || e.last < closeTime
}

// emitted says that the results are sent on of the windows that have closed up to a
// time.
func (e *finalEmission) emitted(closeTime int64) {
	e.last = closeTime
	e.ctx.SetProcessorMetadata(e.store, closeTime)
}
