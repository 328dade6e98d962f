package taskmgr

import (
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/odradek-go/odradek/membership"
	"github.com/odradek-go/odradek/state"
)

// Config describes a thread.
type Config struct {
	// Topology is what the thread runs.
	Topology Topology

	// Member describes the thread as a member of the group.
	Member membership.Config

	// Client are the options of the thread's clients: seed brokers, TLS, SASL.
	Client []kgo.Opt

	// ClientID names the thread to the broker, and in logs.
	ClientID string

	// Directory is where persistent stores are; nil where the topology has none.
	Directory *Directory

	// Disk is what persistent stores share; nil where the topology has none.
	Disk *state.Disk

	// Global are the instance's global stores; nil where the topology has none.
	Global *GlobalState

	// Readable is where the stores of the thread's tasks can be found by those who
	// read them on other goroutines; nil: nobody does.
	Readable *state.Registry

	// OnEndpoints is told which source partitions each endpoint of the group has,
	// whenever that has changed. It must return quickly. May be nil.
	OnEndpoints func(epoch int32, endpoints []membership.EndpointPartitions)

	// CacheBytes is how much memory changes of stores are held back in, 0 for
	// none (statestore.cache.max.bytes, divided by the number of threads).
	CacheBytes int64

	// CommitInterval is how often offsets are committed (commit.interval.ms).
	CommitInterval time.Duration

	// TransactionalID has all that the thread does committed in transactions, under
	// this id, and only what is committed read (exactly_once_v2, KIP-447). No two
	// threads that run have the same; a thread that replaces another one does. Empty:
	// at least once.
	TransactionalID string

	// TransactionTimeout is after how long the broker aborts a transaction that goes
	// on (transaction.timeout.ms); 0: DefaultTransactionTimeout.
	TransactionTimeout time.Duration

	// Reset is where a partition without a committed offset begins
	// (auto.offset.reset).
	Reset Reset

	// CloseTimeout bounds how long the thread takes to end after its context
	// has: to commit, to close its tasks, and to leave the group.
	CloseTimeout time.Duration

	// Leave is how the member leaves the group when the thread ends.
	Leave membership.LeaveMode

	// OnFailure is asked when the thread has failed of itself, after its tasks
	// are closed: true stops the whole application, on every host.
	OnFailure func(err error) (shutdownApplication bool)

	// OnRecordError is asked about a record that its task could not process, with
	// the error. It may send records to out, such as a dead letter. Nil goes on
	// with the next record, and any error fails the thread. It is not asked where
	// the record is not to blame. A nil function fails the thread.
	OnRecordError func(task membership.TaskID, rec *kgo.Record, err error, out Collector) error

	// OnSendError is asked about a record that the broker refused: true goes on
	// without it. It is called from one of the client's goroutines and must not
	// block. A nil function fails the thread.
	OnSendError func(rec *kgo.Record, err error) bool

	// OnRestore is told how stores are restored, from one of the thread's
	// goroutines. It must return quickly. May be nil.
	OnRestore func(RestoreProgress)

	// Paused has the thread begin paused; see Thread.SetPaused.
	Paused bool

	// MaxTaskIdle is how long a task waits for records of a partition that has
	// none (max.task.idle.ms); negative: not at all.
	MaxTaskIdle time.Duration

	// OnRunning is called from the thread's goroutine when the thread begins to
	// process all that it is assigned, and when it no longer does.
	OnRunning func(running bool)

	// Logger takes what the thread has to say; never nil.
	Logger *slog.Logger
}
