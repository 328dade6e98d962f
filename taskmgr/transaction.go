package taskmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// DefaultTransactionTimeout is Kafka Streams' transaction.timeout.ms.
const DefaultTransactionTimeout = 10 * time.Second

// transactions make what a producer sends part of transactions (KIP-129, KIP-447),
// one after the other. Each begins with its first record.
//
// They have a client of their own, whose producer is the transactional id's. To
// abort, that client is thrown away and the next one is given the same id: the broker
// then ends whatever the last one left open, waits until that is complete, and takes
// nothing from it any more, not even what is still on its way. So one path serves all
// failures, whatever state a client's producer is in, and it doesn't matter whether a
// commit whose answer is missing got through.
type transactions struct {
	id       string // the transactional id
	timeout  time.Duration
	opts     []kgo.Opt // of the client
	open     bool      // records were sent that are not committed
	undoing  bool      // what is sent is thrown away, until the abort
	explicit bool      // the broker must be told that offsets will be in a transaction
	told     bool      // it was

	// producer is whose the open transaction is. A client whose producer the broker
	// gave another epoch meanwhile has lost the transaction's beginning.
	producer struct {
		id    int64
		epoch int16
	}
}

// producerFenced says whether the broker takes nothing from a producer any more:
// another has its transactional id, or its transaction has timed out.
func producerFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.InvalidProducerIDMapping)
}

// errProducerChanged says that a client has begun anew in the middle of a transaction.
var errProducerChanged = errors.New("the producer's epoch has changed in the transaction")

// passing says whether what a transaction met may not happen again when the same is
// done in another.
func passing(err error) bool {
	for _, e := range []error{
		kerr.TransactionAbortable, kerr.InvalidTxnState, kerr.UnknownProducerID, kerr.OutOfOrderSequenceNumber,
		kerr.OperationNotAttempted, kerr.UnknownServerError,
		kgo.ErrRecordTimeout, kgo.ErrRecordRetries, kgo.ErrAborting, errProducerChanged,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return retriable(err)
}

// transactional says whether there are transactions.
func (p *producer) transactional() bool { return p.txn != nil }

// inTransaction says whether records were sent that are not committed.
func (p *producer) inTransaction() bool { return p.txn != nil && p.txn.open }

// begin begins a transaction unless there is one.
func (p *producer) begin() error {
	if p.txn.open {
		return nil
	}
	err := backoff.Retry(func() error {
		err := p.connect(p.ctx)
		if err == nil || retriable(err) {
			return err
		}
		return backoff.Permanent(err)
	}, retries(p.ctx, taskTimeout))
	if err == nil {
		err = p.sender.BeginTransaction()
	}
	if err != nil {
		return p.txn.fail("begin", err)
	}
	p.txn.open, p.txn.told = true, false
	p.sent.stored.Store(0)
	p.sent.ignored.Store(nil)
	return nil
}

// connect has a client whose producer is the transactional id's. When it returns, the
// transactions of others with this id have ended.
func (p *producer) connect(ctx context.Context) (err error) {
	if p.sender == nil {
		if p.txn.explicit, err = explicitOffsets(ctx, p.client); err != nil {
			return err
		}
		opts := append(slices.Clone(p.txn.opts),
			kgo.RecordPartitioner(Partitioner()),
			kgo.TransactionalID(p.txn.id),
			kgo.TransactionTimeout(p.txn.timeout),
		)
		if p.txn.explicit {
			// The next version tells the broker by itself, where it may.
			versions := kversion.Tip()
			versions.SetMaxKeyVersion(kmsg.TxnOffsetCommit.Int16(), 4)
			opts = append(opts, kgo.MaxVersions(versions))
		}
		client, err := kgo.NewClient(opts...)
		if err != nil {
			return err
		}
		p.sendWith(client)
	}
	p.txn.producer.id, p.txn.producer.epoch, err = p.sender.ProducerID(ctx)
	return err
}

// explicitOffsets says whether the cluster's transactions are those of before
// transaction.version 2 (KIP-890): offsets must be added to one before they are
// committed in it.
func explicitOffsets(ctx context.Context, client *kgo.Client) (bool, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "odradek", "1"
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return false, fmt.Errorf("ask for the cluster's features: %w", err)
	}
	return !slices.ContainsFunc(resp.FinalizedFeatures, func(f kmsg.ApiVersionsResponseFinalizedFeature) bool {
		return f.Name == "transaction.version" && f.MaxVersionLevel >= 2
	}), nil
}

// end commits the open transaction: what was sent, which is flushed, and the offsets
// that were added to it.
func (p *producer) end(ctx context.Context) error {
	if err := p.whole(ctx); err != nil {
		return err
	}
	if err := p.sender.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return p.txn.fail("commit", err)
	}
	p.txn.open = false
	return nil
}

// whole makes sure that all that was sent since the transaction began is in it.
func (p *producer) whole(ctx context.Context) error {
	id, epoch, err := p.sender.ProducerID(ctx)
	if err == nil && (id != p.txn.producer.id || epoch != p.txn.producer.epoch) {
		// A record that the broker refused may cost all before it.
		if e := p.sent.ignored.Load(); e != nil {
			return e
		}
		err = errProducerChanged
	}
	if err != nil {
		return p.txn.fail("commit", err)
	}
	return nil
}

// abort ends the open transaction without a commit, if there is one. When it returns,
// that is done, and so is a commit that was under way.
func (p *producer) abort(ctx context.Context) error {
	p.txn.undoing = false
	if !p.txn.open && p.err() == nil {
		return nil
	}
	err := backoff.Retry(func() error {
		p.disconnect()
		err := p.connect(ctx)
		if err != nil && !retriable(err) && !producerFenced(err) {
			return backoff.Permanent(err)
		}
		return err
	}, retries(ctx, taskTimeout))
	if err != nil {
		return p.txn.fail("abort", err)
	}
	p.txn.open = false
	return nil
}

// disconnect closes the client that is the producer's own, if there is one.
func (p *producer) disconnect() {
	if p.txn == nil || p.sender == nil {
		return
	}
	p.sender.Close()
	p.sendWith(nil)
}

func (t *transactions) fail(op string, err error) error {
	return &TransactionError{Op: op, TransactionalID: t.id, Err: err}
}
