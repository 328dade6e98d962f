package streams

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/iq"
	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
	"github.com/odradek-go/odradek/taskmgr"
)

// Config is an application's configuration. Zero values mean Kafka Streams'
// defaults, unless a field says otherwise.
type Config struct {
	// ApplicationID is the id of the streams group, and what the names of
	// internal topics begin with (application.id). It is required.
	ApplicationID string

	// Brokers are host:port addresses to find the cluster at
	// (bootstrap.servers). They are required.
	Brokers []string

	// ClientID names the application's clients to the broker (client.id);
	// empty: the application id and a random part.
	ClientID string

	// NumStreamThreads is how many members the application has in the group,
	// each with tasks of its own (num.stream.threads); 0: one.
	NumStreamThreads int

	// ProcessingGuarantee says what becomes of a record when something fails
	// (processing.guarantee). The zero value is Kafka Streams' default, at least once.
	ProcessingGuarantee ProcessingGuarantee

	// TransactionTimeout is after how long the broker aborts a transaction that goes
	// on, as when its process has died (transaction.timeout.ms). Until then nobody
	// reads on behind it. 0: 10 s. It must be longer than CommitInterval and is used
	// with ExactlyOnceV2 only.
	TransactionTimeout time.Duration

	// CommitInterval is how often what was processed is committed
	// (commit.interval.ms); 0: 30 s, and with ExactlyOnceV2 100 ms.
	CommitInterval time.Duration

	// MaxPollInterval is how long a thread may go without progress before its
	// member leaves the group (max.poll.interval.ms); 0: 5 min.
	MaxPollInterval time.Duration

	// ReplicationFactor is that of internal topics (replication.factor); 0:
	// the broker's default.
	ReplicationFactor int16

	// InternalTopicConfig are settings of all internal topics, over the defaults
	// ("topic." in front of a topic's setting).
	InternalTopicConfig map[string]string

	// WindowStoreChangelogAdditionalRetention is how much longer than the stores
	// the changelogs of windows and sessions keep them, for late clocks
	// (windowstore.changelog.additional.retention.ms); 0: a day.
	WindowStoreChangelogAdditionalRetention time.Duration

	// StateDir is where persistent state stores are, in a directory of the
	// application's id (state.dir). The running application locks it: no two
	// instances share one. Empty: "odradek" in the system's directory for
	// temporary files, which is not where gigabytes should be. Under exactly once
	// the process id is kept there too, of which transactional ids are made.
	StateDir string

	// StateCleanupDelay is how long the state of a task is kept on disk that has
	// moved elsewhere (state.cleanup.delay.ms); 0: 10 min.
	StateCleanupDelay time.Duration

	// StateStoreCacheMaxBytes is how much memory all stream threads together hold
	// changes of stores back in (statestore.cache.max.bytes); 0: 10 MiB.
	// Negative: none, and each change is passed on at once.
	StateStoreCacheMaxBytes int64

	// Disk are the settings that all persistent stores share: how much memory
	// they take above all.
	Disk state.DiskOptions

	// MaxTaskIdle is how long a task that reads several partitions waits for
	// records of one that has none, to process all in the order of their times
	// (max.task.idle.ms). 0: as long as the broker is known to have some.
	// Negative: not at all.
	MaxTaskIdle time.Duration

	// AutoOffsetReset is where an input partition without a committed offset
	// begins (auto.offset.reset); the zero value: at its start, which is
	// Kafka Streams' default.
	AutoOffsetReset OffsetReset

	// CloseTimeout bounds how long Run takes to commit, close and leave once
	// its context has ended; 0: 30 s. There is no such limit in Java's close().
	CloseTimeout time.Duration

	// StartTimeout bounds how long no broker may be reachable when the
	// application starts; 0: 30 s. Later the brokers are waited for without a
	// limit.
	StartTimeout time.Duration

	// GroupInstanceID makes the members static: an instance that restarts within
	// the session time-out finds its tasks again, with nothing moved meanwhile
	// (group.instance.id; Kafka 4.4). Each thread appends its number. Empty:
	// members are dynamic.
	GroupInstanceID string

	// Leave is how members leave the group when Run ends. The zero value is
	// Kafka Streams' default: dynamic members leave for good, static ones for
	// a while.
	Leave membership.LeaveMode

	// ApplicationServer is the host:port at which other instances reach this
	// one's interactive queries; the group makes it known (application.server).
	// Nothing listens there because of it: see Queries. Empty: none.
	ApplicationServer string

	// Queries are the settings of interactive queries: see [App.Queries].
	Queries iq.Options

	// ClientTags describe where the instance runs, such as its zone, for the
	// placing of standby tasks (client.tag.*).
	ClientTags map[string]string

	// TopologyDescriptionPushDisabled keeps the topology's description from the
	// broker, which asks for it where it can show it to people (KIP-1331;
	// topology.description.push.enabled).
	TopologyDescriptionPushDisabled bool

	// RackID is the rack of the instance's clients (client.rack); empty: none.
	RackID string

	// UncaughtExceptionHandler decides what a stream thread's failure leads to
	// (KIP-671); nil: ShutdownClient. It may be called by several threads at
	// once. A shutdown that another member requested is not asked about.
	UncaughtExceptionHandler func(err error) UncaughtExceptionResponse

	// DeserializationExceptionHandler decides about a record of a source topic
	// that a serde can't read; nil: Fail.
	DeserializationExceptionHandler ExceptionHandler

	// ProcessingExceptionHandler decides about a record that a processor returned
	// an error for; nil: Fail. A panic always fails the thread.
	ProcessingExceptionHandler ExceptionHandler

	// ProductionExceptionHandler decides about a record that can't be serialized
	// for a sink, or that the broker refused, such as one that is too large;
	// nil: Fail. It may be called from several goroutines and must not block.
	ProductionExceptionHandler ExceptionHandler

	// DeadLetterQueueTopic is a topic that gets the source record of each error
	// that a handler is for, raw, with headers that say what failed, before the
	// thread goes on or fails (errors.dead.letter.queue.topic.name, KIP-1034).
	// It must exist. Empty: none.
	DeadLetterQueueTopic string

	// ClientOptions are given to all Kafka clients: TLS, SASL, timeouts, hooks.
	// The options that Odradek itself depends on come after them and win.
	ClientOptions []kgo.Opt

	// RestoreListener is told how state stores are restored from their
	// changelogs (StateRestoreListener): when that begins, after each batch, and
	// when it ends. It is called from several goroutines and must return
	// quickly. Nil: nobody.
	RestoreListener func(RestoreProgress)

	// StateListener is told each change of the application's state, one at a
	// time. It must return quickly and not call the App. Nil: nobody.
	StateListener func(from, to State)

	// Logger takes what the application has to say; nil: slog.Default().
	Logger *slog.Logger
}

// DefaultStateStoreCacheMaxBytes is Config.StateStoreCacheMaxBytes unless it is
// given.
const DefaultStateStoreCacheMaxBytes = 10 << 20

// ProcessingGuarantee says what becomes of a record when something fails.
type ProcessingGuarantee int8

// The guarantees.
const (
	// AtLeastOnce: each record is processed, and some of those that were not committed
	// before a failure are processed again.
	AtLeastOnce ProcessingGuarantee = iota

	// ExactlyOnceV2: what comes of a record is seen once, in other topics and in stores,
	// by readers of what is committed. A stream thread commits all that it does in
	// transactions (KIP-447), and the application itself reads only what is committed.
	// Interactive queries of active stores, though, see what is not committed yet, as in
	// Java.
	ExactlyOnceV2
)

// String is the guarantee's name in Java.
func (g ProcessingGuarantee) String() string {
	switch g {
	case AtLeastOnce:
		return "at_least_once"
	case ExactlyOnceV2:
		return "exactly_once_v2"
	}
	return fmt.Sprintf("ProcessingGuarantee(%d)", int8(g))
}

// UncaughtExceptionResponse is what the failure of a stream thread leads to.
type UncaughtExceptionResponse int8

// The responses.
const (
	ShutdownClient      UncaughtExceptionResponse = iota // this App ends with the error
	ReplaceThread                                        // a new thread takes the failed one's place
	ShutdownApplication                                  // every member of the group ends, on all hosts
)

// withDefaults returns the configuration with defaults filled in, or all that is
// wrong with it.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	err := checkTopicName(c.ApplicationID)
	require(err == nil, "ApplicationID %q, which begins the names of topics: %v", c.ApplicationID, err)
	require(len(c.Brokers) > 0, "Brokers is empty")
	require(!slices.Contains(c.Brokers, ""), "Brokers %q has an empty address", c.Brokers)
	require(c.NumStreamThreads >= 0, "NumStreamThreads %d is negative", c.NumStreamThreads)
	require(c.ProcessingGuarantee == AtLeastOnce || c.ProcessingGuarantee == ExactlyOnceV2, "ProcessingGuarantee is unknown: %v", c.ProcessingGuarantee)
	require(c.TransactionTimeout >= 0, "TransactionTimeout %v is negative", c.TransactionTimeout)
	require(c.CommitInterval >= 0, "CommitInterval %v is negative", c.CommitInterval)
	require(c.MaxPollInterval >= 0, "MaxPollInterval %v is negative", c.MaxPollInterval)
	require(c.CloseTimeout >= 0, "CloseTimeout %v is negative", c.CloseTimeout)
	require(c.StartTimeout >= 0, "StartTimeout %v is negative", c.StartTimeout)
	require(c.ReplicationFactor >= -1, "ReplicationFactor %d is negative", c.ReplicationFactor)
	require(c.WindowStoreChangelogAdditionalRetention >= 0, "WindowStoreChangelogAdditionalRetention %v is negative", c.WindowStoreChangelogAdditionalRetention)
	require(c.StateCleanupDelay >= 0, "StateCleanupDelay %v is negative", c.StateCleanupDelay)
	if c.ProcessingGuarantee == ExactlyOnceV2 {
		orDefault(&c.CommitInterval, 100*time.Millisecond)
		orDefault(&c.TransactionTimeout, taskmgr.DefaultTransactionTimeout)
		require(c.TransactionTimeout >= c.CommitInterval, "TransactionTimeout %v is less than CommitInterval %v: each transaction would be aborted", c.TransactionTimeout, c.CommitInterval)
	}
	err = c.AutoOffsetReset.check()
	require(err == nil, "AutoOffsetReset: %v", err)
	_, err = c.endpoint()
	require(err == nil, "ApplicationServer %q is not host:port: %v", c.ApplicationServer, err)
	require(!c.Queries.Listen || c.ApplicationServer != "" || c.Queries.Server.Address != "", "Queries.Listen is set, but neither ApplicationServer nor Queries.Server.Address says where")
	if len(errs) > 0 {
		return c, fmt.Errorf("%w: %w", ErrConfig, errors.Join(errs...))
	}
	orDefault(&c.NumStreamThreads, 1)
	orDefault(&c.CommitInterval, 30*time.Second)
	orDefault(&c.CloseTimeout, 30*time.Second)
	orDefault(&c.StateDir, filepath.Join(os.TempDir(), "odradek"))
	orDefault(&c.StateCleanupDelay, 10*time.Minute)
	orDefault(&c.StateStoreCacheMaxBytes, DefaultStateStoreCacheMaxBytes)
	orDefault(&c.Logger, slog.Default())
	return c, nil
}

func (c *Config) internalTopics() internalTopics {
	i := internalTopics{c.ApplicationID, c.ReplicationFactor, c.InternalTopicConfig, c.WindowStoreChangelogAdditionalRetention}
	orDefault(&i.replicationFactor, -1)
	orDefault(&i.additionalRetention, 24*time.Hour)
	return i
}

// transactionalID is that of a thread of a process, counted from 1, as Java's; empty
// where there are no transactions.
func (c *Config) transactionalID(process string, thread int) string {
	if c.ProcessingGuarantee != ExactlyOnceV2 {
		return ""
	}
	return fmt.Sprintf("%s-%s-%d", c.ApplicationID, process, thread)
}

// endpoint is ApplicationServer in parts, nil where there is none.
func (c *Config) endpoint() (*membership.Endpoint, error) {
	if c.ApplicationServer == "" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(c.ApplicationServer)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	if host == "" || n == 0 {
		return nil, errors.New("host and port are needed")
	}
	return &membership.Endpoint{Host: host, Port: uint16(n)}, nil
}

// instanceID is that of a thread, counted from 1; empty for a dynamic member.
func (c *Config) instanceID(thread int) string {
	if c.GroupInstanceID == "" {
		return ""
	}
	return fmt.Sprintf("%s-%d", c.GroupInstanceID, thread)
}

func orDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// clientOptions are those of every client of the application.
func (c *Config) clientOptions() []kgo.Opt {
	opts := []kgo.Opt{
		// As Java's producer: uncompressed unless asked for, and at most 32 MiB
		// waiting for the broker.
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(maxBufferedRecords),
		kgo.MaxBufferedBytes(32 << 20),
		// As Java's consumer. There is one fetch under way to a broker, and a new
		// task's partitions have to wait until it is answered.
		kgo.FetchMaxWait(500 * time.Millisecond),
		// A new task's partitions are fetched only after the next metadata
		// request, which kgo sends at most once in that time: by default 5 s,
		// in which the task would stand still.
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	opts = append(append(opts, c.ClientOptions...), kgo.SeedBrokers(c.Brokers...))
	if c.RackID != "" {
		opts = append(opts, kgo.Rack(c.RackID))
	}
	return opts
}

// maxBufferedRecords is large enough that the limit in bytes is the one that
// counts for all but the smallest records.
const maxBufferedRecords = 100_000

// RestoreProgress says how far a state store has been restored.
type RestoreProgress = taskmgr.RestoreProgress

// RestorePhase is what is told of a store's restoration.
type RestorePhase = taskmgr.RestorePhase

// The phases.
const (
	RestoreBegin     = taskmgr.RestoreBegin     // reading the changelog begins
	RestoreBatch     = taskmgr.RestoreBatch     // some of it was written to the store
	RestoreEnd       = taskmgr.RestoreEnd       // the store is complete
	RestoreSuspended = taskmgr.RestoreSuspended // the task was taken away, or failed, before that
)
