package membership

import "time"

const (
	backoffInitial = 100 * time.Millisecond // retry.backoff.ms
	backoffMax     = time.Second            // retry.backoff.max.ms
	backoffJitter  = 0.2
)

// backoff is an exponential back-off without a clock: 100 ms doubling to 1 s,
// each ± 20 % (Java's retry.backoff.ms and retry.backoff.max.ms).
type backoff struct{ failures int }

// next returns how long to wait after one more failure. random is in [0,1).
func (b *backoff) next(random float64) time.Duration {
	d := min(backoffInitial<<min(b.failures, 8), backoffMax)
	b.failures++
	return time.Duration(float64(d) * (1 - backoffJitter + 2*backoffJitter*random))
}

// nextFree is next for what may be tried again at once the first time.
func (b *backoff) nextFree(random float64) time.Duration {
	if b.failures == 0 {
		b.failures = 1
		return 0
	}
	b.failures--
	d := b.next(random)
	b.failures++
	return d
}

func (b *backoff) reset() { b.failures = 0 }
