package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kgo.Client.Request doesn't know requests 88 and 93, so they go to the
// coordinator's broker, which the loop finds by itself. Requests to a broker
// aren't retried by kgo; the member decides about that.

// findCoordinator asks one broker, the next one at every lookup.
func (l *Loop) findCoordinator(ctx context.Context, n int, seq uint64) {
	brokers := append(l.client.DiscoveredBrokers(), l.client.SeedBrokers()...)
	if len(brokers) == 0 {
		l.post(func(m *Member, now time.Time) {
			m.CoordinatorFailed(now, seq, fmt.Errorf("finding the group coordinator: %w", errors.New("the client has no brokers")))
		})
		return
	}
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey = l.cfg.Group
	req.CoordinatorKeys = []string{l.cfg.Group} // version 4 and later
	resp, err := exchange[*kmsg.FindCoordinatorResponse](ctx, l, brokers[n%len(brokers)], req)
	if err != nil {
		l.log.Debug("finding the group coordinator failed", "err", err)
		l.post(func(m *Member, now time.Time) {
			err := fmt.Errorf("finding the group coordinator: %w", err)
			l.outOfTouch(ctx, err)
			m.CoordinatorFailed(now, seq, err)
		})
		return
	}
	node, code, message := resp.NodeID, resp.ErrorCode, text(resp.ErrorMessage)
	if len(resp.Coordinators) > 0 {
		c := &resp.Coordinators[0]
		node, code, message = c.NodeID, c.ErrorCode, text(c.ErrorMessage)
	}
	l.log.Debug("group coordinator", "broker", node, "code", code)
	l.post(func(m *Member, now time.Time) { m.CoordinatorAnswered(now, seq, node, code, message) })
}

func (l *Loop) heartbeat(ctx context.Context, node int32, seq uint64, req *kmsg.StreamsGroupHeartbeatRequest) {
	resp, err := exchange[*kmsg.StreamsGroupHeartbeatResponse](ctx, l, l.client.Broker(int(node)), versioned{req})
	if err != nil {
		if ctx.Err() == nil {
			l.client.ForceMetadataRefresh() // the broker may have a new address
		}
		l.log.Debug("heartbeat failed", "broker", node, "err", err)
		l.post(func(m *Member, now time.Time) {
			err := fmt.Errorf("heartbeat to the group coordinator, broker %d: %w", node, err)
			l.outOfTouch(ctx, err)
			m.HeartbeatFailed(now, seq, err)
		})
		return
	}
	l.post(func(m *Member, now time.Time) {
		if l.silent {
			l.silent = false
			l.log.Info("the group coordinator answers again", "broker", node)
		}
		m.HeartbeatAnswered(now, seq, resp)
	})
}

// outOfTouch says once, for all the retries, that the coordinator is silent.
func (l *Loop) outOfTouch(ctx context.Context, err error) {
	if !l.silent && ctx.Err() == nil {
		l.silent = true
		l.log.Warn("the group coordinator doesn't answer; it is retried", "err", err)
	}
}

func (l *Loop) describe(ctx context.Context, node int32, seq uint64, req *kmsg.StreamsGroupTopologyDescriptionUpdateRequest) {
	resp, err := exchange[*kmsg.StreamsGroupTopologyDescriptionUpdateResponse](ctx, l, l.client.Broker(int(node)), req)
	if err != nil {
		l.post(func(m *Member, now time.Time) { m.DescriptionFailed(now, seq, err) })
		return
	}
	l.post(func(m *Member, now time.Time) { m.DescriptionAnswered(now, seq, resp) })
}

func (l *Loop) inquire(ctx context.Context, node int32, seq uint64, req *kmsg.StreamsGroupDescribeRequest) {
	resp, err := exchange[*kmsg.StreamsGroupDescribeResponse](ctx, l, l.client.Broker(int(node)), req)
	if err != nil {
		l.post(func(m *Member, now time.Time) { m.InquiryFailed(now, seq, err) })
		return
	}
	l.post(func(m *Member, now time.Time) { m.InquiryAnswered(now, seq, resp) })
}

// versioned is a heartbeat that fits itself to the version which kgo settles
// on when it writes it: only then is it known what the coordinator speaks.
type versioned struct {
	*kmsg.StreamsGroupHeartbeatRequest
}

func (r versioned) SetVersion(v int16) {
	r.StreamsGroupHeartbeatRequest.SetVersion(v)
	if v == 0 {
		forVersion0(r.StreamsGroupHeartbeatRequest)
	}
}

// exchange sends one request within the request time-out.
func exchange[R kmsg.Response](ctx context.Context, l *Loop, b *kgo.Broker, req kmsg.Request) (R, error) {
	var none R
	limited, cancel := context.WithTimeout(ctx, l.cfg.RequestTimeout)
	defer cancel()
	resp, err := b.Request(limited, req)
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return none, fmt.Errorf("no answer within %v: %w", l.cfg.RequestTimeout, err)
		}
		return none, l.explain(ctx, b, req.Key(), err)
	}
	out, ok := resp.(R)
	if !ok {
		return none, fmt.Errorf("unexpected response %T", resp)
	}
	return out, nil
}

// explain tells failures of the connection from a broker that doesn't know the
// request. kgo's error for that isn't exported, so the broker is asked.
func (l *Loop) explain(ctx context.Context, b *kgo.Broker, key int16, err error) error {
	if errors.Is(err, kgo.ErrClientClosed) {
		return fmt.Errorf("%w: %w", errClientClosed, err)
	}
	if _, ok := errors.AsType[net.Error](err); ok || ctx.Err() != nil || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, l.cfg.RequestTimeout)
	defer cancel()
	ask := kmsg.NewPtrApiVersionsRequest()
	ask.ClientSoftwareName, ask.ClientSoftwareVersion = "odradek", "0" // brokers refuse empty ones
	resp, askErr := b.Request(limited, ask)
	if askErr != nil {
		return err
	}
	versions, ok := resp.(*kmsg.ApiVersionsResponse)
	if !ok || versions.ErrorCode != 0 {
		return err
	}
	if slices.ContainsFunc(versions.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == key }) {
		return err
	}
	return fmt.Errorf("%w: the broker doesn't know request %s (%d): upgrade the brokers, or enable the streams group protocol on them",
		ErrUnsupported, kmsg.NameForKey(key), key)
}
