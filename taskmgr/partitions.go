package taskmgr

import (
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// partitionsAge is how long a topic's number of partitions counts as known, as
	// long as Java's metadata.max.age.ms.
	partitionsAge = 5 * time.Minute

	// growthDelay is how long new partitions are left alone after we know them, in
	// which the client that produces gets to know them too.
	growthDelay = 10 * time.Second
)

// partitionCount is what is known of a topic's number of partitions.
type partitionCount struct {
	n     int
	until time.Time // when to look again
	grows bool      // there are more, which are left alone until then
}

func (p *producer) Partitions(topic string) (int, error) {
	known := p.partitions[topic]
	if known.n > 0 && time.Now().Before(known.until) {
		return known.n, nil
	}
	n, err := p.fetchPartitions(topic)
	if err != nil {
		return 0, fmt.Errorf("look up the partitions of topic %q: %w", topic, err)
	}
	if known.n > 0 && n > known.n && !known.grows {
		p.client.ForceMetadataRefresh()
		known.until, known.grows = time.Now().Add(growthDelay), true
	} else {
		known = partitionCount{n: n, until: time.Now().Add(partitionsAge)}
	}
	p.partitions[topic] = known
	return known.n, nil
}

func (p *producer) fetchPartitions(topic string) (n int, err error) {
	err = backoff.Retry(func() error {
		ts, err := fetchTopics(p.ctx, p.client, []string{topic})
		if err != nil && !retriable(err) {
			return backoff.Permanent(err)
		}
		n = int(ts[topic].partitions)
		return err
	}, retries(p.ctx, listTimeout))
	return n, err
}
