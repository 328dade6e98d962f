package streamstest

import (
	"context"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Fault makes StreamsGroupHeartbeat, StreamsGroupDescribe and StreamsGroupTopologyDescriptionUpdate requests, and those
// of WithMirrorStates, fail as kfake's Cluster.Fault does with all others. The selectors Keys (none: all of these),
// Nodes, Group (or the mirror's name) and When apply, and Err, Count and Observe mean what they do there. A request that fails is not seen by the coordinator, unless Err is
// REQUEST_TIMED_OUT: then it is, and its answer is lost. The first fault that matches answers.
func (b *Broker) Fault(fs ...kfake.Fault) *FaultHandle {
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	h := &FaultHandle{of: &b.faults, changed: make(chan struct{})}
	for _, f := range fs {
		left := f.Count
		if left == 0 {
			left = 1
		}
		err := f.Err
		if err == nil {
			err = kerr.UnknownServerError
		}
		b.faults.all = append(b.faults.all, &fault{Fault: f, err: err, left: left, handle: h})
	}
	return h
}

// FaultHandle refers to the faults of one call to Broker.Fault.
type FaultHandle struct {
	of      *faults
	hits    int
	changed chan struct{} // closed and replaced at every hit
}

// Hits is how many requests the faults have matched so far.
func (h *FaultHandle) Hits() int {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.hits
}

// Wait waits until the faults have matched n requests, or returns the context's error.
func (h *FaultHandle) Wait(ctx context.Context, n int) error {
	for {
		h.of.mu.Lock()
		hits, changed := h.hits, h.changed
		h.of.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Remove ends the faults.
func (h *FaultHandle) Remove() {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.of.all = slices.DeleteFunc(h.of.all, func(f *fault) bool { return f.handle == h })
}

type faults struct {
	mu  sync.Mutex
	all []*fault
}

type fault struct {
	kfake.Fault
	err    *kerr.Error
	left   int // requests; negative: no limit
	handle *FaultHandle
}

// hit returns the fault that answers a request, or nil.
func (fs *faults) hit(node int32, req kmsg.Request, group string) *fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, f := range slices.Clone(fs.all) {
		if f.left == 0 ||
			len(f.Keys) > 0 && !slices.Contains(f.Keys, kmsg.Key(req.Key())) ||
			len(f.Nodes) > 0 && !slices.Contains(f.Nodes, node) ||
			f.Group != "" && f.Group != group ||
			f.When != nil && !f.When(req) {
			continue
		}
		f.left--
		f.handle.hits++
		close(f.handle.changed)
		f.handle.changed = make(chan struct{})
		if !f.Observe {
			return f
		}
	}
	return nil
}

// instead reports whether the request fails before the coordinator sees it.
func (f *fault) instead() bool { return f != nil && f.err != kerr.RequestTimedOut }

func (f *fault) heartbeat(req *kmsg.StreamsGroupHeartbeatRequest) *kmsg.StreamsGroupHeartbeatResponse {
	resp := req.ResponseKind().(*kmsg.StreamsGroupHeartbeatResponse)
	resp.ErrorCode = f.err.Code
	return resp
}
