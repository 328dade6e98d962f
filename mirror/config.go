package mirror

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// Defaults of [Config].
const (
	DefaultBatchPartitions = 1000
	DefaultRequestTimeout  = 30 * time.Second
	DefaultRetryTimeout    = time.Minute
)

// Config is how a [Client] talks to the brokers.
type Config struct {
	// Keys are the API keys of the requests. They are not assigned yet, so they
	// have to be given: ask those who gave you the brokers. Required.
	Keys Keys
	// States are the numbers of the states. Nil: [DraftStateNumbers].
	States StateNumbers

	// BatchPartitions is how many partitions one request names at most. 0:
	// [DefaultBatchPartitions].
	BatchPartitions int
	// RequestTimeout bounds one request to one broker. 0:
	// [DefaultRequestTimeout].
	RequestTimeout time.Duration
	// RetryTimeout bounds for how long one batch is retried, with growing pauses,
	// after errors that pass: brokers that can't be reached, a coordinator that
	// moves or loads. 0: [DefaultRetryTimeout]; negative: until the context ends.
	RetryTimeout time.Duration
	// Logger is told of retries. Nil: slog.Default().
	Logger *slog.Logger
}

// Keys are the API keys of the requests of KIP-1279.
type Keys struct {
	ReadMirrorStates, WriteMirrorStates int16
}

// Validate says what is wrong with the keys. A key that Kafka uses for another
// request is refused: the broker would take one for the other.
func (k Keys) Validate() error {
	var errs []error
	for _, key := range []struct {
		name string
		key  int16
	}{{"ReadMirrorStates", k.ReadMirrorStates}, {"WriteMirrorStates", k.WriteMirrorStates}} {
		if key.key <= 0 {
			errs = append(errs, fmt.Errorf("the API key of %s is %d; it is not assigned yet, so it has to be given", key.name, key.key))
		} else if kmsg.RequestForKey(key.key) != nil {
			errs = append(errs, fmt.Errorf("the API key of %s is %d, which is that of %s", key.name, key.key, kmsg.NameForKey(key.key)))
		}
	}
	if k.ReadMirrorStates == k.WriteMirrorStates && k.ReadMirrorStates > 0 {
		errs = append(errs, fmt.Errorf("both API keys are %d", k.ReadMirrorStates))
	}
	return errors.Join(errs...)
}

// ClientOption makes a Kafka client send requests with these keys, which it
// refuses otherwise. It is kgo.MaxVersions with the latest stable versions, as is
// kgo's default, and the keys beside them.
func (k Keys) ClientOption() kgo.Opt {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(k.ReadMirrorStates, 0)
	versions.SetMaxKeyVersion(k.WriteMirrorStates, 0)
	return kgo.MaxVersions(versions)
}

// sentBy says whether a Kafka client sends requests with these keys.
func (k Keys) sentBy(kafka *kgo.Client) bool {
	versions, _ := kafka.OptValue(kgo.MaxVersions).(*kversion.Versions)
	return versions == nil || versions.HasKey(k.ReadMirrorStates) && versions.HasKey(k.WriteMirrorStates)
}

// name is the request with the key.
func (k Keys) name(key int16) string {
	if key == k.ReadMirrorStates {
		return "ReadMirrorStates"
	}
	return "WriteMirrorStates"
}

// withDefaults returns the configuration with defaults filled in, or all that is
// wrong with it.
func (c Config) withDefaults() (Config, error) {
	errs := []error{c.Keys.Validate(), c.States.Validate()}
	if c.BatchPartitions < 0 {
		errs = append(errs, fmt.Errorf("BatchPartitions %d is negative", c.BatchPartitions))
	}
	if c.RequestTimeout < 0 {
		errs = append(errs, fmt.Errorf("RequestTimeout %v is negative", c.RequestTimeout))
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if c.States == nil {
		c.States = DraftStateNumbers()
	}
	if c.BatchPartitions == 0 {
		c.BatchPartitions = DefaultBatchPartitions
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = DefaultRequestTimeout
	}
	if c.RetryTimeout == 0 {
		c.RetryTimeout = DefaultRetryTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}
