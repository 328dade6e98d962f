package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KIP-1279 says that brokers and controllers listen for the requests, but not how
// a client finds the one that answers for a mirror, or for a partition of it. So
// the brokers are asked one after the other, beginning with the one that answered
// last: whoever has nothing to do with it says NOT_COORDINATOR or the like, which
// is how Kafka's brokers send clients elsewhere. kgo.Client.Request doesn't know
// the requests; kgo.Broker.Request sends them.

// exchange asks brokers until take says, with nil, that there is nothing more to
// ask. build makes the request anew each time. What take says with an error is
// what the answer says: go elsewhere, wait, or give up.
func (c *Client) exchange(ctx context.Context, mirror string, key int16, build func() kmsg.Request, take func(kmsg.Response) error) error {
	var last error // before the context ended
	err := backoff.RetryNotify(func() error {
		err := c.walk(ctx, mirror, key, build, take)
		if ctx.Err() == nil {
			last = err
		}
		if err != nil && !c.again(ctx, err) {
			return backoff.Permanent(err)
		}
		return err
	}, c.retries(ctx), func(err error, wait time.Duration) {
		c.cfg.Logger.Warn("a request about a mirror is retried", "mirror", mirror, "request", c.cfg.Keys.name(key), "in", wait, "err", err)
	})
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
		if last != nil {
			err = fmt.Errorf("%w; before that: %w", err, last)
		}
	}
	return fmt.Errorf("%s of mirror %q: %w", c.cfg.Keys.name(key), mirror, err)
}

// walk asks the brokers once.
func (c *Client) walk(ctx context.Context, mirror string, key int16, build func() kmsg.Request, take func(kmsg.Response) error) error {
	brokers, err := c.brokers(ctx, mirror)
	if err != nil {
		return fmt.Errorf("look for brokers: %w", err)
	}
	var worst error
	for _, broker := range brokers {
		err := c.ask(ctx, broker, key, build(), take)
		if err == nil {
			c.mu.Lock()
			c.answers[mirror] = broker
			c.mu.Unlock()
			return nil
		}
		if worst == nil || rank(err) > rank(worst) {
			worst = fmt.Errorf("broker %d: %w", broker, err)
		}
		if _, answered := errors.AsType[*kerr.Error](err); ctx.Err() != nil || answered && !elsewhere(err) {
			break // whoever says so is the one to ask, now or later
		}
	}
	return worst
}

// rank says which of several brokers' errors tells most: a broker that can't be
// reached may be the one that would have answered.
func rank(err error) int {
	_, answered := errors.AsType[*kerr.Error](err)
	switch {
	case errors.Is(err, ErrUnsupported):
		return 0
	case elsewhere(err):
		return 1
	case !answered:
		return 2
	}
	return 3
}

// again says whether a walk that ended with err is worth another.
func (c *Client) again(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, kgo.ErrClientClosed) || errors.Is(err, ErrUnsupported) {
		return false
	}
	_, answered := errors.AsType[*kerr.Error](err)
	return !answered || passes(err)
}

func (c *Client) retries(ctx context.Context) backoff.BackOff {
	return backoff.WithContext(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(max(c.cfg.RetryTimeout, 0)), // 0: no limit
	), ctx)
}

// brokers are all brokers, in the order in which to ask them.
func (c *Client) brokers(ctx context.Context, mirror string) ([]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	meta, err := kadm.NewClient(c.kafka).BrokerMetadata(ctx)
	if err != nil {
		return nil, err
	}
	brokers := meta.Brokers.NodeIDs()
	if len(brokers) == 0 {
		return nil, errors.New("the cluster has none")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.answers[mirror]; ok {
		if i := slices.Index(brokers, last); i > 0 {
			brokers[0], brokers[i] = brokers[i], brokers[0]
		}
	}
	return brokers, nil
}

// ask sends one request to one broker.
func (c *Client) ask(ctx context.Context, broker int32, key int16, req kmsg.Request, take func(kmsg.Response) error) error {
	if err := c.announced(ctx, broker, key); err != nil {
		return err
	}
	resp, err := c.send(ctx, broker, req)
	if err != nil {
		return err
	}
	return take(resp)
}

// announced checks that a broker knows the request under our key, once for each
// broker.
func (c *Client) announced(ctx context.Context, broker int32, key int16) error {
	c.mu.Lock()
	_, known := c.announces[announcement{broker, key}]
	c.mu.Unlock()
	if known {
		return nil
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "odradek", "0" // brokers refuse empty ones
	answer, err := c.send(ctx, broker, req)
	if err != nil {
		return err
	}
	resp := answer.(*kmsg.ApiVersionsResponse)
	if err := errorForCode(resp.ErrorCode); err != nil {
		return fmt.Errorf("ApiVersions: %w", err)
	}
	i := slices.IndexFunc(resp.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == key })
	if i < 0 {
		return fmt.Errorf("%w: nothing has the API key %d; give the key that these brokers have for %s, if they have it", ErrUnsupported, key, c.cfg.Keys.name(key))
	}
	if lowest := resp.ApiKeys[i].MinVersion; lowest > 0 {
		return fmt.Errorf("%w: the lowest version that it has of API key %d is %d, and this client speaks 0", ErrUnsupported, key, lowest)
	}
	c.mu.Lock()
	c.announces[announcement{broker, key}] = struct{}{}
	c.mu.Unlock()
	return nil
}

func (c *Client) send(ctx context.Context, broker int32, req kmsg.Request) (kmsg.Response, error) {
	limited, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	resp, err := c.kafka.Broker(int(broker)).Request(limited, req)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("no answer within %v: %w", c.cfg.RequestTimeout, err)
	}
	return resp, err
}
